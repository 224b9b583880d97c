/** The same as the graph, as a list of which each group opens and folds: for screen readers and for reading in order. */

class Outline {
  /** @param {Session} session @param {Graph} graph */
  constructor(session, graph) {
    this.session = session;
    this.graph = graph;
    this.list = byId("outline");
    this.turn = 0;
    /** The data that are drawn. @type {ProgramData | undefined} */
    this.drawn = undefined;
    /** The item that has the focus, or gets it. @type {string | undefined} */
    this.focused = undefined;
    session.on(["stage", "open", "data"], () => setTimeout(() => this.draw()));
    session.on(["selection"], () => this.mark());
    rove(this.list, ".item");
    this.list.addEventListener("click", (event) => {
      const item = /** @type {HTMLElement} */ (event.target).closest(".item");
      if (item !== null) this.choose(/** @type {HTMLElement} */ (item));
    });
    this.list.addEventListener("keydown", (event) => {
      const item = /** @type {HTMLElement} */ (event.target);
      if (!item.classList.contains("item")) return;
      const id = item.dataset.part ?? "";
      const isGroup = item.hasAttribute("aria-expanded");
      const isOpen = session.open.has(id);
      if (event.key === "Enter" || event.key === " ") this.choose(item);
      else if (isGroup && (event.key === "ArrowRight" ? !isOpen : event.key === "ArrowLeft" && isOpen)) this.toggle(id);
      else return;
      event.preventDefault();
    });
  }

  /** @param {HTMLElement} item */
  choose(item) {
    const part = this.session.parts.byId.get(item.dataset.part ?? "");
    if (part === undefined) return;
    this.session.select(part.kind === "op" || part.kind === "region" ? [part.key] : this.session.keysOf(part));
  }

  /** @param {string} id */
  toggle(id) {
    this.focused = id;
    this.session.toggle(id);
  }

  draw() {
    if (byId("panel-list").hidden) return;
    const { session, graph } = this;
    const { data, stage } = session;
    const shown = data.shown(stage);
    const marks = data.marks(stage);
    /** @type {[Part, number][]} */
    const rows = [];
    /** @type {[Part, number][]} */
    const stack = [...session.parts.root.children].reverse().map((part) => [part, 1]);
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const [part, level] = next;
      if (session.keysOf(part).length === 0) continue;
      rows.push(next);
      if (session.open.has(part.id)) for (const child of [...part.children].reverse()) stack.push([child, level + 1]);
    }
    const turn = ++this.turn;
    const active = /** @type {HTMLElement | null} */ (this.list.querySelector(".item:focus"))?.dataset.part;
    const wanted = this.focused ?? (this.drawn === data ? active : undefined);
    const focused = rows.some(([part]) => part.id === wanted) ? wanted : undefined;
    this.focused = undefined;
    this.drawn = data;
    const filled = fill(
      this.list,
      rows.length,
      (at) => {
        const [part, level] = rows[at];
        const keys = session.keysOf(part);
        const isOpen = session.open.has(part.id);
        const title = graph.labels.titleOf(part, stage, keys, shown.get(part.kind === "fan" ? keys[0] : part.key));
        const figure = stage === data.last ? graph.labels.figureOf(part, keys) : "";
        const kind = graph.labels.kindOf(part, shown.get(keys[0]));
        const found = [...new Set(keys.map((key) => marks.get(key)))].filter((mark) => mark !== undefined);
        const item = make(
          "div",
          {
            class: `item ${kind}`,
            role: "treeitem",
            "aria-level": level,
            "aria-expanded": part.isGroup ? String(isOpen) : null,
            "aria-selected": "false",
            tabindex: (focused === undefined ? at === 0 : part.id === focused) ? 0 : -1,
            "data-part": part.id,
          },
          part.isGroup ? make("span", { class: "fold", "aria-hidden": "true", onclick: (event) => { event.stopPropagation(); this.toggle(part.id); } }, isOpen ? "▾" : "▸") : null,
          make("span", { class: "title" }, title),
          make("span", { class: "kind" }, part.kind === "op" || part.kind === "region" || part.kind === "fan" ? kind : part.kind === "prefix" ? "shared prefix" : ""),
          make("span", { class: "figures" }, figure),
          ...found.map((mark) => make("span", { class: `mark ${mark}` }, `${MARK_SIGNS[mark]} ${mark}`)),
        );
        item.style.paddingInlineStart = `${level * 1.1}rem`;
        if (part.id === focused) setTimeout(() => item.focus());
        return item;
      },
      () => this.turn === turn,
    );
    void filled.then(() => this.mark());
  }

  /** Marks the selected ops. */
  mark() {
    if (byId("panel-list").hidden) return;
    for (const item of /** @type {NodeListOf<HTMLElement>} */ (this.list.querySelectorAll(".item"))) {
      const part = this.session.parts.byId.get(item.dataset.part ?? "");
      const isOwn = part !== undefined && this.session.selected.has(part.key) && (part.kind === "op" || part.kind === "region");
      const isInside =
        part !== undefined && part.kind !== "op" && !this.session.open.has(part.id) && this.session.keysOf(part).some((key) => this.session.selected.has(key));
      item.setAttribute("aria-selected", String(isOwn || isInside));
    }
  }
}
