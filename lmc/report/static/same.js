/** Finds the ops and groups of a program again in the data of an edited one, where their keys are others. */

class Same {
  /**
   * @param {Session} before
   * @param {ProgramData} data
   */
  constructor(before, data) {
    this.before = before;
    this.data = data;
    this.parts = new Parts(data);
    const old = namesOf(before.data);
    const now = namesOf(data);
    /** The new key of each op. @type {Map<string, string>} */
    this.keys = new Map();
    const known = new Map([...now].flatMap(([key, names]) => names.map((name) => [name, key])));
    for (const [key, names] of old) {
      const found = names.map((name) => known.get(name)).find((each) => each !== undefined);
      if (found !== undefined) this.keys.set(key, found);
    }
    /** The new parts by the key of their op and what they are of it. @type {Map<string, Part>} */
    this.named = new Map();
    for (const part of this.parts.byId.values()) {
      const name = partName(part, part.key);
      if (!this.named.has(name)) this.named.set(name, part);
    }
  }

  /**
   * Returns the same part of the new data.
   * @param {Part} part
   * @returns {Part | undefined}
   */
  part(part) {
    const key = this.keys.get(part.key);
    return key === undefined ? undefined : this.named.get(partName(part, key));
  }

  /**
   * Returns what is looked at: the stage by the name of its pass, the ops that are still there, and the groups as they
   * were; a new group is open as at the start.
   * @returns {Looked}
   */
  looked() {
    const { before, data, parts } = this;
    const names = passNames(data);
    const stage = names.indexOf(passNames(before.data)[before.stage]);
    const selected = [...before.selected].map((key) => this.keys.get(key)).filter((key) => key !== undefined);
    const open = parts.openAtFirst();
    for (const [id, part] of before.parts.byId) {
      const same = this.part(part);
      if (same === undefined || !part.isGroup || !same.isGroup) continue;
      if (before.open.has(id)) open.add(same.id);
      else open.delete(same.id);
    }
    open.add("");
    return { stage: before.stage === before.data.last || stage < 0 ? data.last : stage, selected: new Set(selected), open };
  }
}

/**
 * Returns the names of the stages, different for passes that run twice.
 * @param {ProgramData} data
 */
function passNames(data) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  return data.view.stages.map(({ name }) => {
    counts.set(name, (counts.get(name) ?? 0) + 1);
    return `${name} ${counts.get(name)}`;
  });
}

/**
 * Returns the names by which each op is found again, the surest first: its stable id, its words, its line. Ops that have
 * a name in common are counted.
 * @param {ProgramData} data
 * @returns {Map<string, string[]>}
 */
function namesOf(data) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (let stage = data.last; stage >= 0; stage--) {
    for (const [key, node] of data.state(stage).nodes) {
      if (found.has(key)) continue;
      const names = [`words ${node.op} ${node.label}`];
      if (node.id) names.unshift(`id ${node.op} ${node.id}`);
      if (node.place) names.push(`line ${node.op} ${data.placeText(node.place)}`);
      found.set(
        key,
        names.map((name) => {
          counts.set(name, (counts.get(name) ?? 0) + 1);
          return `${name} ${counts.get(name)}`;
        }),
      );
    }
  }
  return found;
}

/**
 * @param {Part} part
 * @param {string} key
 */
function partName(part, key) {
  return `${part.kind === "region" ? "op" : part.kind} ${key} ${part.region}`;
}
