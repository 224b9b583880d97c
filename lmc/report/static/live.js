/**
 * A page that `lmc view` serves: shows what the server sends, and keeps what is looked at. The data of the page say where
 * to listen.
 *
 * A page in the background does not listen: a browser opens few connections to a server.
 */

/**
 * An error in the words of `lmc compile`; `is_mismatch`: the timeline is not that of the program as it is by now.
 * @typedef {{place: string, message: string, trace: string, is_mismatch: boolean}} Problem
 */

class Live {
  constructor() {
    /** @type {{events: string, index: string | null, file: string}} */
    const { events, index, file } = JSON.parse(byId("data").textContent ?? "");
    this.file = file;
    this.events = events;
    this.isOther = false;
    /** @type {EventSource | null} */
    this.source = null;
    /** The data that are shown. */
    this.shown = "";
    this.middle = byId("middle");
    this.state = make("span", { id: "live-state", role: "status" });
    this.fold = make("button", { type: "button", onclick: () => this.foldProblem(!this.box.classList.contains("folded")) });
    this.text = make("div");
    this.box = make("div", { id: "problem", role: "alert", hidden: true }, make("div", { id: "problem-box" }, this.text, this.fold));
    this.middle.append(this.box);
    byId("title").textContent = document.title;
    if (index !== null) byId("summary").before(make("a", { href: index }, "All files"));
    byId("search-box").before(this.state);
    this.say("Not connected.");
    document.addEventListener("visibilitychange", () => this.connect());
    this.connect();
  }

  connect() {
    if (document.hidden) {
      this.source?.close();
      this.source = null;
    }
    if (document.hidden || this.source !== null || this.isOther) return;
    const source = (this.source = new EventSource(this.events));
    source.addEventListener("file", (event) => this.check(event.data));
    source.addEventListener("working", () => this.say("Compiling …"));
    source.addEventListener("view", (event) => this.show(event.data, event.lastEventId));
    source.addEventListener("problem", (event) => this.showProblem(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      this.say("Not connected.");
      if (source.readyState === EventSource.CLOSED) this.source = null;
    });
  }

  /**
   * Stops listening where a server that was started since has another file at this address.
   * @param {string} file
   */
  check(file) {
    if (file === this.file) return;
    this.isOther = true;
    this.source?.close();
    this.source = null;
    this.say("Another file is at this address by now: reload the page to see it.");
  }

  /** @param {string} text */
  say(text) {
    this.state.textContent = text;
  }

  /**
   * Shows a program.
   * @param {string} text
   * @param {string} id differs for different data
   */
  show(text, id) {
    this.box.hidden = true;
    this.setInert(false);
    this.say("Up to date.");
    document.body.classList.remove("no-data");
    if (id !== this.shown) {
      this.shown = id;
      /** @type {lmc.CompiledView} */
      const view = JSON.parse(text);
      if (app === null) app = new App(view);
      else {
        const same = new Same(app.session, new ProgramData(view));
        app.graph.hold((part) => same.part(part));
        const focused = new Focused(same);
        app.session.replace(same.data, same.parts, same.looked());
        focused.restore();
      }
    }
    document.body.dataset.shown = id;
  }

  /** @param {Problem} problem */
  showProblem({ place, message, trace, is_mismatch: isMismatch }) {
    // The graph before the edit is as good as its timeline: it stays.
    const isOld = isMismatch && app !== null;
    const about = isOld ? "The timeline belongs to the program before the edit, and so does what is shown: " : "error: ";
    this.text.replaceChildren(
      ...(trace ? [make("pre", { tabindex: 0 }, trace)] : []),
      make("p", { class: "prose" }, make("strong", {}, place ? `${place}: ` : ""), make("strong", { class: isOld ? "" : "error" }, about), message),
    );
    this.say(app === null ? "" : isOld ? "The program before the edit is shown." : "The last good graph is shown.");
    this.box.classList.toggle("notice", isOld);
    this.fold.hidden = app === null || isOld;
    this.box.hidden = false;
    document.body.classList.toggle("no-data", app === null);
    this.foldProblem(isOld);
  }

  /**
   * Makes way for the graph behind the error, or stands before it.
   * @param {boolean} isFolded
   */
  foldProblem(isFolded) {
    this.box.classList.toggle("folded", isFolded);
    this.fold.textContent = isFolded ? "Show the error" : "Show the last good graph";
    this.setInert(!isFolded);
  }

  /** @param {boolean} isInert what is behind the error takes no part in the keyboard */
  setInert(isInert) {
    for (const each of this.middle.children) if (each !== this.box) /** @type {HTMLElement} */ (each).inert = isInert;
  }
}

document.body.classList.add("no-data");
/** For the console of the browser. */
const live = new Live();
