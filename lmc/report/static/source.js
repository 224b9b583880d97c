/** The source files: a line selects its ops, and has its costs, breaks and hints. */

class SourcePane {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.list = byId("source-lines");
    this.chooser = /** @type {HTMLSelectElement} */ (byId("source-file"));
    this.current = 0;
    /** The lines of a file that have ops, and the first one. @type {{index: number, lines: Set<number>, first: number} | undefined} */
    this.known = undefined;
    /** The file that is shown. */
    this.file = "";
    this.turn = 0;
    this.chooser.addEventListener("change", () => this.show(Number(this.chooser.value)));
    session.on(["data"], () => this.load());
    session.on(["selection"], () => this.mark(true));
    session.on(["stage"], () => this.mark(false));
    document.addEventListener("show-line", (event) => {
      const place = /** @type {CustomEvent<lmc.SourceLine>} */ (event).detail;
      this.show(place.source);
      this.scrollTo(place.line);
    });
    rove(this.list, "button.number");
    this.list.addEventListener("click", (event) => {
      const row = /** @type {HTMLElement} */ (event.target).closest("[data-line]");
      if (row === null || String(getSelection()) !== "") return;
      const line = Number(/** @type {HTMLElement} */ (row).dataset.line);
      this.session.select(keysAt(this.session, { source: this.current, line }), { reveal: true });
      document.dispatchEvent(new CustomEvent("go-to-selection"));
    });
    this.load();
  }

  /** Shows the file that was shown, else the first one that has costs. */
  load() {
    const { sources, lines = [] } = this.session.data.view;
    this.known = undefined;
    this.chooser.replaceChildren(...sources.map((source, index) => make("option", { value: index }, source.file)));
    byId("source-pane").hidden = sources.length === 0;
    if (sources.length === 0) return;
    const before = sources.findIndex((source) => source.file === this.file);
    const heaviest = sources.findIndex((_, index) => lines.some((cost) => cost.place.source === index));
    this.show(before < 0 ? Math.max(heaviest, 0) : before, true);
  }

  /**
   * Shows a file.
   * @param {number} index
   * @param {boolean} [again]
   */
  show(index, again = false) {
    if (index === this.current && !again) return;
    this.current = index;
    this.chooser.value = String(index);
    const { view } = this.session.data;
    const source = view.sources[index];
    this.file = source.file;
    const first = source.first ?? 1;
    const costs = new Map((view.lines ?? []).filter((cost) => cost.place.source === index).map((cost) => [cost.place.line, cost]));
    const largest = Math.max(0, ...[...costs.values()].map(weight));
    /** @type {Map<number, HTMLElement[]>} */
    const notes = new Map();
    /** @type {(place: lmc.SourceLine | null | undefined, note: HTMLElement) => void} */
    const add = (place, note) => {
      if (place?.source === index) notes.set(place.line, [...(notes.get(place.line) ?? []), note]);
    };
    for (const each of view.breaks ?? []) {
      add(each.place, make("div", { class: "note break" }, make("strong", {}, "graph break: "), `${each.cause} `, make("em", {}, `Remedy: ${each.remedy}`)));
    }
    for (const each of view.hints ?? []) add(each.place, make("div", { class: "note hint" }, make("strong", {}, "hint: "), each.message));
    const lines = source.lines ?? [];
    const numbers = [first + lines.length, ...costs.keys(), ...this.opLines(index)];
    this.list.style.setProperty("--digits", String(String(Math.max(...numbers)).length));
    this.list.style.setProperty("--figures", String(Math.max(0, ...[...costs.values()].map((cost) => shortCost(cost).length))));
    this.list.classList.toggle("free", costs.size === 0);
    const turn = ++this.turn;
    const isCurrent = () => this.turn === turn;
    byId("source-none").hidden = lines.length > 0;
    let filled;
    if (lines.length === 0) {
      const all = [...new Set([...costs.keys(), ...notes.keys(), ...this.linesWithOps(index)])].sort((a, b) => a - b);
      filled = fill(this.list, all.length, (at) => this.line(all[at], "", costs.get(all[at]), largest, notes.get(all[at])), isCurrent);
    } else {
      filled = fill(
        this.list,
        lines.length,
        (at) => this.line(first + at, lines[at], costs.get(first + at), largest, notes.get(first + at)),
        isCurrent,
      );
    }
    void filled.then(() => this.mark(false));
  }

  /**
   * The lines of a file that have ops in any stage.
   * @param {number} index
   */
  linesWithOps(index) {
    /** @type {Set<number>} */
    const lines = new Set();
    for (let stage = 0; stage <= this.session.data.last; stage++) {
      for (const node of this.session.data.state(stage).nodes.values()) {
        if (node.place?.source === index) lines.add(node.place.line);
      }
    }
    return lines;
  }

  /**
   * @param {number} line
   * @param {string} text
   * @param {lmc.LineCost | undefined} cost
   * @param {number} largest
   * @param {HTMLElement[]} [notes]
   */
  line(line, text, cost, largest, notes = []) {
    const hasOps = this.opLines(this.current).has(line);
    const said = cost === undefined ? "" : costText(cost);
    const bar = make("span", { class: "bar" });
    bar.style.width = cost === undefined || largest === 0 ? "0" : `${Math.max((weight(cost) / largest) * 100, 4)}%`;
    const label = `line ${line}${said ? `: ${said}` : ""}`;
    const mark = hasOps
      ? make("button", { type: "button", class: "number", tabindex: line === this.known?.first ? 0 : -1, "aria-label": label }, String(line))
      : make("span", { class: "number" }, String(line));
    const row = make(
      "div",
      { class: "line", "data-line": line },
      mark,
      make("span", { class: "cost", title: said || null }, bar, make("span", {}, cost === undefined ? "" : shortCost(cost))),
      make("code", {}, text || " "),
    );
    return make("div", { class: "source-line" }, row, ...notes);
  }

  /** @param {number} index */
  opLines(index) {
    if (this.known?.index !== index) {
      const lines = this.linesWithOps(index);
      this.known = { index, lines, first: Math.min(...lines) };
    }
    return this.known.lines;
  }

  /**
   * Marks the lines of the selected ops, and where on them the ops begin.
   * @param {boolean} scroll
   */
  mark(scroll) {
    /** The columns of the selected ops by line. @type {Map<number, Set<number>>} */
    const lines = new Map();
    /** @type {lmc.SourceLine | undefined} */
    let first;
    for (const key of this.session.selected) {
      const place = this.session.nodeOf(key)?.place;
      if (!place) continue;
      first ??= place;
      if (scroll && first === place) this.show(place.source);
      if (place.source !== this.current) continue;
      const columns = lines.get(place.line) ?? new Set();
      // The columns are those of the source before its texts were replaced.
      if (place.column && !this.session.data.view.redacted) columns.add(place.column);
      lines.set(place.line, columns);
    }
    for (const row of this.list.querySelectorAll(".line")) {
      const isSelected = lines.has(Number(/** @type {HTMLElement} */ (row).dataset.line));
      row.classList.toggle("selected", isSelected);
      row.querySelector("button")?.setAttribute("aria-pressed", String(isSelected));
      const code = /** @type {HTMLElement} */ (row.querySelector("code"));
      const columns = lines.get(Number(/** @type {HTMLElement} */ (row).dataset.line)) ?? new Set();
      if (columns.size > 0 || code.querySelector("mark") !== null) code.replaceChildren(...marked(code.textContent ?? "", columns));
    }
    if (scroll && first !== undefined) this.scrollTo(first.line);
  }

  /** @param {number} line */
  scrollTo(line) {
    const row = this.list.querySelector(`[data-line="${line}"]`);
    if (row === null) return;
    const box = byId("source-scroll");
    // The heights of lines that were never in view are not known before: a second time, they are.
    for (let time = 0; time < 2; time++) {
      const [inner, outer] = [row.getBoundingClientRect(), box.getBoundingClientRect()];
      if (inner.top < outer.top || inner.bottom > outer.bottom) box.scrollTop += inner.top - outer.top - outer.height / 3;
    }
  }
}

/**
 * Returns a line with marks at the names that begin at columns, which count characters from 1.
 * @param {string} text
 * @param {Set<number>} columns
 */
function marked(text, columns) {
  const characters = [...text];
  /** @type {(Node | string)[]} */
  const found = [];
  let end = 0;
  for (const start of [...columns].map((column) => column - 1).sort((a, b) => a - b)) {
    if (start < end || start >= characters.length) continue;
    const name = /^[\p{L}\p{N}_.]+/u.exec(characters.slice(start).join(""))?.[0] ?? characters[start];
    found.push(characters.slice(end, start).join(""), make("mark", {}, name));
    end = start + [...name].length;
  }
  return [...found, characters.slice(end).join("")];
}

/** @param {lmc.LineCost} cost */
function weight(cost) {
  return (cost.planned ? cost.planned.prompt : cost.prompt.known) ?? 0;
}

/** @param {lmc.LineCost} cost */
function shortCost(cost) {
  if (cost.planned) return `${number(cost.planned.prompt ?? 0)} → ${number(cost.planned.output ?? 0)}`;
  return `${number(cost.prompt.known ?? 0)}${cost.prompt.texts ? "+" : ""} → ${number(cost.output ?? 0)}`;
}

/** @param {lmc.LineCost} cost */
function costText(cost) {
  const parts = [`${counted(cost.calls, "call")} of an instance, ${tokensText(cost.prompt)} in, at most ${number(cost.output ?? 0)} out`];
  if (cost.planned) parts.push(`planned: ${plannedText(cost.planned)}`);
  if (cost.measured) parts.push(`measured: ${measuredText(cost.measured)}`);
  return parts.join("; ");
}

/** @param {lmc.PlannedCost} planned */
function plannedText(planned) {
  return (
    `${counted(planned.requests ?? 0, "request")}, ${counted(planned.prompt ?? 0, "prompt token")}, ` +
    `${number(planned.cached ?? 0)} of them cached, ${counted(planned.output ?? 0, "output token")}${dollarsText(planned)}`
  );
}

/** @param {lmc.MeasuredCost} measured */
function measuredText(measured) {
  const p50 = measured.p50 === undefined || measured.p50 === null ? "" : `, median ${number(measured.p50)}`;
  return (
    `${counted(measured.requests, "request")}, ${counted(measured.prompt, "prompt token")}, ${number(measured.cached)} of them cached, ` +
    `${counted(measured.output, "output token")}${p50}, longest ${number(measured.longest ?? 0)}, ${seconds(measured.seconds)}${dollarsText(measured)}`
  );
}

/** @param {lmc.PlannedCost | lmc.MeasuredCost} cost */
function dollarsText(cost) {
  return cost.dollars === undefined || cost.dollars === null ? "" : `, ${dollars(cost.dollars)}`;
}
