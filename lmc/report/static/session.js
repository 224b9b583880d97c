/** What the reader looks at: the stage of the slider, the selected ops, the open groups. */

/** @typedef {"data" | "stage" | "selection" | "open" | "theme"} Change */
/** @typedef {{stage: number, selected: Set<string>, open: Set<string>}} Looked what of a program is looked at */

class Session {
  /** @param {ProgramData} data */
  constructor(data) {
    this.data = data;
    this.parts = new Parts(data);
    this.stage = data.last;
    /** @type {Set<string>} */
    this.selected = new Set();
    /** @type {Set<string>} */
    this.open = this.parts.openAtFirst();
    /** @type {Map<Change, (() => void)[]>} */
    this.listeners = new Map();
  }

  /**
   * @param {Change[]} changes
   * @param {() => void} listener
   */
  on(changes, listener) {
    for (const change of changes) this.listeners.set(change, [...(this.listeners.get(change) ?? []), listener]);
  }

  /** @param {Change} change */
  changed(change) {
    for (const listener of this.listeners.get(change) ?? []) listener();
  }

  /**
   * Shows other data: the program has changed.
   * @param {ProgramData} data
   * @param {Parts} parts
   * @param {Looked} looked
   */
  replace(data, parts, looked) {
    this.data = data;
    this.parts = parts;
    Object.assign(this, looked);
    this.changed("data");
  }

  /** @param {number} stage */
  show(stage) {
    const next = Math.min(Math.max(stage, 0), this.data.last);
    if (next === this.stage) return;
    this.stage = next;
    this.changed("stage");
  }

  /**
   * Selects ops; with `reveal` the groups around them open.
   * @param {Iterable<string>} keys
   * @param {{reveal?: boolean}} [options]
   */
  select(keys, { reveal = false } = {}) {
    this.selected = new Set(keys);
    if (reveal) {
      let opened = false;
      const shown = this.data.shown(this.stage);
      for (const key of this.selected) {
        if (!shown.has(key)) continue;
        for (const part of this.partOf(key).around()) {
          // A fan-out whose ops are all selected is selected as one node.
          if (part.kind === "fan" && this.keysOf(part).every((each) => this.selected.has(each))) continue;
          opened ||= !this.open.has(part.id);
          this.open.add(part.id);
        }
      }
      if (opened) this.changed("open");
    }
    this.changed("selection");
    const first = [...this.selected][0];
    if (first !== undefined) {
      const label = this.nodeOf(first)?.label ?? first;
      announce(this.selected.size === 1 ? `Selected: ${label}` : `Selected: ${counted(this.selected.size, "op")}`);
    }
  }

  /**
   * Opens a group, or folds it.
   * @param {string} id
   */
  toggle(id) {
    if (!this.open.delete(id)) this.open.add(id);
    this.changed("open");
  }

  /**
   * Returns the part of an op at the shown stage, or at the stage before if this one removes it.
   * @param {string} key
   */
  partOf(key) {
    const { stage, data } = this;
    return this.parts.of(data.state(stage).nodes.has(key) ? stage : Math.max(stage - 1, 0), key);
  }

  /**
   * Returns an op as the shown stage has it, else as the nearest stage has it.
   * @param {string} key
   * @returns {lmc.OpNode | undefined}
   */
  nodeOf(key) {
    const own = this.data.shown(this.stage).get(key);
    for (let stage = this.data.last; own === undefined && stage >= 0; stage--) {
      const found = this.data.state(stage).nodes.get(key);
      if (found !== undefined) return found;
    }
    return own;
  }

  /**
   * Returns the ops of a part that the shown stage has or removes.
   * @param {Part} part
   * @returns {string[]}
   */
  keysOf(part) {
    const shown = this.data.shown(this.stage);
    /** @type {string[]} */
    const keys = [];
    for (const op of part.ops()) if (shown.has(op.key) && this.partOf(op.key) === op) keys.push(op.key);
    return keys;
  }
}
