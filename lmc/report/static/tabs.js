/** The tabs of the middle: one panel is in view. */

class Tabs {
  /** @param {() => void} onShow */
  constructor(onShow) {
    this.onShow = onShow;
    this.shown = "graph";
    this.list = byId("tabs");
    rove(this.list, "[role=tab]:not([hidden])", { previous: "ArrowLeft", next: "ArrowRight" });
    this.list.addEventListener("focusin", (event) => this.show(/** @type {HTMLElement} */ (event.target).dataset.tab ?? ""));
    this.list.addEventListener("click", (event) => {
      const tab = /** @type {HTMLElement} */ (event.target).closest("[role=tab]");
      if (tab !== null) this.show(/** @type {HTMLElement} */ (tab).dataset.tab ?? "");
    });
  }

  all() {
    return /** @type {HTMLElement[]} */ ([...this.list.querySelectorAll("[role=tab]")]);
  }

  /**
   * Offers the tabs that have data, and shows again the one that is in view.
   * @param {string[]} names
   */
  offer(names) {
    for (const tab of this.all()) tab.hidden = !names.includes(tab.dataset.tab ?? "");
    this.show(names.includes(this.shown) ? this.shown : names[0]);
  }

  /** @param {string} name */
  show(name) {
    this.shown = name;
    for (const tab of this.all()) {
      const isShown = tab.dataset.tab === name;
      tab.setAttribute("aria-selected", String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      byId(`panel-${tab.dataset.tab}`).hidden = !isShown;
    }
    this.onShow();
  }
}
