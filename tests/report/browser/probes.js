// What the tests ask of a page. `app` is the page's own: lmc/report/static/app.js.
globalThis.probe = {
  /** Opens all groups. */
  async unfold() {
    app.graph.unfoldAll();
    await new Promise((done) => setTimeout(done));
    await app.graph.arrange();
  },

  /** The ops that are drawn. */
  async ops() {
    await app.graph.settled();
    return app.graph.cy.nodes().map((node) => node.data("op")).filter(Boolean).sort();
  },

  /** The ops that are drawn as added, changed and removed. */
  async marked() {
    await app.graph.settled();
    const marks = ["added", "changed", "removed"];
    const of = (mark) => app.graph.cy.nodes(`.${mark}`).map((node) => node.data("op")).filter(Boolean).sort();
    return Object.fromEntries(marks.map((mark) => [mark, of(mark)]));
  },

  /** The number of nodes of model calls that are in view, with words that can be read. */
  readable() {
    const { cy } = app.graph;
    const isInView = ({ x1, x2, y1, y2 }) => x1 >= 0 && y1 >= 0 && x2 <= cy.width() && y2 <= cy.height();
    const nodes = cy.nodes(".call").filter((node) => !node.hasClass("open") && isInView(node.renderedBoundingBox()));
    return cy.zoom() < 0.8 ? 0 : nodes.length;
  },

  /** Lets a slice of work end with its first piece, or last as long as it does. */
  now: performance.now.bind(performance),
  hurry(isFast) {
    let time = probe.now();
    performance.now = isFast ? () => (time += 1e6) : probe.now;
  },

  /** All that is drawn, in words. */
  picture: () =>
    Object.fromEntries(
      app.graph.cy.elements().map((one) => [one.id(), JSON.stringify([one.data(), one.isNode() ? one.position() : 0, one.classes().filter(Boolean).sort()])]),
    ),

  /** Moves the slider through positions at once, in slices; returns what changes in the first one, and in all. */
  async slide(stages) {
    const { graph, session } = app;
    const touched = new Set();
    const note = (event) => touched.add(event.target.id());
    graph.cy.on("data add remove", note);
    probe.hurry(true);
    for (const stage of stages) session.show(stage);
    const first = touched.size;
    await graph.settled();
    probe.hurry(false);
    graph.cy.off("data add remove", note);
    return { first, all: touched.size, picture: probe.picture() };
  },

  /** Draws all of the graph anew, at once. */
  redraw() {
    app.graph.cy.elements().remove();
    app.graph.elements.clear();
    app.graph.placed.clear();
    app.graph.draw({ isWhole: true });
    return probe.picture();
  },

  /** The rows whose cells do not stand below the headings of their columns, of those that are in view. */
  crooked(name) {
    const box = document.querySelector(`#table-${name} .scroll`);
    const heads = [...box.querySelectorAll("th")].map((head) => head.getBoundingClientRect());
    const bottom = box.getBoundingClientRect().bottom;
    const rows = [...box.querySelectorAll("tbody tr:not(.below)")].filter((row) => row.getBoundingClientRect().top < bottom);
    return rows.filter((row) => [...row.cells].some((cell, at) => {
      const { left, right } = cell.getBoundingClientRect();
      return Math.abs(left - heads[at].left) > 0.5 || Math.abs(right - heads[at].right) > 0.5 || cell.scrollWidth > cell.clientWidth + 1;
    })).map((row) => row.innerText);
  },

  /** The words of the folded nodes that hold model calls. */
  callsInFolded() {
    const { session, visible, cy } = app.graph;
    const folded = [...visible.values()].filter(({ part, isOpen }) => part.isGroup && !isOpen);
    const calling = folded.filter(({ keys }) => keys.some((key) => session.data.calls.has(key)));
    return calling.map(({ id }) => cy.getElementById(`p:${id}`).data("label"));
  },

  /** The place of an op on the screen, once it is in view. */
  bring(key) {
    app.session.select([key]);
    app.graph.goToSelection();
    app.session.select([]);
    const at = app.graph.cy.getElementById(`p:${key}`).renderedPosition();
    const box = document.getElementById("graph").getBoundingClientRect();
    return { x: box.x + at.x, y: box.y + at.y };
  },

  /** What the keyboard should reach. */
  controls() {
    const all = [...document.querySelectorAll("button, select, input, [tabindex]")];
    return all.filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0);
  },

  watchFocus() {
    document.activeElement.blur();
    probe.reached = new Set();
    document.addEventListener("focusin", (event) => probe.reached.add(event.target));
  },

  missed: () => probe.controls().filter((one) => !probe.reached.has(one)).map((one) => one.outerHTML.slice(0, 120)),

  /** Adds a place to paste into. */
  addPaste() {
    const area = document.createElement("textarea");
    area.id = "paste";
    document.body.append(area);
    area.focus();
  },

  /** The longest time in milliseconds that the page stands still while many groups are laid out and drawn. */
  async longestPause() {
    let [longest, last, isDone] = [0, performance.now(), false];
    const tick = () => {
      const now = performance.now();
      longest = Math.max(longest, now - last);
      last = now;
      if (!isDone) setTimeout(tick);
    };
    tick();
    await probe.unfold();
    await new Promise((done) => setTimeout(done));
    isDone = true;
    return longest;
  },

  /** The visible controls that the window cuts off or that something else covers, once they are scrolled to. */
  unreachable() {
    const wide = document.documentElement.clientWidth;
    const controls = [...document.querySelectorAll("button, select, input, summary, [tabindex]")];
    return controls
      .filter((control) => control.checkVisibility({ contentVisibilityAuto: true }) && control.getClientRects().length > 0)
      .filter((control) => {
        control.scrollIntoView({ block: "center", inline: "center" });
        const box = control.getBoundingClientRect();
        const [left, right] = [Math.max(box.left, 0), Math.min(box.right, wide)];
        const [top, bottom] = [Math.max(box.top, 0), Math.min(box.bottom, window.innerHeight)];
        const isRegion = box.width > 200 && box.height > 60;
        for (let around = control.parentElement; around !== null; around = around.parentElement) {
          const { top: above, bottom: below, left: before, right: behind } = around.getBoundingClientRect();
          const isClip = getComputedStyle(around).overflow === "hidden";
          if (isClip && (box.top < above - 1 || box.bottom > below + 1 || box.left < before - 1 || box.right > behind + 1)) return true;
        }
        if (!isRegion && (box.left < 0 || box.right > wide || box.top < 0 || box.bottom > window.innerHeight)) return true;
        const over = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
        return !control.contains(over);
      })
      .map((control) => control.id || control.outerHTML.slice(0, 120));
  },

  /** The parts of the page that overlap, and those that are wider than the window. */
  overlapping() {
    const parts = [document.querySelector("header"), document.querySelector("aside"), ...document.querySelectorAll("main > section")];
    const boxes = parts.filter((part) => part.checkVisibility()).map((part) => [part.id || part.tagName, part.getBoundingClientRect()]);
    const wide = boxes.filter(([, box]) => box.left < 0 || box.right > document.documentElement.clientWidth + 0.5).map(([name]) => name);
    const over = boxes.flatMap(([one, a], at) =>
      boxes.slice(0, at).filter(([, b]) => a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5).map(([other]) => `${other} ${one}`),
    );
    return [...wide, ...over];
  },

  /** The rectangles of the nodes. */
  boxes: () =>
    app.graph.cy.nodes().map((node) => {
      const [{ x, y }, { width, height, part }] = [node.position(), node.data()];
      const isOpen = node.hasClass("open");
      return { part, isOpen, left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 };
    }),

  /** The edges that run across a node, of those that are not drawn faintly, and the number of these. */
  crossings() {
    const { cy } = app.graph;
    const boxes = cy.nodes(":visible").filter((node) => !node.hasClass("open") && !node.hasClass("title"));
    const places = boxes.map((node) => ({ node, ...node.position(), w: node.data("width") / 2 - 1, h: node.data("height") / 2 - 1 }));
    const edges = cy.edges().filter((edge) => !edge.hasClass("faint"));
    const isAcross = (edge) => {
      const ends = [edge.source().id(), edge.target().id()];
      const points = [edge.sourceEndpoint(), ...(edge.segmentPoints() ?? []), edge.targetEndpoint()];
      return points.slice(1).some((to, index) => {
        const from = points[index];
        const count = Math.ceil(Math.hypot(to.x - from.x, to.y - from.y) / 3) + 1;
        return Array.from({ length: count + 1 }).some((_, step) => {
          const x = from.x + ((to.x - from.x) * step) / count;
          const y = from.y + ((to.y - from.y) * step) / count;
          return places.some((box) => !ends.includes(box.node.id()) && Math.abs(x - box.x) < box.w && Math.abs(y - box.y) < box.h);
        });
      });
    };
    return { across: edges.filter(isAcross).length, all: edges.length };
  },

  /** Lays a group out, and says which boxes overlap, or leave the group, and which edges run across a box. */
  layOut(piece) {
    const placed = layOut(vendor.dagre, piece);
    const size = new Map(piece.boxes.map((box) => [box.id, box]));
    const boxes = new Map(
      placed.places.map(([id, x, y]) => {
        const { width, height } = size.get(id);
        return [id, { left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2, x, y }];
      }),
    );
    const overlaps = [];
    const all = [...boxes];
    for (const [at, [id, one]] of all.entries()) {
      const isInside = one.left > -0.5 && one.top > -0.5 && one.right < placed.width + 0.5 && one.bottom < placed.height + 0.5;
      if (!isInside) overlaps.push(id);
      for (const [other, two] of all.slice(0, at)) {
        const isApart = one.right <= two.left + 0.5 || two.right <= one.left + 0.5 || one.bottom <= two.top + 0.5 || two.bottom <= one.top + 0.5;
        if (!isApart) overlaps.push([id, other]);
      }
    }
    const across = placed.routes.filter(([edge, route]) => {
      const ends = edge.split("\n");
      const others = all.filter(([id]) => !ends.includes(id)).map(([, box]) => box);
      const [from, to] = ends.map((id) => boxes.get(id));
      const points = [[from.x, from.y], ...route, [to.x, to.y]];
      return points.slice(1).some(([x2, y2], at) => {
        const [x1, y1] = points[at];
        const count = Math.ceil(Math.hypot(x2 - x1, y2 - y1) / 3) + 1;
        return Array.from({ length: count + 1 }).some((_, step) => {
          const x = x1 + ((x2 - x1) * step) / count;
          const y = y1 + ((y2 - y1) * step) / count;
          return others.some((box) => x > box.left + 1 && x < box.right - 1 && y > box.top + 1 && y < box.bottom - 1);
        });
      });
    });
    return { overlaps, across: across.map(([edge]) => edge), routes: placed.routes.length };
  },

  /** The remarks on a call in the table of calls. */
  remarks(key) {
    const below = document.querySelector(`#table-calls tr[data-op="${key}"]`).nextElementSibling;
    return below?.classList.contains("below") ? below.innerText.replace("remarks: ", "").split("\n") : [];
  },

  /** The place of a request of the timeline on the screen, once it is in view. */
  requestAt(index) {
    const { timeline } = app;
    timeline.choose(index);
    app.session.select([]);
    timeline.chosen = -1;
    const { ready, ended } = timeline.entries[index];
    const { from, to } = timeline.shown;
    const box = timeline.canvas.getBoundingClientRect();
    const time = (Math.max(ready, from) + Math.min(ended, to)) / 2;
    const x = timeline.canvas.clientWidth - 10 - (to - time) * timeline.scale();
    return { x: box.x + x, y: box.y + timeline.top(timeline.lanes[index]) - timeline.box.scrollTop + timeline.lane / 2 };
  },

  /** True if an element has a handler in its attributes. */
  hasHandlers: () =>
    [...document.querySelectorAll("*")].some((one) => one.getAttributeNames().some((name) => name.startsWith("on"))),

  /** Boxes whose content is cut. */
  cut: () =>
    [...document.querySelectorAll(".scroll")].filter(
      (one) =>
        one.checkVisibility() && one.scrollHeight > one.clientHeight + 2 && getComputedStyle(one).overflowY !== "visible",
    ).length,
};
