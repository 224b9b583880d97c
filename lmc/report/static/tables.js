/** Tables: sorted by a click on a heading, and copied as tab-separated values. */

/** The longest values of a column, of which the widest gives it its width. */
const MEASURED = 8;

/**
 * A column: `value` is what it is sorted by and copied, `show` what stands in the cell where that differs. One that is
 * `below` has long texts: they stand in a line of their own below the row, as wide as the window.
 * @template Row
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: Row) => string | number} value
 * @property {((row: Row) => Node | string)} [show]
 * @property {boolean} [below]
 */
/**
 * What a table shows of the data.
 * @template Row
 * @typedef {{caption: string, columns: Column<Row>[], rows: Row[]}} Content
 */

/** @template Row */
class Table {
  /**
   * @param {Session} session
   * @param {string} name that of the tab
   * @param {() => Content<Row>} content
   * @param {(row: Row) => string[]} keysOf the ops of a row
   */
  constructor(session, name, content, keysOf) {
    this.panel = byId(`panel-${name}`);
    this.content = content;
    this.keysOf = keysOf;
    this.caption = "";
    /** @type {Column<Row>[]} */
    this.columns = [];
    /** @type {Row[]} */
    this.rows = [];
    /** The rows with the longest values. @type {Set<Row>} */
    this.longest = new Set();
    /** The title of the column by which the rows are sorted. */
    this.sortedBy = "";
    this.isDescending = false;
    this.isDrawn = false;
    this.title = make("caption");
    this.heads = make("tr", { role: "row" });
    this.body = make("tbody", { role: "rowgroup" });
    this.turn = 0;
    // The roles: rows are grids for the browser.
    this.table = make("table", { role: "table" }, this.title, make("thead", { role: "rowgroup" }, this.heads), this.body);
    this.region = make("div", { class: "scroll", tabindex: 0, role: "region" }, this.table);
    const copy = make("button", { type: "button", onclick: () => this.copy() }, "Copy as TSV");
    byId(`table-${name}`).replaceChildren(make("p", {}, copy), this.region);
    session.on(["data"], () => (this.isDrawn = false));
  }

  /** Draws it when it is first in view, and again where the data are others: sorted as before. */
  draw() {
    if (this.panel.hidden || this.isDrawn) return;
    this.isDrawn = true;
    const { caption, columns, rows } = this.content();
    this.caption = caption;
    this.columns = columns.filter(({ value }) => rows.some((row) => value(row) !== "" && value(row) !== 0));
    this.rows = rows;
    this.title.textContent = `${caption} (${number(rows.length)})`;
    this.region.setAttribute("aria-label", caption);
    this.heads.replaceChildren(
      ...this.columns.flatMap((column) =>
        column.below ? [] : [make("th", { scope: "col", role: "columnheader" }, make("button", { type: "button", onclick: () => this.sort(column) }, column.title))],
      ),
    );
    this.longest.clear();
    for (const { below, value } of this.columns) {
      if (below) continue;
      const lengths = rows.map((row) => /** @type {[number, Row]} */ ([String(value(row)).length, row]));
      for (const [, row] of lengths.sort(([a], [b]) => b - a).slice(0, MEASURED)) this.longest.add(row);
    }
    this.arrange();
  }

  /**
   * Gives the columns their widths: those of the headings and of the longest values. So each row is laid out alone, and
   * only where it is in view; a table that finds its widths itself is laid out as a whole, again with each slice of rows.
   */
  measure() {
    const heads = /** @type {HTMLElement} */ (this.heads.cloneNode(true));
    const cells = [...this.longest].map((row) => /** @type {Node} */ (this.rowOf(row).firstChild));
    const grid = make("tbody", { class: "measured" }, heads, ...cells);
    grid.style.gridTemplateColumns = `repeat(${heads.childElementCount}, max-content)`;
    this.table.append(grid);
    this.table.style.setProperty("--columns", getComputedStyle(grid).gridTemplateColumns);
    grid.remove();
  }

  /** @param {Column<Row>} column */
  sort(column) {
    const isNumber = this.rows.length > 0 && typeof column.value(this.rows[0]) === "number";
    this.isDescending = this.sortedBy === column.title ? !this.isDescending : isNumber;
    this.sortedBy = column.title;
    this.arrange();
  }

  /** Fills the rows in, in their order. */
  arrange() {
    const column = this.columns.find(({ title }) => title === this.sortedBy);
    const sign = this.isDescending ? -1 : 1;
    if (column !== undefined) {
      const { value } = column;
      this.rows = [...this.rows].sort((a, b) => {
        const [left, right] = [value(a), value(b)];
        return sign * (typeof left === "number" && typeof right === "number" ? left - right : String(left) < String(right) ? -1 : String(left) > String(right) ? 1 : 0);
      });
    }
    for (const head of this.heads.children) {
      if (head.textContent === column?.title) head.setAttribute("aria-sort", this.isDescending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    this.measure();
    const turn = ++this.turn;
    void fill(this.body, this.rows.length, (at) => this.rowOf(this.rows[at]), () => this.turn === turn);
  }

  /** @param {Row} row */
  rowOf(row) {
    const key = this.keysOf(row)[0] ?? null;
    const part = document.createDocumentFragment();
    const cells = make("tr", { role: "row", "data-op": key });
    part.append(cells);
    for (const column of this.columns) {
      const value = column.value(row);
      const shown = column.show?.(row) ?? (typeof value === "number" ? number(value) : value);
      if (!column.below) cells.append(make("td", { role: "cell", class: typeof value === "number" ? "figure" : null }, shown));
      else if (value !== "") {
        const text = make("div", {}, make("strong", {}, column.title), ": ", shown);
        cells.className = "above";
        part.append(make("tr", { role: "row", class: "below" }, make("td", { role: "cell", colspan: this.heads.childElementCount }, text)));
      }
    }
    return part;
  }

  /** Copies the table in its order. */
  copy() {
    const lines = [this.columns.map((column) => column.title), ...this.rows.map((row) => this.columns.map((column) => column.value(row)))];
    copyText(`${lines.map((cells) => cells.map(cell).join("\t")).join("\n")}\n`);
    announce(`${this.caption}: copied`);
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
  return new Table(session, "calls", () => callContent(session), (call) => [call.key]);
}

/**
 * @param {Session} session
 * @returns {Content<lmc.CallCost>}
 */
function callContent(session) {
  const { data } = session;
  const calls = [...(data.view.calls ?? []), ...[...data.oldCalls.values()].filter(({ key }) => !data.calls.has(key))];
  const hasPlan = calls.some((call) => call.planned);
  const isMeasured = calls.some((call) => call.measured);
  const nodes = new Map([...(data.view.old ? data.state(0).nodes : []), ...data.state(data.last).nodes]);
  /**
   * Returns the column of a figure; of two modules that are compared, also that of the first, where a call differs.
   * @param {string} title
   * @param {(call: lmc.CallCost) => string | number} of
   * @returns {Column<lmc.CallCost>[]}
   */
  const figure = (title, of) => {
    /** @type {(known: Map<string, lmc.CallCost>) => (row: lmc.CallCost) => string | number} */
    const within = (known) => (row) => {
      const call = known.get(row.key);
      return call === undefined ? "" : of(call);
    };
    const [now, old] = [within(data.calls), within(data.oldCalls)];
    const isChanged = data.view.old && calls.some((call) => now(call) !== old(call));
    return isChanged ? [{ title: `${title}, first`, value: old }, { title, value: now }] : [{ title, value: now }];
  };
  const remarks = (/** @type {lmc.CallCost} */ call) => data.remarksOn(nodes.get(call.key)).map((remark) => remark.message);
  /** @type {Column<lmc.CallCost>[]} */
  const columns = [
    { title: "call", value: (call) => call.id, show: (call) => opButton(session, call.key, call.id) },
    {
      title: "line",
      value: (call) => placeOf(data, nodes.get(call.key)),
      show: (call) => {
        const place = nodes.get(call.key)?.place;
        return place ? lineButton(session, place, data.view.sources?.length === 1) : "";
      },
    },
  ];
  if (hasPlan) {
    columns.push(
      { title: "tokens in", value: (call) => call.planned?.prompt ?? 0 },
      { title: "cached", value: (call) => call.planned?.cached ?? 0 },
      { title: "tokens out", value: (call) => call.planned?.output ?? 0 },
      { title: "dollars", value: (call) => call.planned?.dollars ?? 0 },
    );
  }
  if (isMeasured) {
    columns.push(
      { title: "measured in", value: (call) => call.measured?.prompt ?? 0 },
      { title: "measured cached", value: (call) => call.measured?.cached ?? 0 },
      { title: "measured out", value: (call) => call.measured?.output ?? 0 },
      { title: "out p50", value: (call) => call.measured?.p50 ?? "" },
      { title: "out longest", value: (call) => call.measured?.longest ?? 0 },
      { title: "seconds, sum over requests", value: (call) => call.measured?.seconds ?? 0, show: (call) => time(call.measured?.seconds ?? 0) },
      { title: "measured dollars", value: (call) => call.measured?.dollars ?? 0 },
    );
  }
  columns.push(
    ...figure("prompt tokens", (call) => call.prompt.known ?? 0),
    ...figure("output, at most", (call) => call.output ?? 0),
    ...figure("wave", (call) => call.wave),
    ...figure("critical", (call) => (call.critical ? "yes" : "")),
    ...figure("constraint", (call) => call.constraint ?? ""),
    { title: "requests", value: (call) => call.planned?.requests ?? 0 },
    { title: "measured requests", value: (call) => call.measured?.requests ?? 0 },
    { title: "longest prompt", value: (call) => call.planned?.longest_prompt ?? 0 },
    ...figure("texts of the run", (call) => call.prompt.texts ?? 0),
    ...figure("computed ahead", (call) => call.prefilled?.known ?? 0),
    ...figure("choices", (call) => call.choices ?? 0),
  );
  columns.push({ title: "remarks", value: (call) => remarks(call).join("; "), show: (call) => remarks(call).join("\n"), below: true });
  return { caption: data.view.old ? "Model calls of both modules" : "Model calls of the final module", columns, rows: calls };
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
  return new Table(session, "passes", () => passContent(session), () => []);
}

/** @typedef {{stage: lmc.StageView, index: number}} Position */
/**
 * @param {Session} session
 * @returns {Content<Position>}
 */
function passContent(session) {
  const { data } = session;
  const { view } = data;
  /** @type {(index: number, field: "saved_tokens" | "saved_calls" | "saved_steps") => string} */
  const saved = (index, field) =>
    (view.remarks ?? []).filter((remark) => remark.stage === index && remark[field]).map((remark) => number(remark[field] ?? 0)).join(" + ");
  const rows = view.stages.map((stage, index) => ({ stage, index }));
  /** @type {Column<Position>[]} */
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
    { title: "remarks", value: (row) => (view.remarks ?? []).filter((remark) => remark.stage === row.index).map((remark) => remark.text).join("\n"), below: true },
  ];
  return { caption: view.comparison ? "Modules" : "Passes", columns, rows };
}

/**
 * Makes the table of constraints.
 * @param {Session} session
 */
function constraintTable(session) {
  return new Table(session, "constraints", () => constraintContent(session), (each) => usersOf(session, each.name).map((call) => call.key));
}

/**
 * Returns the calls that a constraint holds for.
 * @param {Session} session
 * @param {string} name
 */
function usersOf(session, name) {
  return (session.data.view.calls ?? []).filter((call) => call.constraint === name);
}

/**
 * @param {Session} session
 * @returns {Content<lmc.ConstraintInfo>}
 */
function constraintContent(session) {
  const users = (/** @type {string} */ name) => usersOf(session, name);
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
  return { caption: "Constraints", columns, rows: session.data.view.constraints ?? [] };
}
