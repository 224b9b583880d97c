/** The planned requests on the clock of the simulation: waiting, prefill, decode. A drag selects the ops of a time. */

/** The height of a lane: it grows as far as all lanes are in view. */
const LANE = 12;
const HIGHEST_LANE = 28;
/** A lane of this height has room for words. */
const WORDY_LANE = 16;
/** The colour of words on a decode bar, which is light in both themes. */
const DARK_ON_DECODE = "#16181d";
const LEFT = 70;
const TOP = 22;

class Timeline {
  /**
   * @param {Session} session
   * @param {lmc.BatchPlan} plan
   */
  constructor(session, plan) {
    this.session = session;
    this.box = byId("timeline");
    this.canvas = /** @type {HTMLCanvasElement} */ (this.box.querySelector("canvas"));
    this.plan = plan;
    this.end = 0;
    this.chosen = -1;
    /** The lane of each request. @type {number[]} */
    this.lanes = [];
    /** The first lane of each row, and its number. @type {[number, number][]} */
    this.rows = [];
    this.laneCount = 0;
    this.lane = LANE;
    this.load(plan);
    session.on(["selection", "theme"], () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.box);
    this.listen();
  }

  /** @param {lmc.BatchPlan} plan */
  load(plan) {
    this.plan = plan;
    this.end = plan.predicted_seconds || 1;
    this.chosen = -1;
    this.brushed = undefined;
    this.lanes = [];
    this.rows = [];
    this.laneCount = 0;
    this.assignLanes();
    for (const input of [this.input("time-from"), this.input("time-to")]) input.max = String(this.end);
  }

  /** Gives each row of the batch as many lanes as it has requests at one time. */
  assignLanes() {
    /** @type {Map<number, number[]>} */
    const byRow = new Map();
    for (const [index, request] of this.plan.requests.entries()) {
      const known = byRow.get(request.row);
      if (known === undefined) byRow.set(request.row, [index]);
      else known.push(index);
    }
    for (const [row, indices] of byRow) {
      this.rows.push([this.laneCount, row]);
      /** @type {number[]} */
      const free = [];
      for (const index of indices) {
        const request = this.plan.requests[index];
        let lane = free.findIndex((time) => time <= request.ready);
        if (lane < 0) lane = free.push(0) - 1;
        free[lane] = request.ended;
        this.lanes[index] = this.laneCount + lane;
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
      const last = this.plan.requests.length - 1;
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
    const keys = this.plan.requests.filter((request) => request.started <= to && request.ended >= from).map((request) => request.key);
    this.session.select(keys);
    byId("timeline-detail").textContent = `${from.toFixed(3)} s to ${to.toFixed(3)} s`;
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
    const lane = Math.floor((event.clientY - box.top - TOP) / this.lane);
    const time = (event.clientX - box.left - LEFT) / this.scale();
    const slack = 2 / this.scale();
    return this.plan.requests.findIndex((request, index) => this.lanes[index] === lane && request.ready - slack <= time && time <= request.ended + slack);
  }

  /** @param {number} index */
  choose(index) {
    this.chosen = index;
    this.brushed = undefined;
    const request = this.plan.requests[index];
    this.session.select([request.key], { reveal: true });
    document.dispatchEvent(new CustomEvent("go-to-selection"));
    this.describe(index);
    this.box.scrollTop = Math.max(this.lanes[index] * this.lane - this.box.clientHeight / 2, 0);
    announce(this.textOf(index));
    this.draw();
  }

  /** @param {number} index */
  textOf(index) {
    const request = this.plan.requests[index];
    const id = this.session.nodeOf(request.key)?.id ?? request.key;
    return (
      `${id}, row ${request.row}, wave ${request.wave}: ready ${number(request.ready)} s, started ${number(request.started)} s, ` +
      `first token ${number(request.first_token)} s, ended ${number(request.ended)} s; ${counted(request.prompt, "prompt token")}, ` +
      `${number(request.cached ?? 0)} cached, ${counted(request.output ?? 0, "output token")}`
    );
  }

  /** @param {number} index */
  describe(index) {
    byId("timeline-detail").textContent = this.textOf(index);
  }

  draw() {
    if (byId("panel-timeline").hidden || this.box.clientWidth === 0) return;
    const { canvas, plan, session } = this;
    const fitting = Math.floor((this.box.clientHeight - TOP - 10) / this.laneCount);
    const lane = (this.lane = Math.min(Math.max(fitting, LANE), HIGHEST_LANE));
    const [width, height] = [this.box.clientWidth - 16, TOP + this.laneCount * lane + 6];
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
    for (const [at, [first, row]] of this.rows.entries()) {
      const next = this.rows[at + 1]?.[0] ?? this.laneCount;
      if (at % 2) {
        context.fillStyle = colour("group");
        context.fillRect(0, TOP + first * lane, width, (next - first) * lane);
      }
      context.fillStyle = colour("text");
      context.fillText(`row ${row}`, 4, TOP + first * lane + lane / 2 + 4);
    }
    const isSelecting = session.selected.size > 0;
    for (const [index, request] of plan.requests.entries()) {
      const y = TOP + this.lanes[index] * lane + 1;
      context.globalAlpha = isSelecting && !session.selected.has(request.key) ? 0.3 : 1;
      /** @type {[number, number, string, number][]} */
      const bars = [
        [request.ready, request.started, "queue", 3],
        [request.started, request.first_token, "prefill", lane - 2],
        [request.first_token, request.ended, "decode", lane - 2],
      ];
      for (const [from, to, name, size] of bars) {
        if (to <= from) continue;
        context.fillStyle = colour(name);
        context.fillRect(LEFT + from * scale, y + (lane - 2 - size) / 2, Math.max((to - from) * scale, 1), size);
        const label = session.nodeOf(request.key)?.label ?? "";
        if (name === "decode" && lane >= WORDY_LANE && context.measureText(label).width + 8 < (to - from) * scale) {
          context.fillStyle = DARK_ON_DECODE;
          context.fillText(label, LEFT + from * scale + 4, y + lane / 2 + 3);
        }
      }
      if (index === this.chosen) {
        context.globalAlpha = 1;
        context.strokeStyle = colour("accent");
        context.lineWidth = 2;
        context.strokeRect(LEFT + request.ready * scale - 1, y - 1, Math.max((request.ended - request.ready) * scale, 2) + 2, lane);
      }
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
