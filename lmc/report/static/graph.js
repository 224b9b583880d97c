/** The graph: what is visible of the tree of parts, drawn by cytoscape. */

/** @typedef {{id: string, part: Part, keys: string[], isOpen: boolean}} Visible */
/** @typedef {{source: string, target: string, kind: "order" | "value" | "context", critical: boolean}} DrawnEdge */
/** @typedef {{weights: number[], distances: number[]}} Bends */

const MAX_UNFOLDED = 1500;
/** Elements that the drawing takes at once: their style is found together. */
const PIECE = 20;
/** Labels are too small below this. */
const MIN_READABLE = 0.8;
const ZOOM = 0.9;
/** An end nearer to the border of its group has nothing below it (or above it). */
const NEAR = 40;
/** The distance of an edge from the row that it runs along. */
const BETWEEN = 8;
/** The pixels across a graph that is printed. */
const MOST_PRINTED = 3000;
/** Titles of groups are drawn before all else. */
const TITLES = 1e6;
/** Edges at one end that are drawn faintly. */
const MANY_EDGES = 12;

class Graph {
  /**
   * @param {Session} session
   * @param {Colours} colours
   */
  constructor(session, colours) {
    this.session = session;
    this.colours = colours;
    this.labels = new Labels(session);
    this.layout = this.newLayout(new Worker_());
    /** The tree that is drawn: until other data are laid out, it is that of the data before. @type {Parts | undefined} */
    this.drawn = undefined;
    /** @type {Map<string, Spot>} */
    this.spots = new Map();
    /** @type {Map<string, Points>} */
    this.routes = new Map();
    /** The bends of edges between these spots. @type {Map<string, Bends | null>} */
    this.bends = new Map();
    /** Each element of the drawing, as text. @type {Map<string, string>} */
    this.elements = new Map();
    /** The places and sizes of the nodes of the drawing. @type {Map<string, Spot>} */
    this.placed = new Map();
    /** Those that a piece of the drawing has changed. @type {any[]} */
    this.touched = [];
    /** The elements that are drawn as selected. @type {Set<string>} */
    this.marked = new Set();
    /** What is drawn, in the order of the program. @type {Map<string, Visible>} */
    this.visible = new Map();
    this.box = byId("graph");
    this.cy = vendor.cytoscape({
      container: this.box,
      style: this.style(),
      layout: { name: "preset" },
      autoungrabify: true,
      boxSelectionEnabled: false,
      selectionType: "single",
      minZoom: 0.02,
      maxZoom: 3,
      hideEdgesOnViewport: false,
    });
    this.isFitted = false;
    /** The node that keeps its place, and where it is. @type {{id: string, spot: Spot} | undefined} */
    this.held = undefined;
    /** Counts requests for a layout; an earlier one that ends later is left out. */
    this.turn = 0;
    /** Counts what is drawn, in pieces. */
    this.picture = 0;
    this.drawing = Promise.resolve();
    this.listen();
    session.on(["data"], () => {
      this.layout = this.newLayout(this.layout.worker);
      void this.arrange();
    });
    session.on(["stage"], () => this.draw());
    session.on(["open"], () => void this.arrange());
    session.on(["selection"], () => this.showSelection());
    session.on(["theme"], () => {
      colours.read();
      this.cy.style(this.style());
      if (matchMedia("print").matches) this.print();
      else this.draw();
    });
    addEventListener("beforeprint", () => this.print());
    addEventListener("afterprint", () => byId("graph-print").replaceChildren());
  }

  /** Makes the picture of all of the graph that is printed, as wide as the paper: the drawing has the size of the screen. */
  print() {
    if (this.visible.size === 0) return;
    this.draw({ isWhole: true });
    const options = { full: true, bg: this.colours.variable("back"), maxWidth: MOST_PRINTED, maxHeight: MOST_PRINTED };
    byId("graph-print").replaceChildren(this.cy.renderer().bufferCanvasImage(options));
  }

  /** @param {Worker_} worker */
  newLayout(worker) {
    const { data, parts } = this.session;
    return new Layout(worker, data, parts, (part) => this.labels.sizeOf(part));
  }

  listen() {
    this.cy.on("tap", (/** @type {any} */ event) => {
      if (event.target === this.cy) this.session.select([]);
      else if (event.target.isNode()) this.choose(event.target.data("part"));
      this.box.focus({ preventScroll: true });
    });
    this.cy.on("dbltap", "node", (/** @type {any} */ event) => this.toggle(event.target.data("part")));
    this.box.addEventListener("keydown", (event) => this.onKey(event));
    new ResizeObserver(() => {
      this.cy.resize();
      if (this.box.clientWidth > 0 && !this.isFitted) this.fit();
    }).observe(this.box);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    /** @type {Record<string, () => void>} */
    const keys = {
      ArrowDown: () => (event.shiftKey ? this.cy.panBy({ x: 0, y: -60 }) : this.step(1)),
      ArrowUp: () => (event.shiftKey ? this.cy.panBy({ x: 0, y: 60 }) : this.step(-1)),
      Enter: () => this.toggle(this.current()),
      " ": () => this.toggle(this.current()),
      "+": () => this.zoom(1.3),
      "=": () => this.zoom(1.3),
      "-": () => this.zoom(1 / 1.3),
      0: () => this.fit(),
      Escape: () => this.session.select([]),
    };
    if (event.shiftKey) {
      keys.ArrowLeft = () => this.cy.panBy({ x: 60, y: 0 });
      keys.ArrowRight = () => this.cy.panBy({ x: -60, y: 0 });
    }
    const action = keys[event.key];
    if (action === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    action();
  }

  /**
   * Selects the node that is so many behind the selected one.
   * @param {number} by
   */
  step(by) {
    const ids = [...this.visible.keys()];
    if (ids.length === 0) return;
    const at = ids.indexOf(this.current());
    const to = at < 0 ? (by > 0 ? 0 : ids.length - 1) : Math.min(Math.max(at + by, 0), ids.length - 1);
    this.choose(ids[to]);
    this.bringIntoView(ids[to]);
  }

  /** The node that was chosen last. */
  current() {
    return this.chosen !== undefined && this.visible.has(this.chosen) ? this.chosen : "";
  }

  /**
   * Selects the ops of a node.
   * @param {string} id
   */
  choose(id) {
    const found = this.visible.get(id);
    if (found === undefined || this.drawn !== this.session.parts) return;
    const { part } = found;
    this.session.select(part.kind === "op" || part.kind === "region" ? [part.key] : found.keys);
    this.chosen = id;
    this.showSelection();
  }

  /** @param {string} id */
  toggle(id) {
    const spot = this.spots.get(id);
    if (spot === undefined || !this.visible.get(id)?.part.isGroup || this.drawn !== this.session.parts) return;
    this.held = { id, spot };
    this.session.toggle(id);
  }

  /**
   * Holds the nodes in their places on the screen while other data are laid out: the chosen one, else the one in the
   * middle of those that the other data have.
   * @param {(part: Part) => Part | undefined} other returns the same part in the other data
   */
  hold(other) {
    const { x1, x2, y1, y2 } = this.cy.extent();
    const far = (/** @type {Spot} */ spot) => Math.hypot(spot.x - (x1 + x2) / 2, spot.y - (y1 + y2) / 2);
    const current = this.current();
    /** @type {Part | undefined} */
    let chosen;
    this.held = undefined;
    let least = Infinity;
    for (const { id, part, isOpen } of this.visible.values()) {
      const spot = /** @type {Spot} */ (this.spots.get(id));
      const distance = id === current ? -1 : far(spot);
      if ((isOpen && id !== current) || distance >= least) continue;
      const same = other(part);
      if (id === current) chosen = same;
      if (same === undefined) continue;
      least = distance;
      this.held = { id: same.id, spot };
    }
    this.chosen = chosen?.id;
    this.wanted = undefined;
  }

  /** @param {number} factor */
  zoom(factor) {
    const [x, y] = [this.cy.width() / 2, this.cy.height() / 2];
    this.cy.zoom({ level: this.cy.zoom() * factor, renderedPosition: { x, y } });
  }

  /** Shows all of the graph; a large one from its beginning, as large as can be read. */
  fit() {
    if (this.box.clientWidth === 0 || this.visible.size === 0) return;
    this.isFitted = true;
    this.cy.resize();
    // From the places alone: the library would first find the style of each element.
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    const include = (/** @type {number} */ x, /** @type {number} */ y) => {
      [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
    };
    for (const id of this.visible.keys()) {
      const { x, y, width, height } = /** @type {Spot} */ (this.spots.get(id));
      include(x - width / 2, y - height / 2);
      include(x + width / 2, y + height / 2);
    }
    for (const points of this.routes.values()) for (const [x, y] of points) include(x, y);
    const [wide, high] = [this.cy.width(), this.cy.height()];
    const zoom = Math.max(Math.min((wide - 48) / (right - left), (high - 48) / (bottom - top), 1), this.cy.minZoom());
    this.cy.viewport({ zoom, pan: { x: (wide - zoom * (left + right)) / 2, y: (high - zoom * (top + bottom)) / 2 } });
  }

  /** Shows the first model call, below what leads to it, of a graph that is too large to be read as a whole. */
  begin() {
    this.fit();
    if (this.cy.zoom() >= MIN_READABLE) return;
    const all = [...this.visible.values()];
    const { calls } = this.session.data;
    const { id } = all.find(({ keys, isOpen }) => !isOpen && keys.some((key) => calls.has(key))) ?? all[0];
    const spot = /** @type {Spot} */ (this.spots.get(id));
    this.cy.zoom(ZOOM);
    const bottom = (spot.y + spot.height / 2) * ZOOM;
    const top = bottom + 32 <= this.cy.height() ? 24 : this.cy.height() * 0.75 - bottom;
    this.cy.pan({ x: this.cy.width() / 2 - spot.x * ZOOM, y: top });
  }

  /** Opens all groups, up to a number of nodes. */
  unfoldAll() {
    const { session } = this;
    const open = session.parts.opened(MAX_UNFOLDED, () => true);
    const isWhole = [...session.parts.byId.values()].every((part) => !part.isGroup || open.has(part.id));
    if (!isWhole) announce(`Unfolded up to ${number(MAX_UNFOLDED)} nodes`);
    for (const id of open) session.open.add(id);
    this.isFitted = false;
    session.changed("open");
  }

  /** Folds all groups. */
  foldAll() {
    this.session.open.clear();
    this.session.open.add("");
    this.isFitted = false;
    this.session.changed("open");
  }

  /** Lays out what is open, and draws it. The node that is held keeps its place on the screen. */
  async arrange() {
    const turn = ++this.turn;
    const { parts } = this.session;
    const { spots, routes } = await this.layout.place(new Set(this.session.open));
    if (turn !== this.turn) return;
    this.spots = spots;
    this.routes = routes;
    this.bends.clear();
    this.drawn = parts;
    this.draw();
    const before = this.held?.spot;
    const after = spots.get(this.held?.id ?? "");
    this.held = undefined;
    if (before !== undefined && after !== undefined) {
      const zoom = this.cy.zoom();
      const top = (/** @type {Spot} */ spot) => spot.y - spot.height / 2;
      this.cy.panBy({ x: (before.x - after.x) * zoom, y: (top(before) - top(after)) * zoom });
    }
    if (!this.isFitted) this.begin();
    if (this.wanted !== undefined) this.bringIntoView(this.wanted);
    await this.settled();
    if (turn === this.turn) this.box.dataset.laidOut = String(turn);
  }

  /**
   * Draws what the shown stage has of the parts that are laid out: in pieces, or all of it at once.
   * @param {{isWhole?: boolean}} [options]
   */
  draw({ isWhole = false } = {}) {
    const { session, spots } = this;
    if (this.drawn !== session.parts) return;
    const shown = session.data.shown(session.stage);
    const marks = session.data.marks(session.stage);
    /** The visible part of each op. @type {Map<string, string>} */
    const standsFor = new Map();
    this.visible = new Map();
    const stack = [...session.parts.root.children].reverse();
    for (let part = stack.pop(); part !== undefined; part = stack.pop()) {
      if (!spots.has(part.id)) continue;
      const keys = session.keysOf(part);
      if (keys.length === 0) continue;
      const isOpen = part.isGroup && part.children.some((child) => spots.has(child.id));
      this.visible.set(part.id, { id: part.id, part, keys, isOpen });
      if (isOpen) {
        for (let index = part.children.length - 1; index >= 0; index--) stack.push(part.children[index]);
        if (part.kind === "region") standsFor.set(part.key, part.id);
      } else {
        for (const key of keys) standsFor.set(key, part.id);
      }
    }
    this.showSelection();
    const edges = this.edgesBetween(shown, standsFor);
    const wanted = new Set(edges.keys());
    for (const { id, isOpen } of this.visible.values()) {
      wanted.add(`p:${id}`);
      if (isOpen) wanted.add(`t:${id}`);
    }
    this.drawing = this.replace(wanted, this.elementsOf(marks, shown, edges), isWhole);
    const kinds = new Set([...this.visible.values()].map(({ part, keys }) => this.labels.kindOf(part, shown.get(keys[0]))));
    byId("legend").replaceChildren(...this.colours.legend(kinds));
    this.box.setAttribute(
      "aria-label",
      `Graph of ${counted(this.visible.size, "node")}, stage ${session.data.view.stages[session.stage].name}. ` +
        "Up and down select a node, Enter opens or folds a group, plus and minus zoom, 0 shows all. " +
        "The tab List has the same as a list.",
    );
  }

  /**
   * Yields what cytoscape draws: the nodes, then the edges.
   * @param {Map<string, Mark>} marks
   * @param {Map<string, lmc.OpNode>} shown
   * @param {Map<string, DrawnEdge>} edges
   */
  *elementsOf(marks, shown, edges) {
    yield* this.nodeElements(marks);
    yield* this.edgeElements(shown, edges);
  }

  /**
   * @param {Map<string, Mark>} marks
   * @returns {Generator<any>}
   */
  *nodeElements(marks) {
    const { session, labels, colours } = this;
    const { data, stage } = session;
    const isLast = stage === data.last;
    const largest = colours.largest;
    const shown = data.shown(stage);
    for (const { id, part, keys, isOpen } of this.visible.values()) {
      const spot = /** @type {Spot} */ (this.spots.get(id));
      const label = labels.of(part, stage, keys, isOpen);
      const kind = labels.kindOf(part, shown.get(part.kind === "fan" ? keys[0] : part.key));
      const own = part.kind === "op" || part.kind === "region" ? [part.key] : isOpen ? [] : keys;
      const found = new Set((isOpen || part.kind === "op" ? own : keys).map((key) => marks.get(key)).filter((mark) => mark !== undefined));
      const mark = found.size === 1 ? [...found][0] : found.size > 1 ? "changed" : undefined;
      const isMarked = mark !== undefined && (keys.every((key) => marks.get(key) === mark) || part.kind !== "op");
      const colour = isOpen ? { fill: colours.variable("group"), line: colours.variable("line"), text: colours.variable("text") } : colours.of(kind, keys, largest);
      const critical = isLast && !isOpen && keys.some((key) => data.critical.has(key));
      const lines = [...label.lines];
      if (isMarked && mark) lines[0] = `${MARK_SIGNS[mark]} ${lines[0]}`;
      // The title of an open group stands at the left, where few edges come in, and before those.
      const title = isOpen ? labels.width(lines[0], label.font, label.bold) + 8 : 0;
      if (isOpen) {
        yield {
          group: "nodes",
          data: { id: `t:${id}`, part: id, op: "", label: lines[0], width: title, height: 16, font: label.font, weight: "bold", fill: colour.fill, text: colour.text, line: colour.fill, thick: 0, dash: "solid" },
          position: { x: spot.x - spot.width / 2 + 12 + title / 2, y: spot.y - spot.height / 2 + 12 },
          classes: "title",
        };
      }
      yield {
        group: "nodes",
        data: {
          id: `p:${id}`,
          part: id,
          // Around a removed op stands the region that held it, which may be elsewhere by now.
          op: (part.kind === "op" || part.kind === "region") && session.partOf(part.key) === part && shown.has(part.key) ? part.key : "",
          label: isOpen ? "" : lines.join("\n"),
          width: spot.width,
          height: spot.height,
          font: label.font,
          weight: label.bold ? "bold" : "normal",
          fill: colour.fill,
          text: colour.text,
          line: mark ? colours.variable(mark) : critical ? colours.variable("critical") : colour.line,
          thick: mark ? 3 : critical ? 3 : isOpen ? 1 : 1.5,
          dash: mark === "removed" || (!isOpen && part.isGroup) ? "dashed" : "solid",
        },
        position: { x: spot.x, y: spot.y },
        classes: `${isOpen ? "open" : kind} ${mark ?? ""}`,
      };
    }
  }

  /**
   * Returns the edges by the ids of their elements.
   * @param {Map<string, lmc.OpNode>} shown
   * @param {Map<string, string>} standsFor
   * @returns {Map<string, DrawnEdge>}
   */
  edgesBetween(shown, standsFor) {
    const { session, visible } = this;
    const isLast = session.stage === session.data.last;
    const rank = { order: 0, value: 1, context: 2 };
    const path = new Map([...session.data.critical].map((key, index) => [key, index]));
    const placeOnPath = (/** @type {string} */ key) => path.get(key) ?? -1;
    /** @type {Map<string, DrawnEdge>} */
    const found = new Map();
    for (const node of shown.values()) {
      const target = standsFor.get(node.key);
      if (target === undefined) continue;
      const latest = path.has(node.key) ? Math.max(0, ...(node.inputs ?? []).map((input) => placeOnPath(input.key))) : -2;
      for (const input of node.inputs ?? []) {
        const source = standsFor.get(input.key);
        if (source === undefined || source === target) continue;
        if (visible.get(source)?.isOpen && this.holds(source, target)) continue;
        if (visible.get(target)?.isOpen && this.holds(target, source)) continue;
        const id = `e:${source}\n${target}`;
        const isCritical = isLast && placeOnPath(input.key) === latest;
        const known = found.get(id);
        if (known === undefined) found.set(id, { source, target, kind: input.kind, critical: isCritical });
        else {
          if (rank[input.kind] > rank[known.kind]) known.kind = input.kind;
          known.critical ||= isCritical;
        }
      }
    }
    return found;
  }

  /**
   * @param {Map<string, lmc.OpNode>} shown
   * @param {Map<string, DrawnEdge>} edges
   * @returns {Generator<any>}
   */
  *edgeElements(shown, edges) {
    const { visible } = this;
    /** The edges of each end. @type {Map<string, number>} */
    const degrees = new Map();
    for (const { source, target } of edges.values()) {
      for (const end of [`${source}>`, `>${target}`]) degrees.set(end, (degrees.get(end) ?? 0) + 1);
    }
    for (const [id, { source, target, kind, critical }] of edges) {
      let bends = this.bends.get(id);
      if (bends === undefined) this.bends.set(id, (bends = this.bendsOf(source, target)));
      const end = this.labels.kindOf(/** @type {Visible} */ (visible.get(target)).part, shown.get(/** @type {Visible} */ (visible.get(target)).keys[0]));
      const most = Math.max(degrees.get(`${source}>`) ?? 0, degrees.get(`>${target}`) ?? 0);
      const isFaint = end === "hint" || end === "end" || most > MANY_EDGES;
      yield {
        group: "edges",
        data: { id, source: `p:${source}`, target: `p:${target}`, ...bends },
        classes: `${kind} ${critical ? "critical" : isFaint ? "faint" : ""} ${bends ? "bent" : ""}`,
      };
    }
  }

  /**
   * Returns the bends of an edge as cytoscape has them: how far along the line from centre to centre, and how far from it.
   * @param {string} source
   * @param {string} target
   * @returns {Bends | null}
   */
  bendsOf(source, target) {
    const { byId } = this.session.parts;
    const beside = besideEachOther(/** @type {Part} */ (byId.get(source)), /** @type {Part} */ (byId.get(target)));
    const points = beside === null ? undefined : this.routes.get(`${beside[0].id}\n${beside[1].id}`);
    if (beside === null || points === undefined) return null;
    const [from, to] = [/** @type {Spot} */ (this.spots.get(source)), /** @type {Spot} */ (this.spots.get(target))];
    const out = this.wayOut(source, beside[0], points[0]?.[0] ?? to.x, 1);
    const entry = this.wayOut(target, beside[1], points.at(-1)?.[0] ?? from.x, -1).reverse();
    const inner = [...out, ...points, ...entry];
    if (inner.length === 0) return null;
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const length = Math.hypot(dx, dy);
    if (length === 0) return null;
    const weights = inner.map(([x, y]) => ((x - from.x) * dx + (y - from.y) * dy) / length ** 2);
    const distances = inner.map(([x, y]) => ((y - from.y) * dx - (x - from.x) * dy) / length);
    return { weights, distances };
  }

  /**
   * Returns the way of an edge from its end out of the groups around it, downwards (1) or upwards (-1): straight where
   * nothing is in between, else along the side of the group.
   * @param {string} id
   * @param {Part} outermost
   * @param {number} toward where it leads to: the side that it takes where both are free
   * @param {1 | -1} direction
   * @returns {Points}
   */
  wayOut(id, outermost, toward, direction) {
    const spotOf = (/** @type {Part} */ part) => /** @type {Spot} */ (this.spots.get(part.id));
    const edgeOf = (/** @type {Spot} */ spot) => spot.y + (direction * spot.height) / 2;
    /** @type {Points} */
    const points = [];
    let part = /** @type {Part} */ (this.session.parts.byId.get(id));
    let { x } = spotOf(part);
    for (; part !== outermost; part = /** @type {Part} */ (part.parent)) {
      const spot = spotOf(part);
      const group = spotOf(/** @type {Part} */ (part.parent));
      if (direction * (edgeOf(group) - edgeOf(spot)) > NEAR) {
        const row = /** @type {Part} */ (part.parent).children
          .map((each) => this.spots.get(each.id))
          .filter((each) => each !== undefined && each !== spot && Math.abs(each.y - spot.y) < (each.height + spot.height) / 2);
        const near = toward < group.x ? -1 : 1;
        const free = points.length > 0 ? undefined : [near, -near].find((side) => row.every((each) => (/** @type {Spot} */ (each).x - spot.x) * side < 0));
        // Out of a node at its side; a group is left below its row. A group is reached near its border.
        const level =
          free === undefined
            ? direction * Math.max(...[spot, ...row].map((each) => direction * edgeOf(/** @type {Spot} */ (each)))) + direction * BETWEEN
            : edgeOf(spot) - direction * Math.min(spot.height / 2, TITLE);
        if (free === undefined) points.push([x, level]);
        x = group.x + (free ?? near) * (group.width / 2 - PADDING / 2);
        points.push([x, level]);
      }
      points.push([x, edgeOf(group)]);
    }
    return points;
  }

  /**
   * True if one part is around the other.
   * @param {string} outer
   * @param {string} inner
   */
  holds(outer, inner) {
    for (const part of /** @type {Part} */ (this.session.parts.byId.get(inner)).around()) if (part.id === outer) return true;
    return false;
  }

  /**
   * Draws these elements instead of those that are drawn. The page must not stand still, so this goes in slices, until
   * something else is to be drawn.
   * @param {Set<string>} wanted
   * @param {Iterable<any>} elements
   * @param {boolean} isWhole all in one slice
   */
  async replace(wanted, elements, isWhole) {
    const picture = ++this.picture;
    const steps = this.steps(wanted, elements);
    let isDone = false;
    const piece = () => {
      for (let count = 0; count < PIECE && !isDone; count++) isDone = steps.next().done === true;
    };
    for (;;) {
      const until = performance.now() + SLICE;
      do {
        this.cy.batch(piece);
        // Their style is found now, and not that of all slices in one frame.
        for (const each of this.touched.splice(0)) each.numericStyle("opacity");
      } while (!isDone && (isWhole || performance.now() < until));
      if (isDone) return;
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      if (this.picture !== picture) return;
    }
  }

  /**
   * Does the steps of `replace`. No edge is drawn while one of its ends is not yet at its place or of its size.
   * @param {Set<string>} wanted
   * @param {Iterable<any>} elements
   * @returns {Generator<void>}
   */
  *steps(wanted, elements) {
    const { cy, placed } = this;
    /** @type {Map<string, Spot>} */
    const moved = new Map();
    for (const id of this.visible.keys()) {
      const [before, spot] = [placed.get(id), /** @type {Spot} */ (this.spots.get(id))];
      const isMoved = before !== undefined && before !== spot;
      if (isMoved && (before.x !== spot.x || before.y !== spot.y || before.width !== spot.width || before.height !== spot.height)) moved.set(id, spot);
    }
    for (const id of [...this.elements.keys()]) {
      if (!id.startsWith("e:") || (wanted.has(id) && !id.slice(2).split("\n").some((end) => moved.has(end)))) continue;
      this.remove(id);
      yield;
    }
    for (const [id, spot] of moved) {
      placed.set(id, spot);
      cy.getElementById(`p:${id}`).position({ x: spot.x, y: spot.y });
    }
    for (const id of [...this.elements.keys()]) {
      if (wanted.has(id)) continue;
      this.remove(id);
      yield;
    }
    for (const element of elements) {
      this.put(element);
      yield;
    }
  }

  /** @param {string} id of an element */
  remove(id) {
    this.elements.delete(id);
    if (id.startsWith("p:")) this.placed.delete(id.slice(2));
    this.cy.getElementById(id).remove();
  }

  /** Resolves when all that is to be drawn is. */
  async settled() {
    let drawing;
    do {
      drawing = this.drawing;
      await drawing;
    } while (drawing !== this.drawing);
  }

  /**
   * Draws an element, unless it is drawn so.
   * @param {any} element
   */
  put(element) {
    const { id } = element.data;
    const text = JSON.stringify(element);
    if (this.elements.get(id) === text) return;
    this.elements.set(id, text);
    if (id.startsWith("p:")) this.placed.set(element.data.part, /** @type {Spot} */ (this.spots.get(element.data.part)));
    const classes = this.marked.has(id) ? `${element.classes} selected` : element.classes;
    const known = this.cy.getElementById(id);
    if (known.empty()) this.touched.push(this.cy.add({ ...element, classes }));
    else {
      known.data(element.data);
      known.classes(classes);
      if (element.position) known.position(element.position);
      this.touched.push(known);
    }
  }

  /** Marks the nodes that hold selected ops; if nothing of the selection is in view, moves there. */
  showSelection() {
    const { cy, session } = this;
    /** @type {string[]} */
    const ids = [];
    for (const { id, part, keys, isOpen } of this.visible.values()) {
      const own = part.kind === "region" ? session.selected.has(part.key) : false;
      if (own || (!isOpen && keys.some((key) => session.selected.has(key)))) ids.push(id);
    }
    const current = this.current();
    const chosen = /** @type {Visible | undefined} */ (this.visible.get(current));
    if (chosen?.isOpen && chosen.keys.some((key) => session.selected.has(key))) ids.push(current);
    else if (ids.length > 0 && !ids.includes(current)) this.chosen = ids[0];
    const wanted = new Set(ids.map((id) => `p:${id}`));
    const before = this.marked;
    this.marked = wanted;
    cy.batch(() => {
      for (const id of before) if (!wanted.has(id)) cy.getElementById(id).removeClass("selected");
      for (const id of wanted) if (!before.has(id)) cy.getElementById(id).addClass("selected");
    });
    this.box.dataset.selected = String(wanted.size);
  }

  /** Moves the selection into view, now and after a layout that is on its way. */
  goToSelection() {
    const first = [...this.session.selected][0];
    if (first === undefined) return;
    this.wanted = this.session.partOf(first).id;
    this.bringIntoView(this.wanted);
  }

  /** @param {string} id */
  bringIntoView(id) {
    const part = this.session.parts.byId.get(id);
    if (part === undefined) return;
    const at = [part, ...part.around()].find((each) => this.visible.has(each.id));
    if (at === undefined) return;
    if (at.id === id) this.wanted = undefined;
    // The place of the node, which may not be drawn yet.
    const { cy } = this;
    const { x, y, width, height } = /** @type {Spot} */ (this.spots.get(at.id));
    const pan = cy.pan();
    const [left, top] = [(x - width / 2) * cy.zoom() + pan.x, (y - height / 2) * cy.zoom() + pan.y];
    const isInside = left >= 0 && top >= 0 && left + width * cy.zoom() <= cy.width() && top + height * cy.zoom() <= cy.height();
    if (isInside && cy.zoom() >= MIN_READABLE) return;
    if (cy.zoom() < MIN_READABLE) cy.zoom(ZOOM);
    cy.pan({ x: cy.width() / 2 - x * cy.zoom(), y: cy.height() / 2 - y * cy.zoom() });
  }

  /** @returns {any[]} */
  style() {
    const { colours } = this;
    return [
      {
        selector: "node",
        style: {
          label: "data(label)",
          width: "data(width)",
          height: "data(height)",
          "font-size": "data(font)",
          "font-weight": "data(weight)",
          "font-family": FONT,
          "text-wrap": "wrap",
          "text-max-width": "2000px",
          "text-valign": "center",
          "text-halign": "center",
          "line-height": 1.25,
          color: "data(text)",
          "background-color": "data(fill)",
          "border-color": "data(line)",
          "border-width": "data(thick)",
          "border-style": "data(dash)",
          shape: "round-rectangle",
          "z-index-compare": "manual",
          "z-index": 2,
          "min-zoomed-font-size": 3,
        },
      },
      {
        selector: "node.open",
        style: { "background-opacity": 0.5, "z-index": 0 },
      },
      { selector: "node.title", style: { "z-index": TITLES } },
      { selector: "node.tool", style: { shape: "bottom-round-rectangle" } },
      { selector: "node.prefix", style: { shape: "barrel" } },
      { selector: "node.break", style: { shape: "cut-rectangle" } },
      { selector: "node.python, node.end, node.hint", style: { shape: "rectangle" } },
      { selector: "node.removed", style: { opacity: 0.65 } },
      {
        selector: "node.selected",
        style: { "outline-width": 4, "outline-color": colours.variable("accent"), "outline-offset": 2 },
      },
      {
        selector: "edge",
        style: {
          width: 1.5,
          "line-color": colours.variable("edge"),
          "target-arrow-color": colours.variable("edge"),
          "target-arrow-shape": "triangle",
          "arrow-scale": 0.8,
          "curve-style": "bezier",
          "z-index-compare": "manual",
          "z-index": 1,
        },
      },
      {
        selector: "edge.bent",
        style: {
          "curve-style": "round-segments",
          "segment-weights": "data(weights)",
          "segment-distances": "data(distances)",
          "segment-radii": 12,
          "edge-distances": "node-position",
        },
      },
      { selector: "edge.faint", style: { opacity: 0.35, width: 1 } },
      { selector: "edge.value", style: { "line-style": "dashed", "line-dash-pattern": [6, 3] } },
      { selector: "edge.order", style: { "line-style": "dotted", width: 1 } },
      {
        selector: "edge.critical",
        style: {
          width: 3.5,
          "line-color": colours.variable("critical"),
          "target-arrow-color": colours.variable("critical"),
        },
      },
    ];
  }
}
