/**
 * Places the nodes of the graph.
 *
 * Each open group is laid out alone, by dagre in a worker made from this file, and is then one node of the group around
 * it. So a layout has at most a few hundred nodes, and opening a group changes only the groups around it.
 */

/** @typedef {{id: string, width: number, height: number}} Box */
/** @typedef {{boxes: Box[], edges: [string, string][]}} Piece a group to lay out */
/** @typedef {[number, number][]} Points */
/**
 * Centres, and bends of edges without their ends, from the top left.
 * @typedef {{width: number, height: number, places: [string, number, number][], routes: [string, Points][]}} Placed
 */
/** @typedef {{x: number, y: number, width: number, height: number}} Spot a centre and a size */

const PADDING = 14;
const TITLE = 24;

/**
 * Lays a piece out. Runs in the worker, and uses nothing of this page but the library that it is given.
 * @param {any} dagre
 * @param {Piece} piece
 * @returns {Placed}
 */
function layOut(dagre, piece) {
  const gap = 18;
  const fewest = 9;
  const tallest = 120;
  const ends = 5;
  const edgesep = 8;
  const mostPassed = 500;
  // Many nodes with the same sources and targets stand in a grid, which dagre has as one node.
  /** @type {Map<string, {before: string[], behind: string[]}>} */
  const beside = new Map(piece.boxes.map((box) => [box.id, { before: [], behind: [] }]));
  for (const [source, target] of piece.edges) {
    beside.get(target)?.before.push(source);
    beside.get(source)?.behind.push(target);
  }
  /** @type {Map<string, Box[]>} */
  const alike = new Map();
  for (const box of piece.boxes) {
    const { before, behind } = /** @type {{before: string[], behind: string[]}} */ (beside.get(box.id));
    const key = before.length + behind.length > 0 && box.height < tallest ? `${before.sort().join()}\n\n${behind.sort().join()}` : box.id;
    const known = alike.get(key);
    if (known === undefined) alike.set(key, [box]);
    else known.push(box);
  }
  /** @type {Map<string, {id: string, x: number, y: number}>} */
  const inGrid = new Map();
  /** The names of the grids. @type {Set<string>} */
  const grids = new Set();
  /** @type {Box[]} */
  const all = [];
  for (const boxes of alike.values()) {
    if (boxes.length < fewest) {
      all.push(...boxes);
      continue;
    }
    const width = Math.max(...boxes.map((box) => box.width)) + gap;
    const height = Math.max(...boxes.map((box) => box.height)) + gap;
    const columns = Math.max(1, Math.round(Math.sqrt((boxes.length * 1.6 * height) / width)));
    const rows = Math.ceil(boxes.length / columns);
    const { id } = boxes[0];
    for (const [index, box] of boxes.entries()) {
      const x = ((index % columns) + 0.5 - columns / 2) * width;
      inGrid.set(box.id, { id, x, y: (Math.floor(index / columns) + 0.5 - rows / 2) * height });
    }
    grids.add(id);
    all.push({ id, width: columns * width, height: rows * height });
  }
  const nameOf = (/** @type {string} */ id) => inGrid.get(id)?.id ?? id;
  /** @type {Map<string, [string, string]>} */
  const edges = new Map();
  for (const [source, target] of piece.edges) {
    const edge = /** @type {[string, string]} */ ([nameOf(source), nameOf(target)]);
    edges.set(edge.join("\n"), edge);
  }
  /** @type {Map<string, string>} */
  const above = new Map();
  /** @type {(id: string) => string} */
  const find = (id) => {
    let at = id;
    for (let up = above.get(at); up !== undefined; up = above.get(at)) at = up;
    if (at !== id) above.set(id, at);
    return at;
  };
  for (const [source, target] of edges.values()) {
    const [a, b] = [find(source), find(target)];
    if (a !== b) above.set(b, a);
  }
  /** @type {Map<string, Box[]>} */
  const connected = new Map();
  for (const box of all) {
    const root = find(box.id);
    const known = connected.get(root);
    if (known === undefined) connected.set(root, [box]);
    else known.push(box);
  }
  /** @type {Placed[]} */
  const islands = [];
  for (const [root, boxes] of connected) {
    if (boxes.length === 1) {
      const [box] = boxes;
      islands.push({ width: box.width, height: box.height, places: [[box.id, box.width / 2, box.height / 2]], routes: [] });
      continue;
    }
    const own = [...edges.values()].filter(([source]) => find(source) === root);
    /** The row of each box by the longest way from the top, and the boxes behind it. @type {Map<string, {row: number, before: number, behind: string[]}>} */
    const states = new Map(boxes.map((box) => [box.id, { row: 0, before: 0, behind: [] }]));
    const stateOf = (/** @type {string} */ id) => /** @type {{row: number, before: number, behind: string[]}} */ (states.get(id));
    for (const [source, target] of own) {
      stateOf(source).behind.push(target);
      stateOf(target).before += 1;
    }
    const ready = boxes.filter((box) => stateOf(box.id).before === 0).map((box) => box.id);
    for (const id of ready) {
      for (const target of stateOf(id).behind) {
        const state = stateOf(target);
        state.row = Math.max(state.row, stateOf(id).row + 1);
        if (--state.before === 0) ready.push(target);
      }
    }
    // An edge is a node for dagre in each row that it passes, which takes seconds if there are thousands. Edges beyond
    // that stand beside the rest, the longest ones, where the order of rows follows from others.
    const lengthOf = (/** @type {[string, string]} */ [source, target]) => stateOf(target).row - stateOf(source).row;
    /** @type {Map<string, string[]>} */
    const kept = new Map(boxes.map((box) => [box.id, []]));
    const isImplied = (/** @type {[string, string]} */ [source, target]) => {
      const { row } = stateOf(target);
      const reached = new Set([source]);
      for (const id of reached) {
        for (const next of kept.get(id) ?? []) if (next === target || stateOf(next).row < row) reached.add(next);
      }
      return reached.has(target);
    };
    /** @type {[string, string][]} */
    const inRows = [];
    /** @type {[string, string][]} */
    const outside = [];
    let passed = 0;
    for (const edge of [...own].sort((a, b) => lengthOf(a) - lengthOf(b))) {
      passed += Math.max(lengthOf(edge) - 1, 0);
      if (passed > mostPassed && lengthOf(edge) > 1 && isImplied(edge)) outside.push(edge);
      else {
        inRows.push(edge);
        kept.get(edge[0])?.push(edge[1]);
      }
    }
    if (outside.length === 0) inRows.splice(0, inRows.length, ...own);
    const graph = new dagre.graphlib.Graph();
    const ranker = boxes.length > 100 ? "tight-tree" : "network-simplex";
    graph.setGraph({ rankdir: "TB", nodesep: gap, edgesep, ranksep: 34, ranker, rankalign: "top" });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const box of boxes) graph.setNode(box.id, { width: box.width, height: box.height });
    for (const [source, target] of inRows) graph.setEdge(source, target);
    try {
      dagre.layout(graph);
    } catch {
      // Its recursion is too deep for a long chain.
      /** @type {Box[][]} */
      const stacked = [];
      for (const box of boxes) (stacked[stateOf(box.id).row] ??= []).push(box);
      let [top, widest] = [0, 0];
      for (const row of stacked) {
        let left = 0;
        const height = Math.max(...(row ?? []).map((box) => box.height), 0);
        for (const box of row ?? []) {
          Object.assign(graph.node(box.id), { x: left + box.width / 2, y: top + box.height / 2 });
          left += box.width + gap;
        }
        widest = Math.max(widest, left - gap);
        top += height + 34;
      }
      Object.assign(graph.graph(), { width: widest, height: top - 34 });
      for (const [source, target] of inRows) graph.edge(source, target).points = [graph.node(source), graph.node(target)];
    }
    const size = graph.graph();
    /** @type {[string, number, number][]} */
    const places = boxes.map((box) => [box.id, graph.node(box.id).x, graph.node(box.id).y]);
    /** The bottom of each row by its top. @type {Map<number, number>} */
    const rows = new Map();
    const topOf = (/** @type {string} */ id) => Math.round(graph.node(id).y - graph.node(id).height / 2);
    for (const { id } of boxes) rows.set(topOf(id), Math.max(rows.get(topOf(id)) ?? 0, graph.node(id).y + graph.node(id).height / 2));
    /** Edges are vertical beside the nodes of a row, however high one is, and change their place between rows only. */
    const routeOf = (/** @type {string} */ source, /** @type {string} */ target) => {
      const points = graph.edge(source, target).points.slice(grids.has(source) ? 0 : 1, grids.has(target) ? undefined : -1);
      const isUp = topOf(target) < topOf(source);
      /** @type {Points} */
      const route = points.flatMap((/** @type {{x: number, y: number}} */ { x, y }) => {
        const bottom = rows.get(Math.round(y));
        return bottom === undefined ? [[x, y]] : isUp ? [[x, bottom], [x, y]] : [[x, y], [x, bottom]];
      });
      if (isUp) return route;
      // Else a flat piece at an end would run across the neighbours of that end.
      const [from, to] = [graph.node(source), graph.node(target)];
      const bottom = /** @type {number} */ (rows.get(topOf(source)));
      const isBeside = (/** @type {any} */ end, /** @type {number} */ x) => Math.abs(x - end.x) > end.width / 2;
      const [first, last] = [route.length > 0 ? route[0][0] : to.x, route.length > 0 ? route[route.length - 1][0] : from.x];
      if (!grids.has(source) && (isBeside(from, first) || bottom - (from.y + from.height / 2) > 1)) route.unshift([from.x, bottom + ends]);
      if (!grids.has(target) && isBeside(to, last)) route.push([to.x, to.y - to.height / 2 - 2 * ends]);
      return route;
    };
    /** @type {[string, Points][]} */
    const routes = inRows.map(([source, target]) => [`${source}\n${target}`, routeOf(source, target)]);
    /** The edges in each column on the right. Those that pass the same row have an end in common. @type {[string, string][][]} */
    const columns = [];
    const canShare = (/** @type {[string, string]} */ one, /** @type {[string, string]} */ other) =>
      one[0] === other[0] || one[1] === other[1] || topOf(one[0]) >= topOf(other[1]) || topOf(other[0]) >= topOf(one[1]);
    for (const edge of outside.reverse()) {
      let column = columns.findIndex((others) => others.every((other) => canShare(edge, other)));
      if (column < 0) column = columns.push([]) - 1;
      columns[column].push(edge);
      const [from, to] = edge.map((id) => graph.node(id));
      const below = /** @type {number} */ (rows.get(topOf(edge[0]))) + ends;
      const above = to.y - to.height / 2 - 2 * ends;
      const x = size.width + gap + column * edgesep;
      routes.push([edge.join("\n"), [[from.x, below], [x, below], [x, above], [to.x, above]]]);
    }
    islands.push({ width: size.width + (columns.length > 0 ? gap + columns.length * edgesep : 0), height: size.height, places, routes });
  }
  // Islands stand in rows, in the order of the program: a few in one row, as edges from above would cross others.
  const area = islands.reduce((sum, island) => sum + (island.width + gap) * (island.height + gap), 0);
  const widest = Math.max(...islands.map((island) => island.width));
  const most = islands.length < fewest ? Infinity : Math.max(Math.sqrt(area * 1.6), widest);
  /** @type {[string, number, number][]} */
  const places = [];
  /** @type {[string, Points][]} */
  const routes = [];
  let [x, y, row, width] = [0, 0, 0, 0];
  for (const island of islands) {
    if (x > 0 && x + island.width > most) [x, y, row] = [0, y + row + 2 * gap, 0];
    for (const [id, left, top] of island.places) places.push([id, x + left, y + top]);
    for (const [id, points] of island.routes) routes.push([id, points.map(([left, top]) => [x + left, y + top])]);
    width = Math.max(width, x + island.width);
    x += island.width + 2 * gap;
    row = Math.max(row, island.height);
  }
  if (inGrid.size === 0) return { width, height: y + row, places, routes };
  const centres = new Map(places.map(([id, left, top]) => [id, [left, top]]));
  const centreOf = (/** @type {string} */ id) => {
    const cell = inGrid.get(id);
    const [left, top] = /** @type {[number, number]} */ (centres.get(cell?.id ?? id));
    return /** @type {[number, number]} */ ([left + (cell?.x ?? 0), top + (cell?.y ?? 0)]);
  };
  const known = new Map(routes);
  return {
    width,
    height: y + row,
    places: piece.boxes.map((box) => [box.id, ...centreOf(box.id)]),
    routes: piece.edges.map(([source, target]) => [`${source}\n${target}`, /** @type {Points} */ (known.get(`${nameOf(source)}\n${nameOf(target)}`))]),
  };
}

/** Lays pieces out in a worker; where the browser allows none, here, with a pause between pieces. */
class Worker_ {
  constructor() {
    /** @type {Map<number, [Piece, (placed: Placed) => void]>} */
    this.waiting = new Map();
    this.count = 0;
    /** @type {Worker | null} */
    this.worker = null;
    const code = [
      byId("vendor").textContent,
      layOut.toString(),
      "onmessage = ({data: [number, piece]}) => postMessage([number, layOut(vendor.dagre, piece)]);",
    ];
    try {
      this.worker = new Worker(URL.createObjectURL(new Blob(code.map((part) => `${part}\n`), { type: "text/javascript" })));
      this.worker.onmessage = ({ data: [number, placed] }) => {
        this.waiting.get(number)?.[1](placed);
        this.waiting.delete(number);
      };
      this.worker.onerror = () => {
        this.worker = null;
        for (const [piece, resolve] of this.waiting.values()) resolve(layOut(vendor.dagre, piece));
        this.waiting.clear();
      };
    } catch {
      this.worker = null;
    }
  }

  /**
   * @param {Piece} piece
   * @returns {Promise<Placed>}
   */
  layOut(piece) {
    const { worker } = this;
    if (worker === null) {
      return new Promise((resolve) => setTimeout(() => resolve(layOut(vendor.dagre, piece))));
    }
    return new Promise((resolve) => {
      this.waiting.set(++this.count, [piece, resolve]);
      worker.postMessage([this.count, piece]);
    });
  }
}

/**
 * Returns the parts around two parts that are in one group, or null if one of them holds the other.
 * @param {Part} source
 * @param {Part} target
 * @returns {[Part, Part] | null}
 */
function besideEachOther(source, target) {
  const path = [target, ...target.around()];
  /** @type {Part | null} */
  let from = source;
  while (from !== null && !path.some((part) => part.parent === /** @type {Part} */ (from).parent)) from = from.parent;
  if (from === null) return null;
  const to = path.find((part) => part.parent === /** @type {Part} */ (from).parent);
  return to === undefined || to === from ? null : [from, to];
}

class Layout {
  /**
   * @param {Worker_} worker
   * @param {ProgramData} data
   * @param {Parts} parts
   * @param {(part: Part) => Size} sizeOf the size of a part that is not open
   */
  constructor(worker, data, parts, sizeOf) {
    this.worker = worker;
    this.parts = parts;
    this.sizeOf = sizeOf;
    /** The edges between the children of each group. @type {Map<Part, Map<string, [string, string]>>} */
    this.edges = new Map();
    /** @type {Map<Part, Part>} */
    this.joined = new Map();
    /** @type {Map<string, Promise<Placed>>} */
    this.known = new Map();
    /** The parts of the last stage. @type {Set<Part>} */
    const kept = new Set();
    for (const key of data.state(data.last).nodes.keys()) {
      const part = parts.of(data.last, key);
      kept.add(part);
      for (const around of part.around()) kept.add(around);
    }
    // The last stage decides. What it does not have hangs below the parts that it came after, or else above one that
    // came after it: edges on both sides would push the parts of the last stage away from each other.
    /** @type {[Part, Part][]} */
    const upward = [];
    let seen;
    for (let stage = data.last; stage >= 0; stage--) {
      const { nodes } = data.state(stage);
      if (nodes === seen) continue;
      seen = nodes;
      for (const node of nodes.values()) {
        for (const input of node.inputs ?? []) {
          const beside = besideEachOther(parts.of(stage, input.key), parts.of(stage, node.key));
          if (beside === null) continue;
          if (stage === data.last || !kept.has(beside[1])) this.addEdge(...beside);
          else if (!kept.has(beside[0])) upward.push(beside);
        }
      }
    }
    for (const [from, to] of upward) if (this.find(from) !== this.find(to)) this.addEdge(from, to);
  }

  /**
   * Adds an edge between two parts of a group.
   * @param {Part} from
   * @param {Part} to
   */
  addEdge(from, to) {
    const group = /** @type {Part} */ (from.parent);
    const edges = this.edges.get(group) ?? new Map();
    this.edges.set(group, edges);
    // The stages together may have a cycle; the later stage counts.
    if (!edges.has(`${to.id}\n${from.id}`)) edges.set(`${from.id}\n${to.id}`, [from.id, to.id]);
    this.joined.set(this.find(to), this.find(from));
  }

  /**
   * Returns a part that stands for all that edges join with this one.
   * @param {Part} part
   */
  find(part) {
    let at = part;
    for (let up = this.joined.get(at); up !== undefined && up !== at; up = this.joined.get(at)) at = up;
    if (at !== part) this.joined.set(part, at);
    return at;
  }

  /**
   * Returns the spots of all parts that are visible where these groups are open, and the bends of the edges between
   * parts of one group.
   * @param {ReadonlySet<string>} open
   * @returns {Promise<{spots: Map<string, Spot>, routes: Map<string, Points>}>}
   */
  async place(open) {
    /** @type {Map<Part, Placed>} */
    const placed = new Map();
    const visible = this.openGroups(open);
    for (const group of visible.reverse()) placed.set(group, await this.placeGroup(group, placed));
    /** @type {Map<string, Spot>} */
    const spots = new Map();
    /** @type {Map<string, Points>} */
    const routes = new Map();
    /** @type {[Part, number, number][]} */
    const stack = [[this.parts.root, 0, 0]];
    for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
      const [group, left, top] = next;
      const inside = /** @type {Placed} */ (placed.get(group));
      for (const [id, points] of inside.routes) routes.set(id, points.map(([x, y]) => [left + x, top + y]));
      for (const [id, x, y] of inside.places) {
        const part = /** @type {Part} */ (this.parts.byId.get(id));
        const { width, height } = this.boxOf(part, placed);
        spots.set(id, { x: left + x, y: top + y, width, height });
        const within = placed.get(part);
        if (within !== undefined) stack.push([part, left + x - within.width / 2, top + y - height / 2 + TITLE]);
      }
    }
    return { spots, routes };
  }

  /**
   * Returns the groups that are open and visible, outer ones first.
   * @param {ReadonlySet<string>} open
   */
  openGroups(open) {
    const groups = [this.parts.root];
    for (const group of groups) {
      for (const part of group.children) if (part.isGroup && open.has(part.id)) groups.push(part);
    }
    return groups;
  }

  /**
   * @param {Part} part
   * @param {Map<Part, Placed>} placed
   * @returns {Box}
   */
  boxOf(part, placed) {
    const inside = placed.get(part);
    const { width, height, title } = this.sizeOf(part);
    if (inside === undefined) return { id: part.id, width, height };
    return {
      id: part.id,
      // Edges come in at the middle, beside the title.
      width: Math.max(inside.width + 2 * PADDING, width, 2 * (title + 2 * PADDING)),
      height: inside.height + TITLE + PADDING,
    };
  }

  /**
   * @param {Part} group
   * @param {Map<Part, Placed>} placed the groups in it
   * @returns {Promise<Placed>}
   */
  placeGroup(group, placed) {
    const boxes = group.children.map((part) => this.boxOf(part, placed));
    const key = `${group.id}\n${boxes.map((box) => `${box.width} ${box.height}`).join()}`;
    const known = this.known.get(key);
    if (known !== undefined) return known;
    const found = this.worker.layOut({ boxes, edges: [...(this.edges.get(group)?.values() ?? [])] });
    this.known.set(key, found);
    return found;
  }
}
