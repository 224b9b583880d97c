/** The page: the controls, each with what it shows of the session. */

class App {
  /** @param {lmc.CompiledView} view */
  constructor(view) {
    const session = (this.session = new Session(new ProgramData(view)));
    const colours = (this.colours = new Colours(session));
    const graph = (this.graph = new Graph(session, colours));
    this.outline = new Outline(session, graph);
    this.text = new ModuleText(session);
    /** @type {Heat | null} */
    this.heat = null;
    /** @type {Timeline | null} */
    this.timeline = null;
    new Slider(session);
    new SourcePane(session);
    new SelectionPane(session);
    new Search(session);
    const chooser = /** @type {HTMLSelectElement} */ (byId("colour"));
    chooser.addEventListener("change", () => {
      colours.choose(chooser.value);
      graph.draw();
    });
    byId("zoom-in").addEventListener("click", () => graph.zoom(1.3));
    byId("zoom-out").addEventListener("click", () => graph.zoom(1 / 1.3));
    byId("zoom-fit").addEventListener("click", () => graph.fit());
    byId("unfold").addEventListener("click", () => graph.unfoldAll());
    byId("fold").addEventListener("click", () => graph.foldAll());
    byId("critical").addEventListener("click", () => session.select(session.data.view.critical_path ?? [], { reveal: true }));
    document.addEventListener("go-to-selection", () => graph.goToSelection());
    this.tables = [callTable(session), passTable(session), constraintTable(session)];
    this.tabs = new Tabs(() => this.show());
    this.load();
    session.on(["data"], () => this.load());
    for (const media of ["(prefers-color-scheme: dark)", "print"]) matchMedia(media).addEventListener("change", () => session.changed("theme"));
    void graph.arrange().then(() => document.body.setAttribute("data-ready", ""));
  }

  /** Shows the figures, notices and tabs of the data. */
  load() {
    const { session, colours } = this;
    const { data } = session;
    const { view } = data;
    const { program, plan, timeline: run, old } = view;
    // A page of two modules names both.
    byId("title").textContent = view.old ? document.title : program.name;
    /** @type {(string | Node)[]} */
    const figures = /** @type {const} */ ([["op", "ops"], ["call", "model_calls"], ["wave", "waves"]]).map(([noun, name]) =>
      old && old.program[name] !== program[name] ? `${number(old.program[name])} → ${counted(program[name], noun)}` : counted(program[name], noun),
    );
    if (program.saved_tokens) figures.push(`saves ${counted(program.saved_tokens, "token")} an instance`);
    if (plan) figures.push(make("span", {}, `${counted(plan.row_count, "row")}, `, time(plan.predicted_seconds), " predicted"));
    if (run) figures.push(make("span", {}, `${counted(run.request_count, "request")} in `, time(run.seconds), " measured"));
    byId("summary").replaceChildren(...figures.flatMap((figure, index) => (index > 0 ? [" · ", figure] : [figure])));
    const notices = [...(view.notices ?? [])];
    if (view.redacted) notices.push("texts are replaced by their lengths");
    if (view.comparison) notices.push("two modules are compared: figures are those of the second, or of both (first → second) where they differ");
    for (const each of view.breaks ?? []) if (!each.place) notices.push(`graph break: ${each.cause}. Remedy: ${each.remedy}`);
    for (const each of view.hints ?? []) if (!each.place) notices.push(each.message);
    byId("notices").replaceChildren(...notices.map((notice) => make("li", {}, notice)));
    const chooser = /** @type {HTMLSelectElement} */ (byId("colour"));
    chooser.replaceChildren(...colours.modes.map((mode) => make("option", { value: mode.name }, mode.title)));
    chooser.value = colours.mode.name;
    byId("critical").hidden = data.critical.size === 0;
    if (plan) {
      if (this.heat) this.heat.load(plan);
      else this.heat = new Heat(session, plan);
    }
    if (plan || run) {
      if (this.timeline) this.timeline.load(plan, run);
      else this.timeline = new Timeline(session, plan, run);
    }
    const names = ["graph", "list"];
    if (data.calls.size > 0 || data.oldCalls.size > 0) names.push("calls");
    if (plan) names.push("heat");
    if (plan || run) names.push("timeline");
    if (view.stages.some(({ text }) => text?.length)) names.push("ir");
    if (view.stages.length > 1) names.push("passes");
    if (view.constraints?.length) names.push("constraints");
    this.tabs.offer(names);
  }

  /** Draws the panel that is in view. */
  show() {
    for (const table of this.tables) table.draw();
    this.outline.draw();
    this.text.draw();
    this.text.mark(true);
    this.heat?.draw();
    this.timeline?.draw();
  }
}

/** The page, for the console of the browser; before its data are there, null. @type {App | null} */
let app = null;
