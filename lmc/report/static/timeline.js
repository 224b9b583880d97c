/**
 * Requests by time: those of the plan on the clock of the simulation, and below them those of a run, with its tools.
 * A drag selects the ops of a time.
 */

/** The height of a lane: it grows as far as all lanes are in view. */
const LANE = 12;
/** With a run there are twice as many: both the plan and the run should be in view. */
const LEAST_LANE = 3;
const HEADING = 16;
const HIGHEST_LANE = 28;
/** A lane of this height has room for words. */
const WORDY_LANE = 16;
/** The colour of words on a decode bar, which is light in both themes. */
const DARK_ON_DECODE = "#16181d";
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
    this.end = 0;
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
    this.load(plan, run);
    session.on(["selection", "theme"], () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.listen();
  }

  /**
   * @param {lmc.BatchPlan | null | undefined} plan
   * @param {lmc.MeasuredRun | null | undefined} run
   */
  load(plan, run) {
    this.end = Math.max(plan?.predicted_seconds ?? 0, run?.seconds ?? 0) || 1;
    this.chosen = -1;
    this.brushed = undefined;
    this.entries = [];
    this.lanes = [];
    this.rows = [];
    this.laneCount = 0;
    this.diverged = run?.divergence?.seconds;
    this.hasBoth = Boolean(plan && run);
    if (plan) this.add(plan.requests.map((request) => this.planned(request)));
    this.runLane = this.laneCount;
    if (run) {
      const requests = (run.requests ?? []).map((request) => this.measured(request));
      this.add([...requests, ...(run.tools ?? []).map((call) => this.tool(call))].sort((a, b) => a.ready - b.ready));
    }
    byId("timeline-detail").textContent = run?.divergence
      ? `The run leaves the plan at ${seconds(run.divergence.seconds)}, at ${run.divergence.id}: ${run.divergence.reason}.`
      : "Drag over a time to select its ops.";
    for (const input of [this.input("time-from"), this.input("time-to")]) input.max = String(this.end);
  }

  /**
   * Returns the place of a lane: below the headings of plan and run, where there are both.
   * @param {number} lane
   */
  top(lane) {
    return TOP + lane * this.lane + (this.hasBoth ? (lane >= this.runLane ? 2 : 1) * HEADING : 0);
  }

  /** @param {lmc.PlannedRequest} request @returns {Entry} */
  planned(request) {
    const node = this.session.nodeOf(request.key);
    const { key, row, ready, started, first_token: first, ended } = request;
    const text =
      `${node?.id ?? key}, row ${row}, wave ${request.wave}: ready ${seconds(ready)}, started ${seconds(started)}, ` +
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
    return { key: key ?? undefined, row: row ?? undefined, ready, started, ended, label: node?.label ?? request.id, text, bars: [[ready, started, "queue"], [started, token, "prefill"], [token, ended, request.error ? "removed" : "decode"]] };
  }

  /** @param {lmc.RunTool} call @returns {Entry} */
  tool(call) {
    const { key, row, started, ended, name } = call;
    const whose = typeof row === "number" ? `row ${row}` : "all rows";
    const end = call.error ? `failed (${call.error}) at` : call.unfinished ? "not ended at" : "ended";
    const text = `measured: tool ${name}${call.early ? ", speculative" : ""}, ${whose}: started ${seconds(started)}, ${end} ${seconds(ended)}`;
    return { key: key ?? undefined, row: row ?? undefined, ready: started, started, ended, label: name, text, bars: [[started, ended, call.error ? "removed" : "tool-line"]] };
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
      this.draw();
    });
    canvas.addEventListener("pointerup", (event) => {
      const [from, to] = [this.from ?? 0, this.timeAt(event)];
      this.from = this.to = undefined;
      const index = this.at(event);
      if (Math.abs(to - from) * this.scale() > 4) this.selectTime(Math.min(from, to), Math.max(from, to));
      else if (index >= 0) this.choose(index);
      else this.session.select([]);
    });
    canvas.addEventListener("keydown", (event) => {
      const last = this.entries.length - 1;
      /** @type {Record<string, number>} */
      const to = { ArrowDown: Math.min(this.chosen + 1, last), ArrowUp: Math.max(this.chosen - 1, 0), Home: 0, End: last };
      if (!(event.key in to) || event.altKey || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.choose(to[event.key]);
    });
    const [from, to] = [this.input("time-from"), this.input("time-to")];
    byId("time-select").addEventListener("click", () => this.selectTime(Number(from.value), to.value === "" ? this.end : Number(to.value)));
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

  scale() {
    return Math.max(this.canvas.clientWidth - LEFT - 10, 1) / this.end;
  }

  /** @param {MouseEvent} event */
  timeAt(event) {
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    return Math.min(Math.max((x - LEFT) / this.scale(), 0), this.end);
  }

  /** @param {MouseEvent} event @returns {number} the request under the pointer, or -1 */
  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const y = event.clientY - box.top - TOP;
    const isRun = this.hasBoth && y >= this.top(this.runLane) - TOP - HEADING;
    const lane = Math.floor((y - (this.hasBoth ? (isRun ? 2 : 1) * HEADING : 0)) / this.lane);
    const time = (event.clientX - box.left - LEFT) / this.scale();
    const slack = 2 / this.scale();
    return this.entries.findIndex((entry, index) => this.lanes[index] === lane && entry.ready - slack <= time && time <= entry.ended + slack);
  }

  /** @param {number} index */
  choose(index) {
    this.chosen = index;
    this.brushed = undefined;
    const { key, text } = this.entries[index];
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

  draw() {
    if (byId("panel-timeline").hidden || this.box.clientWidth === 0) return;
    const { canvas, session } = this;
    const above = TOP + (this.hasBoth ? 2 * HEADING : 0);
    const fitting = Math.floor((this.box.clientHeight - above - 10) / this.laneCount);
    const lane = (this.lane = Math.min(Math.max(fitting, this.hasBoth ? LEAST_LANE : LANE), HIGHEST_LANE));
    const [width, height] = [this.box.clientWidth - 16, above + this.laneCount * lane + 6];
    const ratio = Math.min(devicePixelRatio, 16000 / height);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const colour = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    const scale = this.scale();
    context.font = `11px ${FONT}`;
    context.fillStyle = colour("text");
    const tick = niceStep(this.end / Math.max(width / 110, 1));
    const digits = Math.max(0, -Math.floor(Math.log10(tick)));
    for (let step = 0; step * tick <= this.end; step++) {
      const x = LEFT + step * tick * scale;
      context.fillStyle = colour("line");
      context.fillRect(x, TOP - 4, 1, height);
      context.fillStyle = colour("text");
      context.fillText(`${(step * tick).toFixed(digits)} s`, x + 3, 12);
    }
    if (this.hasBoth) {
      context.font = `bold 11px ${FONT}`;
      context.fillText("planned", 4, TOP + 11);
      context.fillText("measured", 4, this.top(this.runLane) - HEADING + 11);
      context.font = `11px ${FONT}`;
    }
    context.fillStyle = colour("group");
    for (let at = 1; at < this.rows.length; at += 2) {
      const [first] = this.rows[at];
      context.fillRect(0, this.top(first), width, ((this.rows[at + 1]?.[0] ?? this.laneCount) - first) * lane);
    }
    context.fillStyle = colour("text");
    let named = -Infinity;
    for (const [first, name] of this.rows) {
      if (this.top(first) - named < 12) continue; // there is no room for its name
      named = this.top(first);
      context.fillText(name, 4, named + Math.max(lane / 2 + 4, 9));
    }
    const thickness = lane < 6 ? lane - 1 : lane - 2;
    const isSelecting = session.selected.size > 0;
    for (const [index, entry] of this.entries.entries()) {
      const y = this.top(this.lanes[index]) + (lane < 6 ? 0 : 1);
      context.globalAlpha = isSelecting && !(entry.key !== undefined && session.selected.has(entry.key)) ? 0.3 : 1;
      for (const [from, to, name] of entry.bars) {
        if (to <= from) continue;
        const size = name === "queue" ? Math.min(thickness, 3) : thickness;
        context.fillStyle = colour(name);
        context.fillRect(LEFT + from * scale, y + (thickness - size) / 2, Math.max((to - from) * scale, 1), size);
        const isNamed = (name === "decode" || name === "tool-line") && lane >= WORDY_LANE;
        if (isNamed && context.measureText(entry.label).width + 8 < (to - from) * scale) {
          context.fillStyle = DARK_ON_DECODE;
          context.fillText(entry.label, LEFT + from * scale + 4, y + lane / 2 + 3);
        }
      }
      if (index === this.chosen) {
        context.globalAlpha = 1;
        context.strokeStyle = colour("accent");
        context.lineWidth = 2;
        context.strokeRect(LEFT + entry.ready * scale - 1, y - 1, Math.max((entry.ended - entry.ready) * scale, 2) + 2, lane);
      }
    }
    if (this.diverged !== undefined && this.diverged !== null) {
      context.globalAlpha = 1;
      context.fillStyle = colour("critical");
      const top = this.top(this.runLane) - (this.hasBoth ? HEADING : 0);
      context.fillRect(LEFT + this.diverged * scale - 1, top, 2, height);
      context.fillText("leaves the plan", LEFT + this.diverged * scale + 4, top + 11);
    }
    context.globalAlpha = 1;
    const brush = this.from !== undefined && this.to !== undefined ? { from: Math.min(this.from, this.to), to: Math.max(this.from, this.to) } : this.brushed;
    if (brush !== undefined) {
      context.globalAlpha = 0.2;
      context.fillStyle = colour("accent");
      context.fillRect(LEFT + brush.from * scale, TOP - 4, Math.max((brush.to - brush.from) * scale, 2), height);
      context.globalAlpha = 1;
    }
  }
}

/**
 * Returns a round number near this one: 1, 2 or 5 times a power of ten.
 * @param {number} value
 */
function niceStep(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * (value / power > 5 ? 10 : value / power > 2 ? 5 : value / power > 1 ? 2 : 1);
}
