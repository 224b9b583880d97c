/** The pass slider: one position for each stage, its changes counted, and the remarks of its pass. */

class Slider {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.input = /** @type {HTMLInputElement} */ (byId("slider"));
    this.turn = 0;
    this.input.addEventListener("input", () => session.show(Number(this.input.value)));
    // The arrow keys move the slider wherever they have no other use.
    document.addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.defaultPrevented) return;
      const target = /** @type {HTMLElement} */ (event.target);
      if (target.closest("input, select, textarea, [role=tab], [role=tree]")) return;
      event.preventDefault();
      session.show(session.stage + (event.key === "ArrowLeft" ? -1 : 1));
    });
    session.on(["stage", "data"], () => this.draw());
    this.draw();
  }

  draw() {
    const { session } = this;
    const { view } = session.data;
    const stage = view.stages[session.stage];
    byId("slider-box").hidden = view.stages.length < 2;
    this.input.max = String(session.data.last);
    const title = `${stage.name}, ${session.stage + 1} of ${view.stages.length}`;
    this.input.value = String(session.stage);
    this.input.setAttribute("aria-valuetext", `${title}: ${this.changes().join(", ")}`);
    byId("stage-name").textContent = title;
    byId("stage-size").textContent = `${counted(stage.ops, "op")}, ${counted(stage.calls, "call")}`;
    byId("stage-changes").replaceChildren(...this.counts());
    const remarks = (view.remarks ?? []).filter((remark) => remark.stage === session.stage);
    const turn = ++this.turn;
    const item = (/** @type {number} */ at) => make("li", { class: remarks[at].kind }, ...remarkContent(session, remarks[at]));
    void fill(byId("stage-remarks"), remarks.length, item, () => this.turn === turn);
  }

  /** @returns {[Mark, string[]][]} */
  marked() {
    const marks = this.session.data.marks(this.session.stage);
    const kinds = /** @type {Mark[]} */ (["added", "changed", "removed"]);
    return kinds.map((kind) => [kind, [...marks].filter(([, mark]) => mark === kind).map(([key]) => key)]);
  }

  changes() {
    if (this.session.stage === 0) return ["the beginning"];
    const found = this.marked().filter(([, keys]) => keys.length > 0);
    return found.length === 0 ? ["no change"] : found.map(([mark, keys]) => `${number(keys.length)} ${mark}`);
  }

  /** @returns {Node[]} buttons that select what changed */
  counts() {
    const found = this.session.stage === 0 ? [] : this.marked().filter(([, keys]) => keys.length > 0);
    if (found.length === 0) return [document.createTextNode(this.changes()[0])];
    return found.map(([mark, keys]) =>
      make(
        "button",
        { type: "button", class: `mark ${mark}`, title: "Select these ops", onclick: () => this.session.select(keys) },
        `${MARK_SIGNS[mark]} ${number(keys.length)} ${mark}`,
      ),
    );
  }
}

/**
 * Returns a remark, with its line as a button.
 * @param {Session} session
 * @param {lmc.RemarkView} remark
 * @returns {(Node | string)[]}
 */
function remarkContent(session, remark) {
  const kind = remark.kind === "missed" ? "not possible: " : "";
  const saved = savedText(remark);
  return [
    ...(remark.place ? [lineButton(session, remark.place), " "] : []),
    make("span", { class: "prose" }, `${kind}${remark.message}${saved ? ` (saves ${saved})` : ""}`),
  ];
}

/**
 * Returns what a pass or all of them save; nothing: an empty text.
 * @param {lmc.RemarkView | lmc.ProgramView} from
 */
function savedText({ saved_tokens: tokens, saved_calls: calls, saved_steps: steps }) {
  return [tokens ? counted(tokens, "token") : "", calls ? counted(calls, "call") : "", steps ? counted(steps, "step") : ""].filter(Boolean).join(", ");
}

/**
 * Returns a button that shows a line and selects its ops.
 * @param {Session} session
 * @param {lmc.SourceLine} place
 * @param {boolean} [isShort] without the name of the file
 */
function lineButton(session, place, isShort = false) {
  const show = () => {
    session.select(keysAt(session, place), { reveal: true });
    document.dispatchEvent(new CustomEvent("show-line", { detail: place }));
  };
  const text = session.data.placeText(place);
  return make("button", { type: "button", class: "link", title: isShort ? text : null, onclick: show }, isShort ? String(place.line) : text);
}

/**
 * Returns the ops of a line at the shown stage.
 * @param {Session} session
 * @param {lmc.SourceLine} place
 * @returns {string[]}
 */
function keysAt(session, place) {
  const nodes = [...session.data.shown(session.stage).values()];
  return nodes
    .filter((node) => node.place?.source === place.source && node.place.line === place.line)
    .map((node) => node.key);
}
