/** The colours of the graph: by kind, or by a figure of the calls. */

/** @typedef {{fill: string, line: string, text: string}} Colour */
/**
 * A way to colour: by the kind of an op, or by a figure of a call, darker where it is larger.
 * @typedef {object} ColourMode
 * @property {string} name
 * @property {string} title
 * @property {((call: lmc.CallCost) => number | undefined)} [value]
 * @property {((value: number) => string)} [text] the figure for the legend
 */

const STEPS = 6;
/** @type {[lmc.OpNode["kind"], string][]} */
const KINDS = [
  ["call", "model call"],
  ["text", "text"],
  ["prefix", "prefix computed once"],
  ["tool", "tool"],
  ["python", "Python value"],
  ["control", "condition, loop, map, race"],
  ["hint", "hint to the cache"],
  ["break", "graph break"],
  ["end", "end of a block"],
  ["folded", "folded ops"],
];

class Colours {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.style = getComputedStyle(document.documentElement);
    /** @type {Map<string, Colour>} */
    this.kinds = new Map();
    /** @type {Colour[]} */
    this.steps = [];
    /** The modes for which there are data. @type {ColourMode[]} */
    this.modes = [];
    this.load();
    this.mode = this.modes[0];
    this.read();
    session.on(["data"], () => {
      this.load();
      this.choose(this.mode.name);
    });
  }

  load() {
    const calls = [...this.session.data.calls.values()];
    const hasPlan = calls.some((call) => call.planned);
    /** @type {ColourMode[]} */
    const all = [
      { name: "kind", title: "Kind" },
      { name: "wave", title: "Wave", value: (call) => call.wave, text: number },
      {
        name: "tokens",
        title: "Tokens of prompts",
        value: (call) => (hasPlan ? call.planned?.prompt : call.prompt.known) ?? 0,
        text: (value) => counted(value, "token"),
      },
      {
        name: "cache",
        title: hasPlan ? "Tokens found in the cache" : "Tokens computed ahead",
        value: (call) => (hasPlan ? call.planned?.cached : call.prefilled?.known) ?? 0,
        text: (value) => counted(value, "token"),
      },
      {
        name: "output",
        title: "Tokens of outputs",
        value: (call) => (hasPlan ? call.planned?.output : call.output) ?? 0,
        text: (value) => counted(value, "token"),
      },
      {
        name: "dollars",
        title: hasPlan ? "Dollars, planned" : "Dollars, measured",
        value: (call) => (hasPlan ? call.planned : call.measured)?.dollars ?? 0,
        text: dollars,
      },
      { name: "seconds", title: "Time, measured", value: (call) => call.measured?.seconds, text: seconds },
    ];
    this.modes = all.filter((mode) => mode.value === undefined || calls.some((call) => mode.value?.(call)));
  }

  /** Reads the colours of the theme. */
  read() {
    this.kinds = new Map(
      KINDS.map(([kind]) => [
        kind,
        { fill: this.variable(`${kind}-fill`), line: this.variable(`${kind}-line`), text: this.variable("text") },
      ]),
    );
    this.steps = [];
    for (let step = 0; step < STEPS; step++) {
      this.steps.push({
        fill: this.variable(`scale-${step}`),
        line: this.variable("line"),
        text: this.variable(`scale-text-${step}`),
      });
    }
  }

  /**
   * Returns a colour of the theme.
   * @param {string} name
   */
  variable(name) {
    return this.style.getPropertyValue(`--${name}`).trim();
  }

  /** @param {string} name */
  choose(name) {
    this.mode = this.modes.find((mode) => mode.name === name) ?? this.modes[0];
  }

  /** The largest value of a call in the mode. */
  get largest() {
    const { value } = this.mode;
    return value === undefined ? 0 : Math.max(0, ...[...this.session.data.calls.values()].map((call) => value(call) ?? 0));
  }

  /**
   * Returns the colour of ops that are drawn as one node: that of the largest value among them.
   * @param {lmc.OpNode["kind"]} kind
   * @param {string[]} keys
   * @param {number} largest
   * @returns {Colour}
   */
  of(kind, keys, largest) {
    const { value } = this.mode;
    if (value === undefined) return /** @type {Colour} */ (this.kinds.get(kind));
    let found = -1;
    for (const key of keys) {
      const call = this.session.data.calls.get(key);
      if (call !== undefined) found = Math.max(found, value(call) ?? -1);
    }
    if (found < 0) return { fill: this.variable("back"), line: this.variable("line"), text: this.variable("text") };
    return this.steps[largest === 0 ? 0 : Math.min(Math.floor((found / largest) * STEPS), STEPS - 1)];
  }

  /**
   * Returns the legend.
   * @param {Set<lmc.OpNode["kind"]>} kinds those that are drawn
   */
  legend(kinds) {
    const { text } = this.mode;
    if (text === undefined) {
      return KINDS.filter(([kind]) => kinds.has(kind)).map(([kind, title]) => {
        const colour = /** @type {Colour} */ (this.kinds.get(kind));
        return make("li", {}, swatch(colour.fill, colour.line), title);
      });
    }
    const steps = this.steps.map((colour) => swatch(colour.fill, colour.line));
    return [make("li", {}, "0 ", ...steps, ` ${text(this.largest)}`)];
  }
}

/**
 * @param {string} fill
 * @param {string} line
 */
function swatch(fill, line) {
  const box = make("span", { class: "swatch" });
  box.style.background = fill;
  box.style.borderColor = line;
  return box;
}
