/** The data of the page, and what is looked up in them. */

/**
 * The state of the program at a stage: its ops in their order, and the text of the module.
 * @typedef {object} State
 * @property {Map<string, lmc.OpNode>} nodes
 * @property {string[][]} fans
 * @property {string[]} text
 * @property {number[]} lines the line (from 0) at which each op begins, in the order of `nodes`
 */

/** @typedef {"added" | "changed" | "removed"} Mark */

class ProgramData {
  /** @param {lmc.CompiledView} view */
  constructor(view) {
    this.view = view;
    /** @type {Map<string, lmc.CallCost>} */
    this.calls = new Map((view.calls ?? []).map((call) => [call.key, call]));
    /** The calls of the first of two modules that are compared. @type {Map<string, lmc.CallCost>} */
    this.oldCalls = new Map((view.old?.calls ?? []).map((call) => [call.key, call]));
    /** @type {Map<string, lmc.Prefix>} */
    this.prefixes = new Map((view.prefixes ?? []).map((prefix) => [prefix.key, prefix]));
    this.critical = new Set(view.critical_path ?? []);
    /** The ids of all ops that any stage has. */
    this.ids = new Set(view.stages.flatMap(({ added = [], changed = [] }) => [...added, ...changed].map((node) => node.id)));
    /** @type {State[]} */
    this.states = [];
    /** The ops that are shown at a stage. @type {Map<number, Map<string, lmc.OpNode>>} */
    this.shownAt = new Map();
    /** The fan-out of each of its ops. @type {WeakMap<string[][], Map<string, string[]>>} */
    this.fanOf = new WeakMap();
    /** The numbers of the remarks on each op that a stage has. @type {Map<string, number[]>} */
    this.remarksByOp = new Map();
    /** The numbers of the other remarks by source and line. @type {Map<string, number[]>} */
    this.remarksByLine = new Map();
    for (const [number, { op, place }] of (view.remarks ?? []).entries()) {
      const isOfOp = op && this.ids.has(op);
      const name = isOfOp ? op : lineName(place);
      const index = isOfOp ? this.remarksByOp : this.remarksByLine;
      const known = index.get(name);
      if (known === undefined) index.set(name, [number]);
      else known.push(number);
    }
  }

  /** The index of the last stage. */
  get last() {
    return this.view.stages.length - 1;
  }

  /**
   * Returns the state at a stage: the differences up to there, applied.
   * @param {number} stage
   * @returns {State}
   */
  state(stage) {
    for (let next = this.states.length; next <= stage; next++) {
      const before = this.states[next - 1] ?? { nodes: new Map(), fans: [], text: [], lines: [] };
      this.states.push(after(before, this.view.stages[next]));
    }
    return this.states[stage];
  }

  /**
   * Returns the ops that a stage adds, changes and removes. The first stage changes none: it is the beginning.
   * @param {number} stage
   * @returns {Map<string, Mark>}
   */
  marks(stage) {
    /** @type {Map<string, Mark>} */
    const marks = new Map();
    if (stage === 0) return marks;
    const { added = [], changed = [], removed = [] } = this.view.stages[stage];
    for (const node of added) marks.set(node.key, "added");
    for (const node of changed) marks.set(node.key, "changed");
    for (const key of removed) marks.set(key, "removed");
    return marks;
  }

  /**
   * Returns the ops that are shown at a stage: those of its module, and those that it removes.
   * @param {number} stage
   * @returns {Map<string, lmc.OpNode>}
   */
  shown(stage) {
    const removed = stage === 0 ? [] : (this.view.stages[stage].removed ?? []);
    const nodes = this.state(stage).nodes;
    if (removed.length === 0) return nodes;
    let all = this.shownAt.get(stage);
    if (all === undefined) {
      const before = this.state(stage - 1).nodes;
      this.shownAt.set(stage, (all = new Map(nodes)));
      for (const key of removed) all.set(key, /** @type {lmc.OpNode} */ (before.get(key)));
    }
    return all;
  }

  /**
   * Returns the fan-out that an op is in at a stage.
   * @param {number} stage
   * @param {string} key
   * @returns {string[] | undefined}
   */
  fan(stage, key) {
    const { fans } = this.state(stage);
    let known = this.fanOf.get(fans);
    if (known === undefined) this.fanOf.set(fans, (known = new Map(fans.flatMap((fan) => fan.map((each) => [each, fan])))));
    return known.get(key);
  }

  /**
   * Returns the remarks on an op: those that name it, and those at its place that name none.
   * @param {lmc.OpNode | undefined} node
   * @returns {lmc.RemarkView[]}
   */
  remarksOn(node) {
    const { remarks = [] } = this.view;
    if (node === undefined || remarks.length === 0) return [];
    const atPlace = (this.remarksByLine.get(lineName(node.place)) ?? []).filter((number) => isAt(remarks[number].place, node.place));
    return [...(this.remarksByOp.get(node.id ?? "") ?? []), ...atPlace].sort((a, b) => a - b).map((number) => remarks[number]);
  }

  /**
   * Returns a line of a source as text.
   * @param {lmc.SourceLine} place
   */
  placeText(place) {
    return `${this.view.sources[place.source].file}:${place.line}`;
  }
}

/**
 * Returns the state behind a stage.
 * @param {State} before
 * @param {lmc.StageView} stage
 * @returns {State}
 */
function after(before, stage) {
  const { added = [], changed = [], removed = [] } = stage;
  let nodes = before.nodes;
  if (added.length || changed.length || removed.length || stage.order) {
    const known = new Map(before.nodes);
    for (const node of [...changed, ...added]) known.set(node.key, node);
    for (const key of removed) known.delete(key);
    nodes = known;
    if (stage.order) {
      nodes = new Map(stage.order.map((key) => [key, /** @type {lmc.OpNode} */ (known.get(key))]));
    }
  }
  return {
    nodes,
    fans: stage.fans ?? before.fans,
    text: changedText(before.text, stage.text ?? []).map((line) => line.text),
    lines: stage.lines ?? before.lines,
  };
}

/**
 * Returns the lines of a changed text; with `withRemoved` also those that are gone, where they stood.
 * @param {string[]} text
 * @param {lmc.Hunk[]} hunks in their order; the lines are those of the old text
 * @param {boolean} [withRemoved]
 * @returns {{text: string, mark?: "added" | "removed"}[]}
 */
function changedText(text, hunks, withRemoved = false) {
  /** @type {{text: string, mark?: "added" | "removed"}[]} */
  const found = [];
  let at = 0;
  for (const hunk of hunks) {
    while (at < hunk.at) found.push({ text: text[at++] });
    for (const stop = hunk.at + (hunk.removed ?? 0); at < stop; at++) {
      if (withRemoved) found.push({ text: text[at], mark: "removed" });
    }
    for (const line of hunk.added ?? []) found.push({ text: line, mark: "added" });
  }
  while (at < text.length) found.push({ text: text[at++] });
  return found;
}

/** @param {lmc.SourceLine | null | undefined} place */
function lineName(place) {
  return place ? `${place.source}:${place.line}` : "";
}

/**
 * True if two places are the same, as far as both are known: columns may not be.
 * @param {lmc.SourceLine | null | undefined} a
 * @param {lmc.SourceLine | null | undefined} b
 */
function isAt(a, b) {
  return Boolean(a && b && a.source === b.source && a.line === b.line && (!a.column || !b.column || a.column === b.column));
}
