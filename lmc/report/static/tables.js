/** Tables: sorted by a click on a heading, and copied as tab-separated values. */

/**
 * A column: `value` is what it is sorted by and copied, `show` what stands in the cell where that differs.
 * @template Row
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: Row) => string | number} value
 * @property {((row: Row) => Node | string)} [show]
 */

/** @template Row */
class Table {
  /**
   * @param {HTMLElement} box
   * @param {string} caption
   * @param {Column<Row>[]} columns
   * @param {Row[]} rows
   * @param {(row: Row) => string[]} keysOf the ops of a row
   */
  constructor(box, caption, columns, rows, keysOf) {
    columns = columns.filter(({ value }) => rows.some((row) => value(row) !== "" && value(row) !== 0));
    this.columns = columns;
    this.rows = rows;
    this.keysOf = keysOf;
    this.sorted = -1;
    this.isDescending = false;
    this.body = make("tbody");
    this.turn = 0;
    this.heads = columns.map((column, index) =>
      make("th", { scope: "col" }, make("button", { type: "button", onclick: () => this.sort(index) }, column.title)),
    );
    const copy = make("button", { type: "button", onclick: () => this.copy(caption) }, "Copy as TSV");
    box.replaceChildren(
      make("p", {}, copy),
      make(
        "div",
        { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
        make("table", {}, make("caption", {}, `${caption} (${number(rows.length)})`), make("thead", {}, make("tr", {}, ...this.heads)), this.body),
      ),
    );
    this.draw();
  }

  /** @param {number} index */
  sort(index) {
    this.isDescending = this.sorted === index ? !this.isDescending : typeof this.first(index) === "number";
    this.sorted = index;
    const { value } = this.columns[index];
    const sign = this.isDescending ? -1 : 1;
    this.rows = [...this.rows].sort((a, b) => {
      const [left, right] = [value(a), value(b)];
      return sign * (typeof left === "number" && typeof right === "number" ? left - right : String(left) < String(right) ? -1 : String(left) > String(right) ? 1 : 0);
    });
    for (const [each, head] of this.heads.entries()) {
      if (each === index) head.setAttribute("aria-sort", this.isDescending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    this.draw();
  }

  /** @param {number} index */
  first(index) {
    return this.rows.length > 0 ? this.columns[index].value(this.rows[0]) : "";
  }

  draw() {
    const turn = ++this.turn;
    fill(
      this.body,
      this.rows.length,
      300,
      (at) => {
        const row = this.rows[at];
        const cells = this.columns.map((column) => {
          const value = column.value(row);
          const shown = column.show?.(row) ?? (typeof value === "number" ? number(value) : value);
          return make("td", { class: typeof value === "number" ? "figure" : null }, shown);
        });
        return make("tr", { "data-op": this.keysOf(row)[0] ?? null }, ...cells);
      },
      () => this.turn === turn,
    );
  }

  /**
   * Copies the table in its order.
   * @param {string} caption
   */
  copy(caption) {
    const lines = [this.columns.map((column) => column.title), ...this.rows.map((row) => this.columns.map((column) => column.value(row)))];
    copyText(`${lines.map((cells) => cells.map(cell).join("\t")).join("\n")}\n`);
    announce(`${caption}: copied`);
  }
}

/**
 * Returns a cell of tab-separated values. A spreadsheet would read a text that begins like a formula as one.
 * @param {string | number} value
 */
function cell(value) {
  if (typeof value === "number") return String(value);
  const text = value.replace(/[\t\r\n]+/gu, " ");
  return /^[=+\-@]/u.test(text) ? `'${text}` : text;
}

/** @param {string} text */
function copyText(text) {
  const put = (/** @type {ClipboardEvent} */ event) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  document.addEventListener("copy", put, { capture: true, once: true });
  document.execCommand("copy");
  document.removeEventListener("copy", put, { capture: true });
}

/**
 * Returns a button that selects an op.
 * @param {Session} session
 * @param {string} key
 * @param {string} text
 */
function opButton(session, key, text) {
  const select = () => {
    session.select([key], { reveal: true });
    document.dispatchEvent(new CustomEvent("go-to-selection"));
  };
  return make("button", { type: "button", class: "link", "data-op": key, onclick: select }, text);
}

/**
 * Makes the table of calls.
 * @param {Session} session
 */
function callTable(session) {
  const { data } = session;
  const calls = data.view.calls ?? [];
  const hasPlan = calls.some((call) => call.planned);
  const isMeasured = calls.some((call) => call.measured);
  const { nodes } = data.state(data.last);
  const remarks = (/** @type {lmc.CallCost} */ call) => {
    const place = nodes.get(call.key)?.place;
    return (data.view.remarks ?? []).filter((remark) => samePlace(remark.place, place)).map((remark) => remark.message).join("; ");
  };
  /** @type {Column<lmc.CallCost>[]} */
  const columns = [
    { title: "call", value: (call) => call.id, show: (call) => opButton(session, call.key, call.id) },
    {
      title: "line",
      value: (call) => placeOf(data, nodes.get(call.key)),
      show: (call) => {
        const place = nodes.get(call.key)?.place;
        return place ? lineButton(session, place) : "";
      },
    },
    { title: "wave", value: (call) => call.wave },
    { title: "critical", value: (call) => (call.critical ? "yes" : "") },
    { title: "prompt tokens", value: (call) => call.prompt.known ?? 0 },
    { title: "texts of the run", value: (call) => call.prompt.texts ?? 0 },
    { title: "computed ahead", value: (call) => call.prefilled?.known ?? 0 },
    { title: "output, at most", value: (call) => call.output ?? 0 },
    { title: "choices", value: (call) => call.choices ?? 0 },
    { title: "constraint", value: (call) => call.constraint ?? "" },
  ];
  if (hasPlan) {
    columns.push(
      { title: "requests", value: (call) => call.planned?.requests ?? 0 },
      { title: "tokens in", value: (call) => call.planned?.prompt ?? 0 },
      { title: "cached", value: (call) => call.planned?.cached ?? 0 },
      { title: "tokens out", value: (call) => call.planned?.output ?? 0 },
      { title: "longest prompt", value: (call) => call.planned?.longest_prompt ?? 0 },
      { title: "dollars", value: (call) => call.planned?.dollars ?? 0 },
    );
  }
  if (isMeasured) {
    columns.push(
      { title: "measured requests", value: (call) => call.measured?.requests ?? 0 },
      { title: "measured in", value: (call) => call.measured?.prompt ?? 0 },
      { title: "measured cached", value: (call) => call.measured?.cached ?? 0 },
      { title: "measured out", value: (call) => call.measured?.output ?? 0 },
      { title: "out p50", value: (call) => call.measured?.p50 ?? "" },
      { title: "out longest", value: (call) => call.measured?.longest ?? 0 },
      { title: "seconds", value: (call) => call.measured?.seconds ?? 0 },
      { title: "measured dollars", value: (call) => call.measured?.dollars ?? 0 },
    );
  }
  columns.push({ title: "remarks", value: remarks });
  return new Table(byId("table-calls"), "Model calls of the final module", columns, calls, (call) => [call.key]);
}

/**
 * @param {ProgramData} data
 * @param {lmc.OpNode | undefined} node
 */
function placeOf(data, node) {
  return node?.place ? data.placeText(node.place) : "";
}

/**
 * Makes the table of stages: what each pass changed and saved.
 * @param {Session} session
 */
function passTable(session) {
  const { data } = session;
  const { view } = data;
  /** @type {(index: number, field: "saved_tokens" | "saved_calls" | "saved_steps") => string} */
  const saved = (index, field) =>
    (view.remarks ?? []).filter((remark) => remark.stage === index && remark[field]).map((remark) => number(remark[field] ?? 0)).join(" + ");
  const rows = view.stages.map((stage, index) => ({ stage, index }));
  /** @typedef {{stage: lmc.StageView, index: number}} Row */
  /** @type {Column<Row>[]} */
  const columns = [
    { title: "position", value: (row) => row.index + 1 },
    {
      title: view.comparison ? "module" : "pass",
      value: (row) => row.stage.name,
      show: (row) => make("button", { type: "button", class: "link", onclick: () => session.show(row.index) }, row.stage.name),
    },
    { title: "ops", value: (row) => row.stage.ops },
    { title: "calls", value: (row) => row.stage.calls },
    { title: "added", value: (row) => (row.index ? (row.stage.added ?? []).length : 0) },
    { title: "changed", value: (row) => (row.stage.changed ?? []).length },
    { title: "removed", value: (row) => (row.stage.removed ?? []).length },
    { title: "saves tokens", value: (row) => saved(row.index, "saved_tokens") },
    { title: "saves calls", value: (row) => saved(row.index, "saved_calls") },
    { title: "saves steps", value: (row) => saved(row.index, "saved_steps") },
    { title: "remarks", value: (row) => (view.remarks ?? []).filter((remark) => remark.stage === row.index).map((remark) => remark.text).join("\n") },
  ];
  return new Table(byId("table-passes"), view.comparison ? "Modules" : "Passes", columns, rows, () => []);
}

/**
 * Makes the table of constraints.
 * @param {Session} session
 */
function constraintTable(session) {
  const { constraints = [], calls = [] } = session.data.view;
  /** @type {(name: string) => lmc.CallCost[]} */
  const users = (name) => calls.filter((call) => call.constraint === name);
  /** @type {Column<lmc.ConstraintInfo>[]} */
  const columns = [
    { title: "constraint", value: (each) => each.name },
    { title: "kind", value: (each) => each.kind },
    { title: "definition", value: (each) => each.text, show: (each) => make("code", { class: "wrap" }, each.text) },
    { title: "example", value: (each) => (each.examples ?? []).join("\n"), show: (each) => make("code", { class: "wrap" }, (each.examples ?? []).join("\n")) },
    {
      title: "calls",
      value: (each) => users(each.name).map((call) => call.id).join(", "),
      show: (each) => {
        const list = make("span");
        for (const call of users(each.name)) list.append(opButton(session, call.key, call.id), " ");
        return list;
      },
    },
  ];
  return new Table(byId("table-constraints"), "Constraints", columns, constraints, (each) => users(each.name).map((call) => call.key));
}
