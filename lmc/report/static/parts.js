/**
 * The tree of what the graph draws: ops, and the groups that hold them.
 *
 * The tree holds the ops of all stages at once, so that an op keeps its place when the slider moves. Each stage shows
 * the part of it that its module has.
 */

/**
 * @typedef {"op" | "region" | "arm" | "fan" | "prefix" | "run"} PartKind
 *   region: an op with what it holds; arm: one of its several regions; fan: ops that do the same; prefix: the ops
 *   between a shared prefix and its calls; run: ops that follow each other, where there are very many
 */

/** Nodes in a group, and nodes that are visible at first: as many as stay readable. */
const MAX_NODES = 150;
/** Regions in each other that are open at first. */
const MAX_DEPTH = 2;

class Part {
  /**
   * @param {string} id
   * @param {PartKind} kind
   * @param {string} key the key of its op, or of its first one
   * @param {string} [region]
   */
  constructor(id, kind, key, region = "") {
    this.id = id;
    this.kind = kind;
    this.key = key;
    this.region = region;
    /** @type {Part | null} */
    this.parent = null;
    /** @type {Part[]} */
    this.children = [];
  }

  /** A group can be opened and folded. */
  get isGroup() {
    return this.children.length > 0;
  }

  /**
   * Yields the parts around this one, the next one first.
   * @returns {Generator<Part>}
   */
  *around() {
    for (let part = this.parent; part !== null && part.id !== ""; part = part.parent) yield part;
  }

  /**
   * Yields all ops in this part, itself included, in their order. Never recursive: regions nest deeply.
   * @returns {Generator<Part>}
   */
  *ops() {
    /** @type {Part[]} */
    const stack = [this];
    for (let part = stack.pop(); part !== undefined; part = stack.pop()) {
      if (part.kind === "op" || part.kind === "region") yield part;
      for (let index = part.children.length - 1; index >= 0; index--) stack.push(part.children[index]);
    }
  }

  /**
   * Takes these parts out of their parent and into this one.
   * @param {Part[]} parts
   */
  adopt(parts) {
    for (const part of parts) part.parent = this;
    this.children.push(...parts);
  }
}

/**
 * Returns the part of a scope that is a part or holds it, or null if the scope does not hold it.
 * @param {Part} scope
 * @param {Part} part
 * @returns {Part | null}
 */
function childOf(scope, part) {
  /** @type {Part | null} */
  let at = part;
  while (at !== null && at.parent !== scope) at = at.parent;
  return at;
}

class Parts {
  /** @param {ProgramData} data */
  constructor(data) {
    this.data = data;
    this.root = new Part("", "run", "");
    /** @type {Map<string, Part>} */
    this.byId = new Map([["", this.root]]);
    /** Of each stage the ops that stand elsewhere than in later stages. @type {Map<string, string>[]} */
    this.moved = [];
    this.placeOps();
    const scopes = [...this.byId.values()].filter((part) => part.isGroup);
    this.groupFans(scopes);
    this.groupPrefixes();
    for (const scope of [...this.byId.values()]) if (scope.isGroup && scope.kind !== "fan") this.groupRuns(scope);
    /** Model calls, and the groups that hold them. @type {Set<Part>} */
    this.calling = new Set();
    for (const key of data.calls.keys()) {
      const call = this.of(data.last, key);
      for (const part of [call, ...call.around()]) this.calling.add(part);
    }
  }

  /**
   * Returns the part of an op at a stage.
   * @param {number} stage
   * @param {string} key
   * @returns {Part}
   */
  of(stage, key) {
    return /** @type {Part} */ (this.byId.get(this.moved[stage].get(key) ?? key));
  }

  /** Makes a part for each op, and for each other place that it has in an earlier stage. */
  placeOps() {
    const { data } = this;
    /** @type {Map<Part, number>} */
    const order = new Map();
    /** The regions of each op. @type {Map<string, Set<string>>} */
    const regions = new Map();
    for (let stage = 0; stage <= data.last; stage++) {
      for (const node of data.state(stage).nodes.values()) {
        if (!node.parent) continue;
        const known = regions.get(node.parent) ?? new Set();
        regions.set(node.parent, known.add(node.region ?? ""));
      }
    }
    /** @type {Map<string, lmc.OpNode> | undefined} */
    let seen;
    for (let stage = data.last; stage >= 0; stage--) {
      const { nodes } = data.state(stage);
      if (nodes === seen) {
        this.moved[stage] = this.moved[stage + 1];
        continue;
      }
      seen = nodes;
      /** @type {Map<string, string>} */
      const moved = (this.moved[stage] = new Map());
      let position = 0;
      for (const node of nodes.values()) {
        const scope = this.scopeOf(stage, node, regions);
        let part = this.byId.get(node.key);
        if (part !== undefined && part.parent !== scope) {
          const id = `${node.key}@${scope.id}`;
          moved.set(node.key, id);
          part = this.byId.get(id);
          if (part === undefined) part = this.add(new Part(id, "op", node.key), scope);
        } else if (part === undefined) {
          part = this.add(new Part(node.key, "op", node.key), scope);
        }
        // An op that later stages do not have stands behind the one before it.
        const known = order.get(part);
        if (known === undefined) order.set(part, stage === data.last ? position + 1 : position + 1e-6);
        position = known ?? /** @type {number} */ (order.get(part));
      }
    }
    for (const part of this.byId.values()) {
      if (part.kind === "op" && part.isGroup) part.kind = "region";
      part.children.sort((a, b) => (order.get(a) ?? 0) - (order.get(b) ?? 0));
    }
  }

  /**
   * @param {number} stage
   * @param {lmc.OpNode} node
   * @param {Map<string, Set<string>>} regions
   * @returns {Part}
   */
  scopeOf(stage, node, regions) {
    if (!node.parent) return this.root;
    const around = this.of(stage, node.parent);
    if (/** @type {Set<string>} */ (regions.get(node.parent)).size < 2) return around;
    const id = `${around.id}/${node.region}`;
    return this.byId.get(id) ?? this.add(new Part(id, "arm", node.parent, node.region ?? ""), around);
  }

  /**
   * @param {Part} part
   * @param {Part} parent
   */
  add(part, parent) {
    this.byId.set(part.id, part);
    parent.adopt([part]);
    return part;
  }

  /**
   * Ops that are a fan-out in any stage become one group.
   * @param {Part[]} scopes
   */
  groupFans(scopes) {
    /** @type {Map<Part, Part>} */
    const first = new Map();
    /** @type {(part: Part) => Part} */
    const find = (part) => {
      let at = part;
      for (let up = first.get(at); up !== undefined; up = first.get(at)) at = up;
      return at;
    };
    let seen;
    for (let stage = this.data.last; stage >= 0; stage--) {
      const { fans } = this.data.state(stage);
      if (fans === seen) continue;
      seen = fans;
      for (const fan of fans) {
        const parts = fan.map((key) => this.of(stage, key));
        for (const part of parts) {
          const [to, from] = [find(parts[0]), find(part)];
          if (to !== from && to.parent === from.parent) first.set(from, to);
        }
      }
    }
    /** @type {Map<Part, Part[]>} */
    const fans = new Map();
    for (const scope of scopes) {
      for (const part of scope.children) {
        const to = find(part);
        fans.set(to, [...(fans.get(to) ?? []), part]);
      }
    }
    for (const members of fans.values()) if (members.length > 1) this.group("fan", members);
  }

  /**
   * Puts parts of one parent into a group, at the place of the first.
   * @param {PartKind} kind
   * @param {Part[]} members
   * @returns {Part}
   */
  group(kind, members) {
    const parent = /** @type {Part} */ (members[0].parent);
    const group = new Part(`${kind}:${members[0].id}`, kind, members[0].key);
    this.byId.set(group.id, group);
    const taken = new Set(members);
    parent.children = parent.children.flatMap((part) => (part === members[0] ? [group] : taken.has(part) ? [] : [part]));
    group.parent = parent;
    group.adopt(members);
    return group;
  }

  /** The ops on the ways from a shared prefix to its calls become one group. */
  groupPrefixes() {
    const { data } = this;
    const { nodes } = data.state(data.last);
    const prefills = new Set(data.prefixes.keys());
    /** Context edges of the last stage. @type {Map<string, string[]>} */
    const users = new Map();
    for (const node of nodes.values()) {
      for (const input of node.inputs ?? []) {
        if (input.kind === "context") users.set(input.key, [...(users.get(input.key) ?? []), node.key]);
      }
    }
    // A prefix before another one is grouped after it, and may hold its group.
    for (const prefix of [...data.prefixes.values()].reverse()) {
      const start = this.of(data.last, prefix.key);
      const scope = /** @type {Part} */ (start.parent);
      const below = new Set([prefix.key]);
      for (const key of below) {
        for (const user of users.get(key) ?? []) if (!prefills.has(user)) below.add(user);
      }
      const wanted = new Set((prefix.calls ?? []).filter((key) => below.has(key)));
      for (const key of wanted) {
        for (const input of nodes.get(key)?.inputs ?? []) {
          if (input.kind === "context" && below.has(input.key)) wanted.add(input.key);
        }
      }
      /** @type {Set<Part>} */
      const members = new Set([start]);
      for (const key of wanted) {
        const inScope = childOf(scope, this.of(data.last, key));
        if (inScope !== null) members.add(inScope);
      }
      // Hints to the cache stand with the calls that they serve.
      for (const part of scope.children) {
        const node = nodes.get(part.key);
        if (part.kind !== "op" || node?.kind !== "hint" || node.inputs === undefined) continue;
        const served = node.inputs.map((input) => childOf(scope, this.of(data.last, input.key)));
        if (served.every((each) => each !== null && members.has(each))) members.add(part);
      }
      for (const part of this.between(scope, members)) members.add(part);
      if (members.size > 1 && members.size < scope.children.length) {
        this.group("prefix", scope.children.filter((part) => members.has(part)));
      }
    }
  }

  /**
   * Returns the parts of a scope that wait for some of its members while others wait for them. A group without them
   * would have to stand both before and behind them.
   * @param {Part} scope
   * @param {Set<Part>} members
   */
  between(scope, members) {
    const { data } = this;
    /** @type {Map<Part, Set<Part>>} */
    const sources = new Map();
    /** @type {Map<Part, Set<Part>>} */
    const targets = new Map();
    for (const op of scope.ops()) {
      const target = childOf(scope, op);
      if (target === null) continue;
      for (const input of data.state(data.last).nodes.get(op.key)?.inputs ?? []) {
        const source = childOf(scope, this.of(data.last, input.key));
        if (source === null || source === target) continue;
        sources.set(target, (sources.get(target) ?? new Set()).add(source));
        targets.set(source, (targets.get(source) ?? new Set()).add(target));
      }
    }
    /** @type {(next: Map<Part, Set<Part>>) => Set<Part>} */
    const reached = (next) => {
      const found = new Set(members);
      for (const part of found) for (const each of next.get(part) ?? []) found.add(each);
      return found;
    };
    const before = reached(sources);
    return [...reached(targets)].filter((part) => before.has(part));
  }

  /**
   * Ops that follow each other become groups where a block has very many.
   * @param {Part} scope
   */
  groupRuns(scope) {
    while (scope.children.length > MAX_NODES) {
      const size = Math.ceil(Math.sqrt(scope.children.length));
      const children = [...scope.children];
      for (let start = 0; start < children.length; start += size) {
        const run = children.slice(start, start + size);
        if (run.length > 1) this.group("run", run);
      }
    }
  }

  /**
   * Returns the groups that are open at first: as many as stay readable. A fan-out stays one node, and so does a region
   * that holds nothing but its end: side by side with the others, it would make the graph wider.
   * @returns {Set<string>}
   */
  openAtFirst() {
    return this.opened(MAX_NODES, (part) => {
      if (part.kind === "run") return this.calling.has(part);
      if (part.kind === "arm" && part.children.length === 1) return false;
      return part.kind !== "fan" && [part, ...part.around()].filter(({ kind }) => kind === "region").length <= MAX_DEPTH;
    });
  }

  /**
   * Returns the groups to open if so many nodes may be visible. On the way to the first model call all are open; then
   * come those that hold calls, then the rest: outer ones before inner ones, and as the program has them.
   * @param {number} most
   * @param {(part: Part) => boolean} isWanted
   * @returns {Set<string>}
   */
  opened(most, isWanted) {
    const open = new Set([""]);
    let shown = this.root.children.length;
    for (const op of this.root.ops()) {
      if (!this.data.calls.has(op.key)) continue;
      for (const part of [...op.around()].reverse()) {
        if (part.kind === "fan") break;
        open.add(part.id);
        shown += part.children.length;
      }
      break;
    }
    for (const areCalling of [true, false]) {
      const groups = [this.root];
      for (const group of groups) {
        for (const part of group.children) {
          if (!part.isGroup) continue;
          const fits = this.calling.has(part) === areCalling && shown + part.children.length <= most && isWanted(part);
          if (!open.has(part.id) && fits) {
            open.add(part.id);
            shown += part.children.length;
          }
          if (open.has(part.id)) groups.push(part);
        }
      }
    }
    return open;
  }
}
