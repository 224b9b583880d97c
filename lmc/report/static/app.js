/** Starts the page. */

/** @param {lmc.CompiledView} view */
function start(view) {
  const { program, plan } = view;
  byId("title").textContent = program.name;
  const figures = [counted(program.ops, "op"), counted(program.model_calls, "call"), counted(program.waves, "wave")];
  if (program.saved_tokens) figures.push(`saves ${counted(program.saved_tokens, "token")} an instance`);
  if (plan) figures.push(`${counted(plan.row_count, "row")}, ${number(plan.predicted_seconds)} s predicted`);
  byId("summary").textContent = figures.join(" · ");
  const notices = [...(view.notices ?? [])];
  if (view.redacted) notices.push("texts are replaced by their lengths");
  if (view.comparison) notices.push("two modules are compared; figures are those of the second");
  for (const each of view.breaks ?? []) if (!each.place) notices.push(`graph break: ${each.cause}. Remedy: ${each.remedy}`);
  for (const each of view.hints ?? []) if (!each.place) notices.push(each.message);
  byId("notices").replaceChildren(...notices.map((notice) => make("li", {}, notice)));

  const data = new ProgramData(view);
  const session = new Session(data, new Parts(data));
  const colours = new Colours(data);
  const graph = new Graph(session, colours);
  const outline = new Outline(session, graph);
  const text = new ModuleText(session);
  const heat = plan ? new Heat(session, plan) : null;
  const timeline = plan ? new Timeline(session, plan) : null;
  new Slider(session);
  new SourcePane(session);
  new SelectionPane(session);
  new Search(session);
  const chooser = /** @type {HTMLSelectElement} */ (byId("colour"));
  for (const mode of colours.modes) chooser.append(make("option", { value: mode.name }, mode.title));
  chooser.addEventListener("change", () => {
    colours.choose(chooser.value);
    graph.draw();
  });
  byId("zoom-in").addEventListener("click", () => graph.zoom(1.3));
  byId("zoom-out").addEventListener("click", () => graph.zoom(1 / 1.3));
  byId("zoom-fit").addEventListener("click", () => graph.fit());
  byId("unfold").addEventListener("click", () => graph.unfoldAll());
  byId("fold").addEventListener("click", () => graph.foldAll());
  byId("critical").addEventListener("click", () => session.select(view.critical_path ?? [], { reveal: true }));
  byId("critical").hidden = data.critical.size === 0;
  document.addEventListener("go-to-selection", () => graph.goToSelection());

  /** The tables are made when they are first shown. @type {Map<string, () => unknown>} */
  const tables = new Map();
  tables.set("calls", () => callTable(session));
  tables.set("passes", () => passTable(session));
  tables.set("constraints", () => constraintTable(session));
  const names = ["graph", "list", "ir", "passes"];
  if (data.calls.size > 0) names.push("calls");
  if (plan) names.push("heat", "timeline");
  if (view.constraints?.length) names.push("constraints");
  const tabs = new Tabs(names, (name) => {
    tables.get(name)?.();
    tables.delete(name);
    outline.draw();
    text.draw();
    text.mark(true);
    heat?.draw();
    timeline?.draw();
  });
  tabs.show("graph");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => session.changed("theme"));
  void graph.arrange().then(() => document.body.setAttribute("data-ready", ""));
  return { session, graph, timeline };
}

/** For the console of the browser. */
const app = start(JSON.parse(byId("data").textContent ?? ""));
