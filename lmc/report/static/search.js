/** The search: finds ops by label, id, name of the op and text. */

class Search {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.input = /** @type {HTMLInputElement} */ (byId("search"));
    /** @type {string[]} */
    this.found = [];
    this.at = -1;
    this.input.addEventListener("input", () => this.find());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.go(event.shiftKey ? -1 : 1);
      } else if (event.key === "Escape") {
        this.input.value = "";
        this.find();
      }
    });
    byId("search-next").addEventListener("click", () => this.go(1));
    byId("search-previous").addEventListener("click", () => this.go(-1));
    document.addEventListener("keydown", (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (event.key !== "/" || event.ctrlKey || event.metaKey || target.closest("input, select, textarea")) return;
      event.preventDefault();
      this.input.focus();
    });
    session.on(["stage", "data"], () => this.find());
    this.say();
  }

  /** Finds the ops whose words hold the text. */
  find() {
    const wanted = this.input.value.trim().toLowerCase();
    this.found = [];
    this.at = -1;
    if (wanted !== "") {
      for (const node of this.session.data.shown(this.session.stage).values()) {
        if ([node.label, node.id ?? "", node.op, node.text ?? ""].some((text) => text.toLowerCase().includes(wanted))) {
          this.found.push(node.key);
        }
      }
    }
    this.say();
  }

  /** @param {number} by */
  go(by) {
    if (this.found.length === 0) return;
    this.at = this.at < 0 ? (by > 0 ? 0 : this.found.length - 1) : (this.at + by + this.found.length) % this.found.length;
    this.session.select([this.found[this.at]], { reveal: true });
    document.dispatchEvent(new CustomEvent("go-to-selection"));
    this.say();
  }

  say() {
    const count = this.found.length;
    const text = this.input.value.trim() === "" ? "" : this.at < 0 ? `${number(count)} found` : `${number(this.at + 1)} of ${number(count)}`;
    byId("search-count").textContent = text;
    for (const id of ["search-next", "search-previous"]) {
      /** @type {HTMLButtonElement} */ (byId(id)).disabled = count === 0;
    }
  }
}
