/** The words and the size of each node of the graph. */

/** @typedef {{lines: string[], font: number, bold: boolean}} Label */
/** @typedef {{width: number, height: number, title: number}} Size */

const FONT = "system-ui, sans-serif";
const MAX_WIDTH = 210;
const MAX_LABEL_LINES = 3;
/** @type {Record<Mark, string>} */
const MARK_SIGNS = { added: "+", changed: "~", removed: "−" };

class Labels {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    this.context = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    /** @type {Map<string, Size>} */
    this.sizes = new Map();
    /** Texts in lines, by font and text. @type {Map<string, string[]>} */
    this.inLines = new Map();
    session.on(["data"], () => {
      this.sizes.clear();
      this.inLines.clear();
    });
  }

  /**
   * Returns the kind of a part, by which it is drawn.
   * @param {Part} part
   * @param {lmc.OpNode | undefined} node
   * @returns {lmc.OpNode["kind"]}
   */
  kindOf(part, node) {
    // Earlier stages have the ops of a prefix group, and no prefix.
    if (part.kind === "prefix" && node?.kind !== "prefix") return "folded";
    return part.kind === "run" || part.kind === "arm" || node === undefined ? "folded" : node.kind;
  }

  /**
   * Returns the words of a part at a stage.
   * @param {Part} part
   * @param {number} stage
   * @param {string[]} keys its ops at the stage
   * @param {boolean} isOpen
   * @returns {Label}
   */
  of(part, stage, keys, isOpen) {
    const { data } = this.session;
    const node = data.shown(stage).get(part.isGroup && part.kind !== "region" && part.kind !== "arm" ? (keys[0] ?? part.key) : part.key);
    const kind = this.kindOf(part, node);
    const font = kind === "call" ? 14 : kind === "hint" || kind === "end" ? 10 : 12;
    const title = this.titleOf(part, stage, keys, node);
    const sign = part.isGroup ? (isOpen ? "▾ " : "▸ ") : "";
    if (isOpen) return { lines: [sign + title], font: 12, bold: true };
    const lines = [...this.wrapped(sign + title, font, kind === "call")];
    const more = stage === data.last ? this.figureOf(part, keys) : "";
    if (more) lines.push(...this.wrapped(more, font, false));
    return { lines, font, bold: kind === "call" };
  }

  /**
   * @param {Part} part
   * @param {number} stage
   * @param {string[]} keys
   * @param {lmc.OpNode | undefined} node
   */
  titleOf(part, stage, keys, node) {
    const { data } = this.session;
    if (part.kind === "op" || part.kind === "region") return node?.label ?? part.key;
    if (part.kind === "arm") return part.region;
    if (part.kind === "fan" && this.isFan(stage, keys)) return times(node?.label ?? part.key, keys.length);
    if (part.kind === "prefix" && keys.includes(part.key)) return data.shown(stage).get(part.key)?.label ?? "shared prefix";
    // A group of which the stage has one op alone.
    const only = keys.length === 1 ? data.shown(stage).get(keys[0]) : undefined;
    return only?.label ?? counted(keys.length, "op");
  }

  /**
   * True if these ops are one fan-out of the stage.
   * @param {number} stage
   * @param {string[]} keys
   */
  isFan(stage, keys) {
    const { data } = this.session;
    const fan = data.fan(stage, keys[0]);
    return fan !== undefined && keys.every((key) => data.fan(stage, key) === fan);
  }

  /**
   * @param {Part} part
   * @param {string[]} keys
   */
  figureOf(part, keys) {
    const { data } = this.session;
    if (part.kind === "op") {
      const call = data.calls.get(part.key);
      if (call !== undefined) return `wave ${call.wave} · ${promptText(call)}`;
      const prefix = data.prefixes.get(part.key);
      return prefix === undefined ? "" : tokensText(prefix.tokens);
    }
    const calls = keys.filter((key) => data.calls.has(key)).length;
    if (part.kind === "prefix") return [tokensText(data.prefixes.get(part.key)?.whole), counted(calls, "call")].join(" · ");
    if (part.kind === "fan") {
      const call = data.calls.get(keys[0]);
      return call === undefined ? "" : `wave ${call.wave} · each ${tokensText(call.prompt)}`;
    }
    const ops = part.kind === "region" ? counted(keys.length - 1, "op") : "";
    return [ops, calls > 0 ? counted(calls, "call") : ""].filter(Boolean).join(", ");
  }

  /**
   * Returns the size of a part that is not open, and the width of its title. They are the same in all stages, so that
   * nothing moves.
   * @param {Part} part
   */
  sizeOf(part) {
    let size = this.sizes.get(part.id);
    if (size === undefined) this.sizes.set(part.id, (size = this.measure(part)));
    return size;
  }

  /** @param {Part} part */
  measure(part) {
    const { data, parts } = this.session;
    let stage = data.last;
    /** @type {string[]} */
    let keys = [];
    for (; keys.length === 0 && stage >= 0; stage--) {
      const { nodes } = data.state(stage);
      for (const op of part.ops()) if (nodes.has(op.key) && parts.of(stage, op.key) === op) keys.push(op.key);
    }
    const { lines, font, bold } = this.of(part, stage + 1, keys, false);
    const width = Math.max(...lines.map((line) => this.width(`${line} + `, font, bold)));
    const title = part.isGroup ? this.width(this.of(part, stage + 1, keys, true).lines[0], 12, true) : 0;
    return { width: Math.ceil(width) + 18, height: Math.ceil(lines.length * font * 1.3) + (bold ? 18 : 10), title: Math.ceil(title) };
  }

  /**
   * @param {string} text
   * @param {number} font
   * @param {boolean} bold
   */
  width(text, font, bold) {
    this.context.font = `${bold ? "bold " : ""}${font}px ${FONT}`;
    return this.context.measureText(text).width;
  }

  /**
   * Returns a text in lines that fit a node.
   * @param {string} text
   * @param {number} font
   * @param {boolean} bold
   */
  wrapped(text, font, bold) {
    const name = `${font} ${bold} ${text}`;
    let lines = this.inLines.get(name);
    if (lines === undefined) this.inLines.set(name, (lines = this.wrap(text, font, bold)));
    return lines;
  }

  /**
   * @param {string} text
   * @param {number} font
   * @param {boolean} bold
   */
  wrap(text, font, bold) {
    /** @type {string[]} */
    const lines = [];
    let line = "";
    for (const word of text.split(/(?<=[ /_.⏎-])/u)) {
      if (line && this.width(line + word, font, bold) > MAX_WIDTH) {
        lines.push(line);
        line = "";
      }
      line += word;
      while (this.width(line, font, bold) > MAX_WIDTH) {
        const cut = Math.floor((line.length * MAX_WIDTH) / this.width(line, font, bold));
        lines.push(line.slice(0, cut));
        line = line.slice(cut);
      }
    }
    lines.push(line);
    if (lines.length > MAX_LABEL_LINES) {
      lines.length = MAX_LABEL_LINES;
      lines[MAX_LABEL_LINES - 1] += "…";
    }
    return lines;
  }
}
