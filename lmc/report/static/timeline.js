/**
 * Requests by time: those of the plan on the clock of the simulation, and below them those of a run, with its tools.
 * A drag selects the ops of a time. The canvas is as large as the window, and shows a part of the time and of the lanes.
 */

/** The height of a lane: it grows as far as all lanes are in view. */
const LANE = 12;
/** With a run there are twice as many: both the plan and the run should be in view. */
const LEAST_LANE = 3;
const HEADING = 16;
/** The height of the name of a row. The lanes of what a run does for all rows are at least as high. */
const NAMED = 12;
const HIGHEST_LANE = 28;
/** A lane of this height has room for words. Lanes that are lower grow up to it with the time that is zoomed in. */
const WORDY_LANE = 18;
const MOST_ZOOM = 1e5;
/** The colours of words on bars that have room for them. @type {Record<string, string>} */
const ON_BARS = { decode: "on-decode", tool: "on-tool" };
const LEFT = 70;
/** The reasons for which a request waits. @type {Record<string, string>} */
const WAITS = {
  limit: "the bound of requests in flight",
  batch: "the bound of running sequences",
  memory: "free pages of the cache",
  budget: "the prompt tokens of others",
};
const TOP = 22;

/**
 * A request or a call of a tool: its op, row, times, and the text that tells it. `bars` are its phases.
 * @typedef {object} Entry
 * @property {string | undefined} key
 * @property {number | undefined} row
 * @property {number} ready
 * @property {number} started
 * @property {number} ended
 * @property {string} label
 * @property {string} text
 * @property {[number, number, string][]} bars
 */

class Timeline {
  /**
   * @param {Session} session
   * @param {lmc.BatchPlan | null | undefined} plan
   * @param {lmc.MeasuredRun | null | undefined} run
   */
  constructor(session, plan, run) {
    this.session = session;
    this.box = byId("timeline");
    this.canvas = /** @type {HTMLCanvasElement} */ (this.box.querySelector("canvas"));
    /** As high as all lanes: the box scrolls it below the canvas. */
    this.content = /** @type {HTMLElement} */ (this.canvas.parentElement);
    this.end = 0;
    /** The part of the time that is shown. */
    this.shown = { from: 0, to: 0 };
    this.chosen = -1;
    /** @type {Entry[]} */
    this.entries = [];
    /** The lane of each entry. @type {number[]} */
    this.lanes = [];
    /** The first lane of each row, and its name. @type {[number, string][]} */
    this.rows = [];
    this.laneCount = 0;
    this.lane = LANE;
    this.hasBoth = false;
    /** The time at which the run leaves the plan. @type {number | undefined} */
    this.diverged = undefined;
    /** The first lane of the run. */
    this.runLane = 0;
    /** The first lane of what a run does for all rows, and the one behind; none: they are the same. */
    this.common = { first: 0, stop: 0 };
    this.load(plan, run);
    session.on(["selection", "theme"], () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.box.addEventListener("scroll", () => this.draw());
    this.listen();
  }

  /**
   * @param {lmc.BatchPlan | null | undefined} plan
   * @param {lmc.MeasuredRun | null | undefined} run
   */
  load(plan, run) {
    const isWhole = this.shown.to - this.shown.from >= this.end;
    this.end = Math.max(plan?.predicted_seconds ?? 0, run?.seconds ?? 0) || 1;
    if (isWhole || this.shown.to > this.end) this.shown = { from: 0, to: this.end };
    this.chosen = -1;
    this.brushed = undefined;
    this.entries = [];
    this.lanes = [];
    this.rows = [];
    this.laneCount = 0;
    this.common = { first: 0, stop: 0 };
    this.diverged = run?.divergence?.seconds;
    this.hasBoth = Boolean(plan && run);
    if (plan) this.add(plan.requests.map((request) => this.planned(request)));
    this.runLane = this.laneCount;
    if (run) {
      const requests = (run.requests ?? []).map((request) => this.measured(request));
      this.add([...requests, ...(run.tools ?? []).map((call) => this.tool(call))].sort((a, b) => a.ready - b.ready));
    }
    byId("timeline-detail").textContent = `${run ? `The run ${comparedText(plan, run)}. ` : ""}Drag over a time to select its ops.`;
    for (const input of [this.input("time-from"), this.input("time-to")]) input.max = String(this.end);
  }

  /**
   * Returns the place of a lane: below the headings of plan and run, where there are both.
   * @param {number} lane
   */
  top(lane) {
    const headings = this.hasBoth ? (lane >= this.runLane ? 2 : 1) * HEADING : 0;
    return TOP + lane * this.lane + headings + (lane >= this.common.stop ? this.spare() : 0);
  }

  /** The height below the lanes of all rows that their name takes. */
  spare() {
    const { first, stop } = this.common;
    return stop > first ? Math.max(NAMED - (stop - first) * this.lane, 0) : 0;
  }

  /** The rows whose names have room. */
  named() {
    let last = -Infinity;
    return this.rows.filter(([first]) => {
      const hasRoom = this.top(first) - last >= NAMED;
      if (hasRoom) last = this.top(first);
      return hasRoom;
    });
  }

  /**
   * Returns the lane at a height of the content, with the part of it that is above.
   * @param {number} y
   */
  laneAt(y) {
    let [low, high] = [0, this.laneCount];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.top(middle) <= y) low = middle;
      else high = middle;
    }
    return low + (y - this.top(low)) / this.lane;
  }

  /** @param {lmc.PlannedRequest} request @returns {Entry} */
  planned(request) {
    const node = this.session.nodeOf(request.key);
    const { key, row, ready, started, first_token: first, ended } = request;
    const text =
      `${node?.id ?? key}, row ${row}, depth ${request.depth}: ready ${seconds(ready)}, started ${seconds(started)}, ` +
      `first token ${seconds(first)}, ended ${seconds(ended)}; ${counted(request.prompt, "prompt token")}, ` +
      `${number(request.cached ?? 0)} cached, ${counted(request.output ?? 0, "output token")}`;
    return { key, row, ready, started, ended, label: node?.label ?? "", text, bars: [[ready, started, "queue"], [started, first, "prefill"], [first, ended, "decode"]] };
  }

  /** @param {lmc.RunRequest} request @returns {Entry} */
  measured(request) {
    const { key, row, ready, submitted, admitted, first_token: first, ended } = request;
    const node = key ? this.session.nodeOf(key) : undefined;
    const started = admitted ?? submitted;
    const token = first ?? (request.kind === "generate" && !admitted ? started : ended);
    const times = [`ready ${seconds(ready)}`, `submitted ${seconds(submitted)}`];
    if (typeof admitted === "number") times.push(`started ${seconds(admitted)}`);
    if (typeof first === "number") times.push(`first token ${seconds(first)}`);
    times.push(`${request.unfinished ? "not ended at" : "ended"} ${seconds(ended)}`);
    const words = [counted(request.prompt ?? 0, "prompt token"), `${number(request.cached ?? 0)} cached`];
    if (typeof request.computed === "number") words.push(`${number(request.computed)} computed`);
    words.push(counted(request.output ?? 0, "output token"));
    if (request.wait) words.push(`waited for: ${WAITS[request.wait]}`);
    if (request.error) words.push(`failed: ${request.error}`);
    const whose = typeof row === "number" ? `row ${row}` : "all rows";
    const kind = request.kind === "generate" ? "" : ` (${request.kind})`;
    const text = `measured: ${request.id}${kind}, ${whose}: ${times.join(", ")}; ${words.join(", ")}`;
    return { key: key ?? undefined, row: row ?? undefined, ready, started, ended, label: node?.label ?? request.id, text, bars: [[ready, started, "queue"], [started, token, "prefill"], [token, ended, request.error ? "failed" : "decode"]] };
  }

  /** @param {lmc.RunTool} call @returns {Entry} */
  tool(call) {
    const { key, row, started, ended, name } = call;
    const whose = typeof row === "number" ? `row ${row}` : "all rows";
    const end = call.error ? `failed (${call.error}) at` : call.unfinished ? "not ended at" : "ended";
    const text = `measured: tool ${name}${call.early ? ", speculative" : ""}, ${whose}: started ${seconds(started)}, ${end} ${seconds(ended)}`;
    return { key: key ?? undefined, row: row ?? undefined, ready: started, started, ended, label: name, text, bars: [[started, ended, call.error ? "failed" : "tool"]] };
  }

  /**
   * Gives each row as many lanes as it has entries at one time.
   * @param {Entry[]} entries
   */
  add(entries) {
    /** @type {Map<number | undefined, Entry[]>} */
    const byRow = new Map();
    for (const entry of entries) {
      const known = byRow.get(entry.row);
      if (known === undefined) byRow.set(entry.row, [entry]);
      else known.push(entry);
    }
    for (const [row, members] of byRow) {
      this.rows.push([this.laneCount, row === undefined ? "all rows" : `row ${row}`]);
      /** @type {number[]} */
      const free = [];
      for (const entry of members) {
        let lane = free.findIndex((time) => time <= entry.ready);
        if (lane < 0) lane = free.push(0) - 1;
        free[lane] = entry.ended;
        this.lanes[this.entries.push(entry) - 1] = this.laneCount + lane;
      }
      if (row === undefined) this.common = { first: this.laneCount, stop: this.laneCount + free.length };
      this.laneCount += free.length;
    }
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.from = this.timeAt(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.from === undefined) {
        const index = this.at(event);
        if (index >= 0) this.describe(index);
        return;
      }
      this.to = this.timeAt(event);
      this.fillIn(this.from, this.to);
      this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const [from, to] = [this.from ?? 0, this.timeAt(event)];
      this.from = this.to = undefined;
      const index = this.at(event);
      if (Math.abs(to - from) * this.scale() > 4) {
        this.fillIn(from, to);
        this.selectTime(Math.min(from, to), Math.max(from, to));
      }
      else if (index >= 0) this.choose(index);
      else this.session.select([]);
    });
    canvas.addEventListener("keydown", (event) => {
      if (event.altKey || event.ctrlKey || event.metaKey) return;
      const last = this.entries.length - 1;
      /** @type {Record<string, () => void>} */
      const actions = {
        ArrowDown: () => this.choose(Math.min(this.chosen + 1, last)),
        ArrowUp: () => this.choose(Math.max(this.chosen - 1, 0)),
        Home: () => this.choose(0),
        End: () => this.choose(last),
        ArrowLeft: () => this.move(-0.2),
        ArrowRight: () => this.move(0.2),
        "+": () => this.zoom(1.5),
        "=": () => this.zoom(1.5),
        "-": () => this.zoom(1 / 1.5),
        0: () => this.zoom(0),
      };
      const action = actions[event.key];
      if (action === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      action();
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        const isZoom = event.ctrlKey || event.metaKey;
        const across = event.shiftKey ? event.deltaX || event.deltaY : event.deltaX;
        if (!isZoom && Math.abs(across) <= Math.abs(event.shiftKey ? 0 : event.deltaY)) return;
        event.preventDefault();
        if (isZoom) this.zoom(2 ** (-event.deltaY / 200), this.timeAt(event), event.clientY - this.box.getBoundingClientRect().top);
        else this.move(across / this.canvas.clientWidth);
      },
      { passive: false },
    );
    byId("time-in").addEventListener("click", () => this.zoom(1.5));
    byId("time-out").addEventListener("click", () => this.zoom(1 / 1.5));
    byId("time-all").addEventListener("click", () => this.zoom(0));
    byId("time-earlier").addEventListener("click", () => this.move(-0.2));
    byId("time-later").addEventListener("click", () => this.move(0.2));
    const [from, to] = [this.input("time-from"), this.input("time-to")];
    byId("time-select").addEventListener("click", () => this.selectTime(Number(from.value), to.value === "" ? this.end : Number(to.value)));
  }

  /**
   * Writes a time into its fields, to a microsecond.
   * @param {number} from
   * @param {number} to
   */
  fillIn(from, to) {
    this.input("time-from").value = String(Number(Math.min(from, to).toFixed(6)));
    this.input("time-to").value = String(Number(Math.max(from, to).toFixed(6)));
  }

  /** @param {string} id */
  input(id) {
    return /** @type {HTMLInputElement} */ (byId(id));
  }

  /**
   * Selects the ops of the requests that run in a time.
   * @param {number} from
   * @param {number} to
   */
  selectTime(from, to) {
    this.brushed = { from, to };
    const keys = this.entries.filter((entry) => entry.started <= to && entry.ended >= from).flatMap(({ key }) => key ?? []);
    this.session.select(keys);
    byId("timeline-detail").textContent = `${seconds(from)} to ${seconds(to)}`;
    this.draw();
  }

  /** The pixels of a second. */
  scale() {
    return Math.max(this.canvas.clientWidth - LEFT - 10, 1) / (this.shown.to - this.shown.from);
  }

  /**
   * Shows a smaller or larger part of the time; 0: all of it.
   * @param {number} factor
   * @param {number} [around] the time that stays where it is: by default the chosen request, else the middle
   * @param {number} [height] the height in the window at which the lanes stay
   */
  zoom(factor, around, height = this.box.clientHeight / 2) {
    const { from, to } = this.shown;
    const chosen = this.entries[this.chosen];
    const isChosen = chosen !== undefined && chosen.started >= from && chosen.started <= to;
    const time = around ?? (isChosen ? chosen.started : (from + to) / 2);
    const length = factor === 0 ? this.end : Math.min(Math.max((to - from) / factor, this.end / MOST_ZOOM), this.end);
    const lane = this.laneAt(this.box.scrollTop + height);
    this.showFrom(time - ((time - from) / (to - from)) * length, length);
    this.box.scrollTop = this.top(Math.floor(lane)) + (lane % 1) * this.lane - height;
    this.draw();
  }

  /**
   * Moves by a share of what is shown.
   * @param {number} share
   */
  move(share) {
    const { from, to } = this.shown;
    this.showFrom(from + share * (to - from), to - from);
  }

  /**
   * @param {number} from
   * @param {number} length
   */
  showFrom(from, length) {
    const start = Math.min(Math.max(from, 0), this.end - length);
    this.shown = { from: start, to: start + length };
    announce(`${seconds(start)} to ${seconds(start + length)}`);
    this.draw();
  }

  /** @param {MouseEvent} event */
  timeAt(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    return Math.min(Math.max(this.shown.from + (x - LEFT) / this.scale(), this.shown.from), this.shown.to);
  }

  /** @param {MouseEvent} event @returns {number} the request under the pointer, or -1 */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const y = event.clientY - box.top + this.box.scrollTop;
    const lane = Math.floor(this.laneAt(y));
    if (lane < 0 || y >= this.top(lane) + this.lane) return -1;
    const time = this.shown.from + (event.clientX - box.left - LEFT) / this.scale();
    const slack = 2 / this.scale();
    return this.entries.findIndex((entry, index) => this.lanes[index] === lane && entry.ready - slack <= time && time <= entry.ended + slack);
  }

  /** @param {number} index */
  choose(index) {
    this.chosen = index;
    this.brushed = undefined;
    const { key, text, ready, ended } = this.entries[index];
    const length = this.shown.to - this.shown.from;
    if (ended < this.shown.from || ready > this.shown.to) this.showFrom(ready - length / 10, length);
    this.session.select(key === undefined ? [] : [key], { reveal: true });
    document.dispatchEvent(new CustomEvent("go-to-selection"));
    this.describe(index);
    this.box.scrollTop = Math.max(this.top(this.lanes[index]) - this.box.clientHeight / 2, 0);
    announce(text);
    this.draw();
  }

  /** @param {number} index */
  describe(index) {
    byId("timeline-detail").textContent = this.entries[index].text;
  }

  /** Makes the lanes as high as there is room, and as the time that is zoomed in wants. */
  measure() {
    const above = TOP + (this.hasBoth ? 2 * HEADING : 0) + (this.common.stop > this.common.first ? NAMED : 0);
    const fitting = Math.floor((this.box.clientHeight - above - 10) / this.laneCount);
    const least = Math.max(fitting, this.hasBoth ? LEAST_LANE : LANE);
    const zoomed = Math.min((least * this.end) / (this.shown.to - this.shown.from), WORDY_LANE);
    this.lane = Math.min(Math.max(least, zoomed), HIGHEST_LANE);
    const height = Math.max(above + this.laneCount * this.lane + 6, this.box.clientHeight);
    this.content.style.height = `${height}px`;
    return height;
  }

  draw() {
    if (byId("panel-timeline").hidden || this.box.clientWidth === 0) return;
    const { canvas, session, box } = this;
    const height = this.measure();
    const { lane } = this;
    const [width, inView] = [box.clientWidth, box.clientHeight];
    const { from, to } = this.shown;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${inView}px`;
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(inView * devicePixelRatio);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(devicePixelRatio, devicePixelRatio);
    const style = getComputedStyle(document.documentElement);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    const scale = this.scale();
    const at = (/** @type {number} */ time) => LEFT + (time - from) * scale;
    context.font = `11px ${FONT}`;
    // The axis stays at the top, the lanes move below it.
    const tick = niceStep((to - from) / Math.max((width - LEFT) / 90, 1));
    const [unit, perSecond] = to < 1 ? ["ms", 1000] : ["s", 1];
    const digits = Math.max(0, -Math.floor(Math.log10(tick * perSecond) + 1e-9));
    for (let step = Math.ceil(from / tick - 1e-9); step * tick <= to * (1 + 1e-9); step++) {
      context.fillStyle = colour("line");
      context.fillRect(at(step * tick), TOP - 4, 1, inView);
      context.fillStyle = colour("text");
      const text = `${(step * tick * perSecond).toFixed(digits)} ${unit}`;
      if (at(step * tick) + 3 + context.measureText(text).width <= width) context.fillText(text, at(step * tick) + 3, 12);
    }
    context.fillStyle = colour("text");
    if (this.hasBoth) {
      context.font = `bold 11px ${FONT}`;
      if (box.scrollTop > 0) context.fillText(box.scrollTop + TOP < this.top(this.runLane) - HEADING ? "planned" : "measured", 4, 12);
    }
    context.beginPath();
    context.rect(0, TOP - 4, width, inView);
    context.clip();
    context.translate(0, -box.scrollTop);
    if (this.hasBoth) {
      context.fillText("planned", 4, TOP + 11);
      context.fillText("measured", 4, this.top(this.runLane) - HEADING + 11);
      context.font = `11px ${FONT}`;
    }
    context.fillStyle = colour("group");
    for (let index = 1; index < this.rows.length; index += 2) {
      const [first] = this.rows[index];
      const stop = this.rows[index + 1]?.[0] ?? this.laneCount;
      context.fillRect(0, this.top(first), width, this.top(stop - 1) + lane - this.top(first) + (stop === this.common.stop ? this.spare() : 0));
    }
    context.fillStyle = colour("text");
    for (const [first, name] of this.named()) context.fillText(name, 4, this.top(first) + Math.max(lane / 2 + 4, 9));
    context.beginPath();
    context.rect(LEFT - 2, 0, width - LEFT, height);
    context.clip();
    const thickness = lane < 6 ? lane - 1 : lane - 2;
    const isSelecting = session.selected.size > 0;
    for (const [index, entry] of this.entries.entries()) {
      const y = this.top(this.lanes[index]) + (lane < 6 ? 0 : 1);
      if (entry.ended < from || entry.ready > to || y + lane < box.scrollTop || y > box.scrollTop + inView) continue;
      context.globalAlpha = isSelecting && !(entry.key !== undefined && session.selected.has(entry.key)) ? 0.3 : 1;
      for (const [start, stop, name] of entry.bars) {
        if (stop <= start) continue;
        const size = name === "queue" ? Math.min(Math.ceil(thickness / 3), 3) : thickness;
        const [left, right] = [Math.max(at(start), LEFT - 2), Math.min(at(stop), width)];
        context.fillStyle = colour(name);
        context.fillRect(left, y + (thickness - size) / 2, Math.max(right - left, 1), size);
        if (name in ON_BARS && lane >= WORDY_LANE - 1 && context.measureText(entry.label).width + 8 < right - left) {
          context.fillStyle = colour(ON_BARS[name]);
          context.fillText(entry.label, left + 4, y + lane / 2 + 3);
        }
      }
      if (index === this.chosen) {
        context.globalAlpha = 1;
        context.strokeStyle = colour("accent");
        context.lineWidth = 2;
        context.strokeRect(at(entry.ready) - 1, y - 1, Math.max((entry.ended - entry.ready) * scale, 2) + 2, lane);
      }
    }
    context.globalAlpha = 1;
    if (this.diverged !== undefined && this.diverged !== null) {
      context.fillStyle = colour("critical");
      const top = this.top(this.runLane) - (this.hasBoth ? HEADING : 0);
      context.fillRect(at(this.diverged) - 1, top, 2, height);
      context.fillText("leaves the plan", at(this.diverged) + 4, top + 11);
    }
    const brush = this.from !== undefined && this.to !== undefined ? { from: Math.min(this.from, this.to), to: Math.max(this.from, this.to) } : this.brushed;
    if (brush !== undefined) {
      context.globalAlpha = 0.2;
      context.fillStyle = colour("accent");
      context.fillRect(at(brush.from), 0, Math.max((brush.to - brush.from) * scale, 2), height);
    }
  }
}

/**
 * Returns how a run compares with its plan.
 * @param {lmc.BatchPlan | null | undefined} plan
 * @param {lmc.MeasuredRun} run
 */
function comparedText(plan, { divergence, complete }) {
  if (!plan) return "is not compared: the data hold no plan";
  if (divergence) return `leaves the plan at ${seconds(divergence.seconds)}, at ${divergence.id}: ${divergence.reason}`;
  return complete ? "follows the plan" : "follows the plan so far";
}

/**
 * Returns a round number near this one: 1, 2 or 5 times a power of ten.
 * @param {number} value
 */
function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * (value / power > 5 ? 10 : value / power > 2 ? 5 : value / power > 1 ? 2 : 1);
}
