/** The text of the module at the shown stage, with links between values, and the lines that the pass changed. */

const TEXT_OR_VALUE = /"(?:[^"\\]|\\.)*"|%[A-Za-z0-9_.$-]+/gu;
const MAX_LINKED_LINE = 4000;

class ModuleText {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.list = byId("ir-lines");
    this.turn = 0;
    this.isStale = true;
    session.on(["stage", "data"], () => {
      this.isStale = true;
      this.draw();
    });
    session.on(["selection"], () => this.mark(true));
    this.list.addEventListener("click", (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      const value = target.closest(".value");
      if (value !== null) this.goTo(value.textContent ?? "");
      else if (String(getSelection()) === "") this.choose(target.closest("[data-key]"));
    });
    this.list.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      const row = /** @type {HTMLElement} */ (event.target).closest("button.number");
      if (row === null) return;
      event.preventDefault();
      this.choose(row.closest("[data-key]"));
    });
    rove(this.list, "button.number");
  }

  /** @param {Element | null} row */
  choose(row) {
    const key = row === null ? undefined : /** @type {HTMLElement} */ (row).dataset.key;
    if (key !== undefined) this.session.select([key], { reveal: true });
  }

  /** Draws the text if it is in view. */
  draw() {
    if (byId("panel-ir").hidden || !this.isStale) return;
    this.isStale = false;
    const { data, stage } = this.session;
    const state = data.state(stage);
    const hunks = stage === 0 ? [] : (data.view.stages[stage].text ?? []);
    const lines =
      stage === 0 || data.state(stage - 1).text === state.text
        ? state.text.map((text) => ({ text }))
        : changedText(data.state(stage - 1).text, hunks, true);
    /** @type {Map<number, string>} */
    const keys = new Map();
    let index = 0;
    for (const key of state.nodes.keys()) {
      if (index < state.lines.length) keys.set(state.lines[index], key);
      index += 1;
    }
    /** @type {(number | null)[]} */
    const numbers = [];
    let next = 0;
    for (const line of lines) numbers.push("mark" in line && line.mark === "removed" ? null : next++);
    const turn = ++this.turn;
    const first = Math.min(...keys.keys());
    const filled = fill(
      this.list,
      lines.length,
      (at) => {
        const { text } = lines[at];
        const mark = /** @type {{mark?: string}} */ (lines[at]).mark ?? "";
        const own = numbers[at];
        const key = own === null ? undefined : keys.get(own);
        const sign = mark === "added" ? "+" : mark === "removed" ? "−" : " ";
        const numbered =
          own === null
            ? make("span", { class: "number" }, "")
            : key === undefined
              ? make("span", { class: "number" }, String(own + 1))
              : make("button", { type: "button", class: "number", tabindex: own === first ? 0 : -1, "aria-label": `op in line ${own + 1}` }, String(own + 1));
        return make(
          "div",
          { class: `line ${mark}`, "data-key": key },
          numbered,
          make("span", { class: "sign" }, sign),
          make("code", {}, ...linked(text, mark !== "removed")),
        );
      },
      () => this.turn === turn,
    );
    void filled.then(() => this.mark(true));
  }

  /** @param {boolean} scroll */
  mark(scroll) {
    if (byId("panel-ir").hidden) return;
    let isFirst = scroll;
    for (const row of this.list.querySelectorAll("[data-key]")) {
      const isSelected = this.session.selected.has(/** @type {HTMLElement} */ (row).dataset.key ?? "");
      row.classList.toggle("selected", isSelected);
      if (isSelected && isFirst) {
        isFirst = false;
        row.scrollIntoView({ block: "nearest" });
      }
    }
  }

  /**
   * Shows the line that defines a value, and marks the value everywhere.
   * @param {string} name
   */
  goTo(name) {
    let isFound = false;
    for (const value of this.list.querySelectorAll(".value")) {
      const isSame = value.textContent === name;
      value.classList.toggle("same", isSame);
      if (isSame && !isFound) {
        isFound = true; // A value is defined before it is used.
        value.scrollIntoView({ block: "center" });
        const row = value.closest(".line");
        row?.classList.add("flash");
        setTimeout(() => row?.classList.remove("flash"), 900);
      }
    }
  }
}

/**
 * Returns a line with its values as links.
 * @param {string} text
 * @param {boolean} isLinked
 * @returns {(Node | string)[]}
 */
function linked(text, isLinked) {
  if (!isLinked || text.length > MAX_LINKED_LINE) return [text || " "];
  /** @type {(Node | string)[]} */
  const found = [];
  let at = 0;
  for (const match of text.matchAll(TEXT_OR_VALUE)) {
    if (!match[0].startsWith("%")) continue;
    found.push(text.slice(at, match.index), make("span", { class: "value", title: "Show its definition" }, match[0]));
    at = match.index + match[0].length;
  }
  found.push(text.slice(at) || (at === 0 ? " " : ""));
  return found;
}
