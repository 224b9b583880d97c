/**
 * The tree of all prompts of the batch: a part is as wide as it has tokens, and darker where the cache is used more.
 * Each prompt is a path from the left.
 */

/** The least height of a row: it grows as far as all rows are in view. */
const ROW = 18;
const MIN_WIDTH = 2;

class Heat {
  /**
   * @param {Session} session
   * @param {lmc.BatchPlan} plan
   */
  constructor(session, plan) {
    this.session = session;
    this.plan = plan;
    this.box = byId("heat");
    this.detail = byId("heat-detail");
    /** @type {number[][]} */
    this.children = [];
    /** @type {number[]} */
    this.roots = [];
    /** The part at which the prompts of each call end. @type {Map<string, number[]>} */
    this.ends = new Map();
    this.chosen = 0;
    /** What is drawn is as large as this; 0: nothing is. */
    this.width = 0;
    this.height = 0;
    /** Whether the colours are those of the run. */
    this.isMeasured = false;
    const chooser = /** @type {HTMLSelectElement} */ (byId("heat-of"));
    chooser.addEventListener("change", () => {
      this.isMeasured = chooser.value === "measured";
      this.width = 0;
      this.draw();
    });
    this.load(plan);
    session.on(["selection"], () => this.mark());
    const sizes = new ResizeObserver(() => this.draw());
    for (const each of [this.box, byId("heat-scroll")]) sizes.observe(each);
    this.box.addEventListener("pointerover", (event) => this.onPart(event, (index) => this.describe(index)));
    this.box.addEventListener("click", (event) => this.onPart(event, (index) => this.choose(index)));
    this.box.addEventListener("keydown", (event) => this.onKey(event));
  }

  /** @param {lmc.BatchPlan} plan */
  load(plan) {
    this.plan = plan;
    this.children = plan.prompts.map(() => []);
    this.roots = [];
    for (const [index, node] of plan.prompts.entries()) {
      if (node.parent === undefined || node.parent === null) this.roots.push(index);
      else this.children[node.parent].push(index);
    }
    this.ends = new Map();
    for (const [index, node] of plan.prompts.entries()) {
      for (const key of Object.keys(node.ends ?? {})) this.ends.set(key, [...(this.ends.get(key) ?? []), index]);
    }
    this.chosen = 0;
    this.width = 0;
    const hasRun = plan.prompts.some((node) => node.measured);
    this.isMeasured &&= hasRun;
    byId("heat-choice").hidden = !hasRun;
    /** @type {HTMLSelectElement} */ (byId("heat-of")).value = this.isMeasured ? "measured" : "planned";
    this.detail.replaceChildren();
  }

  /**
   * @param {Event} event
   * @param {(index: number) => void} action
   */
  onPart(event, action) {
    const part = /** @type {Element} */ (event.target).closest("[data-index]");
    if (part !== null) action(Number(/** @type {SVGElement} */ (part).dataset.index));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const { plan, children, chosen } = this;
    const parent = plan.prompts[chosen].parent ?? null;
    const beside = parent === null ? this.roots : children[parent];
    const at = beside.indexOf(chosen);
    /** @type {Record<string, number | null | undefined>} */
    const to = { ArrowRight: children[chosen][0], ArrowLeft: parent, ArrowDown: beside[at + 1], ArrowUp: beside[at - 1], Home: 0, Enter: chosen, " ": chosen };
    if (!(event.key in to) || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const next = to[event.key];
    if (next === undefined || next === null) return;
    this.choose(next);
    this.partOf(next)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  /** @param {number} index */
  partOf(index) {
    return this.box.querySelector(`[data-index="${index}"]`);
  }

  /**
   * Selects the calls whose prompts end in this part or behind it.
   * @param {number} index
   */
  choose(index) {
    this.chosen = index;
    this.describe(index);
    this.session.select(this.callsBelow(index), { reveal: false });
    this.box.setAttribute("aria-activedescendant", `heat-${index}`);
    this.mark();
  }

  /** @param {number} index */
  callsBelow(index) {
    /** @type {Set<string>} */
    const keys = new Set();
    const below = [index];
    for (const each of below) {
      for (const key of Object.keys(this.plan.prompts[each].ends ?? {})) keys.add(key);
      below.push(...this.children[each]);
    }
    return keys;
  }

  draw() {
    const [width, height] = [this.box.clientWidth, byId("heat-scroll").clientHeight];
    if (byId("panel-heat").hidden || width === 0 || (this.width === width && this.height === height)) return;
    [this.width, this.height] = [width, height];
    const { plan, children } = this;
    const depth = plan.prompts.map(() => 0);
    let widest = 1;
    for (const [index, node] of plan.prompts.entries()) {
      depth[index] = (node.parent === undefined || node.parent === null ? 0 : depth[node.parent]) + (node.folded ? 0 : node.tokens);
      widest = Math.max(widest, depth[index]);
    }
    /** The first row of each part, and the number of its rows. @type {[number, number][]} */
    const rows = plan.prompts.map(() => [0, 0]);
    let next = 0;
    /** @type {[number, boolean][]} */
    const stack = [...this.roots].reverse().map((index) => [index, false]);
    for (let top = stack.pop(); top !== undefined; top = stack.pop()) {
      const [index, isDone] = top;
      if (isDone) rows[index][1] = Math.max(next - rows[index][0], 1);
      else {
        rows[index][0] = next;
        if (children[index].length === 0) next += 1;
        stack.push([index, true]);
        for (const child of [...children[index]].reverse()) stack.push([child, false]);
      }
    }
    const size = Math.max(Math.floor((this.height - 8) / next), ROW);
    const most = Math.max(1, ...plan.prompts.map((node) => reuses(node, this.isMeasured)));
    const scale = (this.width - 4) / widest;
    const high = next * size + 4;
    const svg = makeSvg("svg", { width: this.width, height: high, viewBox: `0 0 ${this.width} ${high}`, role: "presentation" });
    const hatch = makeSvg("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, makeSvg("rect", { width: 2, height: 6, class: "hatch" }));
    svg.append(makeSvg("defs", {}, hatch));
    /** The words on the parts; a part has them in its name. @type {SVGTextElement[]} */
    const labels = [];
    for (const [index, node] of plan.prompts.entries()) {
      const start = node.parent === undefined || node.parent === null ? 0 : depth[node.parent];
      const x = 2 + start * scale;
      const width = node.folded ? Math.max(this.width - 2 - x, 8) : Math.max(node.tokens * scale - 1, MIN_WIDTH);
      const [row, count] = rows[index];
      const [y, height] = [2 + row * size, count * size - 2];
      const step = Math.min(Math.ceil((Math.log1p(reuses(node, this.isMeasured)) / Math.log1p(most)) * (STEPS - 1)), STEPS - 1);
      const group = makeSvg(
        "g",
        { id: `heat-${index}`, class: `prompt step-${step}`, role: "treeitem", "data-index": index, "aria-label": this.textOf(index), "aria-level": 1 },
        makeSvg("rect", { x, y, width, height }),
      );
      if ((this.isMeasured ? node.measured?.recomputed : node.recomputed) ?? 0) group.append(makeSvg("rect", { x, y, width, height, class: "recomputed", fill: "url(#hatch)" }));
      if (node.evicted && !this.isMeasured) group.append(makeSvg("rect", { x, y, width, height: 3, class: "evicted" }));
      if (node.generated) group.append(makeSvg("rect", { x, y: y + height - 4, width, height: 4, class: "answer" }));
      if (width > 60) {
        const words = this.wordsOf(index);
        const letters = Math.floor((width - 8) / 6.6);
        const label = { class: `prompt step-${step}`, "aria-hidden": "true", "data-index": index, x: x + 4, y: y + Math.min(height / 2, 200) + 4 };
        labels.push(makeSvg("text", label, words.slice(0, letters)));
      }
      svg.append(group);
    }
    svg.append(...labels);
    this.box.replaceChildren(svg);
    const legend = [];
    for (let step = 0; step < STEPS; step++) legend.push(make("span", { class: `swatch step-${step}` }));
    const { prompts } = plan;
    const isAgain = prompts.some((node) => (this.isMeasured ? node.measured?.recomputed : node.recomputed) ?? 0);
    byId("heat-legend").replaceChildren(
      "never found in the cache ", ...legend, " most often",
      ...(!this.isMeasured && prompts.some((node) => node.evicted) ? ["; ", make("span", { class: "swatch evicted" }), " evicted"] : []),
      ...(isAgain ? ["; ", make("span", { class: "swatch hatched" }), " computed again"] : []),
      ...(prompts.some((node) => node.generated) ? ["; ", make("span", { class: "swatch answer" }), " generated text"] : []),
    );
    this.mark();
  }

  /**
   * Returns the text of a part in one line.
   * @param {number} index
   */
  wordsOf(index) {
    const { folded, text } = this.plan.prompts[index];
    return folded ? `${counted(folded, "part")} folded` : (text ?? "").replace(/\s+/gu, " ").trim();
  }

  /** @param {number} index */
  textOf(index) {
    const node = this.plan.prompts[index];
    const parts = [
      this.wordsOf(index),
      counted(node.tokens, "token"),
      `in ${counted(node.requests, "prompt")}`,
      `${number(node.computed ?? 0)} computed`,
      `${number(node.cached ?? 0)} found in the cache`,
    ];
    if (node.evicted) parts.push(`${number(node.evicted)} evicted`);
    if (node.recomputed) parts.push(`${number(node.recomputed)} of the computed ones for another time`);
    if (node.generated) parts.push(`${number(node.generated)} of its tokens are generated`);
    if (node.measured) parts.push(`measured: ${number(node.measured.computed ?? 0)} computed, ${number(node.measured.cached ?? 0)} found in the cache`);
    return parts.join(", ");
  }

  /**
   * Tells a part, and marks the prompts that lead to it.
   * @param {number} index
   */
  describe(index) {
    const { plan, session } = this;
    /** @type {Set<number>} */
    const path = new Set();
    for (let at = /** @type {number | null | undefined} */ (index); at !== undefined && at !== null; at = plan.prompts[at].parent) path.add(at);
    for (const part of this.box.querySelectorAll(".prompt")) {
      part.classList.toggle("path", path.has(Number(/** @type {SVGElement} */ (part).dataset.index)));
    }
    const node = plan.prompts[index];
    const ends = Object.entries(node.ends ?? {}).map(([key, count]) => times(session.nodeOf(key)?.id ?? key, count));
    const calls = [...this.callsBelow(index)].map((key) => session.nodeOf(key)?.id ?? key);
    this.detail.replaceChildren(
      facts([
        ["tokens", number(node.tokens)],
        ["prompts that hold it", number(node.requests)],
        ["computed", number(node.computed ?? 0)],
        ["found in the cache", number(node.cached ?? 0)],
        ["evicted", node.evicted ? number(node.evicted) : ""],
        ["computed again", node.recomputed ? number(node.recomputed) : ""],
        ["generated", node.generated ? number(node.generated) : ""],
        ["measured: computed", node.measured ? number(node.measured.computed ?? 0) : ""],
        ["measured: found", node.measured ? number(node.measured.cached ?? 0) : ""],
        ["measured: computed again", node.measured?.recomputed ? number(node.measured.recomputed) : ""],
        ["prompts that end here", ends.join(", ")],
        ["shared by", calls.length > 12 ? `${calls.slice(0, 12).join(", ")} and ${counted(calls.length - 12, "more call")}` : calls.join(", ")],
      ]),
      make("p", { class: "prompt-text" }, node.text || "(no text)"),
    );
  }

  /** Marks the prompts of the selected calls. */
  mark() {
    /** @type {Set<number>} */
    const path = new Set();
    for (const key of this.session.selected) {
      for (const end of this.ends.get(key) ?? []) {
        for (let at = /** @type {number | null | undefined} */ (end); at !== undefined && at !== null && !path.has(at); at = this.plan.prompts[at].parent) path.add(at);
      }
    }
    this.box.classList.toggle("dimmed", path.size > 0 && path.size < this.plan.prompts.length);
    for (const part of this.box.querySelectorAll(".prompt")) {
      part.classList.toggle("used", path.has(Number(/** @type {SVGElement} */ (part).dataset.index)));
    }
  }
}

/**
 * The times that a token of a part is found in the cache: the colour of the part, not shown as a figure.
 * @param {lmc.PromptNode} node
 * @param {boolean} isMeasured
 */
function reuses(node, isMeasured) {
  return node.tokens === 0 ? 0 : ((isMeasured ? node.measured?.cached : node.cached) ?? 0) / node.tokens;
}
