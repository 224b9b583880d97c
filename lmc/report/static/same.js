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
    const [first] = before.selected;
    if (selected.length === 0 && first !== undefined) selected.push(...this.near(before.nodeOf(first)?.place));
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

  /**
   * Returns the line of the new text at which a line of the old one stands; of those that are gone, where they stood.
   * @param {lmc.SourceLine} place
   * @returns {{source: number, line: number} | undefined}
   */
  place(place) {
    const file = this.before.data.view.sources?.[place.source];
    const source = (this.data.view.sources ?? []).findIndex((each) => each.file === file?.file);
    if (file === undefined || source < 0) return undefined;
    const [old, now] = [linesOf(file), linesOf(/** @type {lmc.SourceFile} */ (this.data.view.sources?.[source]))];
    let [above, below] = [1, 0];
    const most = Math.min(old.length, now.length);
    while (above < most && old[above] === now[above]) above += 1;
    while (below < most - above && old[old.length - 1 - below] === now[now.length - 1 - below]) below += 1;
    const isBelow = place.line >= old.length - below;
    return { source, line: isBelow ? place.line + now.length - old.length : Math.max(Math.min(place.line, now.length - 1 - below), 1) };
  }

  /**
   * Returns the ops of the final module at a line of the old data; else those of the nearest line that has some, of the
   * same function of the source if there are any.
   * @param {lmc.SourceLine | null | undefined} old
   * @returns {string[]}
   */
  near(old) {
    const place = old ? this.place(old) : undefined;
    if (place === undefined) return [];
    const lines = linesOf(/** @type {lmc.SourceFile} */ (this.data.view.sources?.[place.source]));
    const head = functionOf(lines, place.line);
    /** @type {string[]} */
    let found = [];
    let least = Infinity;
    for (const [key, node] of this.data.state(this.data.last).nodes) {
      if (node.place?.source !== place.source) continue;
      const distance = Math.abs(node.place.line - place.line) + (functionOf(lines, node.place.line) === head ? 0 : 1e6);
      if (distance < least) [found, least] = [[key], distance];
      else if (distance === least) found.push(key);
    }
    return found;
  }
}

/**
 * Returns the lines of a source by their numbers, as far as the data have them.
 * @param {lmc.SourceFile} file
 * @returns {string[]}
 */
function linesOf({ lines = [], first = 1 }) {
  return [...Array.from({ length: first }, () => ""), ...lines];
}

/**
 * Returns the line at which the function around a line begins; 0 outside of functions.
 * @param {string[]} lines
 * @param {number} line
 */
function functionOf(lines, line) {
  const indentOf = (/** @type {string} */ text) => text.length - text.trimStart().length;
  let indent = lines[line]?.trim() ? indentOf(lines[line]) : Infinity;
  for (let at = Math.min(line, lines.length) - 1; at > 0; at--) {
    if (!lines[at]?.trim() || indentOf(lines[at]) >= indent) continue;
    indent = indentOf(lines[at]);
    if (/^\s*(async\s+)?def\s/u.test(lines[at])) return at;
  }
  return 0;
}

/** The control that has the focus, to be found again among those that are made of other data. */
class Focused {
  /** @param {Same} same */
  constructor(same) {
    const { byId: parts } = same.before.parts;
    this.element = /** @type {HTMLElement} */ (document.activeElement ?? document.body);
    this.box = this.element.parentElement?.closest("[id]") ?? document.body;
    this.index = this.controls().indexOf(this.element);
    this.name = this.nameOf(this.element, {
      op: (key) => same.keys.get(key),
      part: (id) => same.part(/** @type {Part} */ (parts.get(id)))?.id,
      line: (line) => String(same.place({ source: Number(/** @type {HTMLSelectElement} */ (byId("source-file")).value), line: Number(line) })?.line),
    });
  }

  /** The controls around it. */
  controls() {
    return /** @type {HTMLElement[]} */ ([...this.box.querySelectorAll("button, input, select, a, [tabindex]")]);
  }

  /**
   * Returns what a control is for: its op, part or line, else its words.
   * @param {HTMLElement} element
   * @param {Record<"op" | "part" | "line", (name: string) => string | undefined>} [renamed]
   */
  nameOf(element, renamed) {
    for (const kind of /** @type {const} */ (["part", "op", "line"])) {
      const holder = /** @type {HTMLElement | null} */ (element.closest(`[data-${kind}]`));
      if (holder === null || !this.box.contains(holder)) continue;
      const value = holder.dataset[kind] ?? "";
      return `${kind} ${renamed === undefined ? value : renamed[kind](value)} ${[...holder.querySelectorAll("*")].indexOf(element)}`;
    }
    return `words ${element.textContent}`;
  }

  /** Gives the focus to the same control, or else to the one in its place. */
  restore() {
    if (this.element.isConnected || this.index < 0) return;
    const controls = this.controls();
    const found = controls.find((each) => this.nameOf(each) === this.name) ?? controls[Math.min(this.index, controls.length - 1)];
    if (found === undefined) return;
    if (found.tabIndex < 0) {
      for (const each of controls) if (each.tagName === found.tagName && each.getAttribute("tabindex") === "0") each.tabIndex = -1;
      found.tabIndex = 0;
    }
    found.focus({ preventScroll: true });
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
