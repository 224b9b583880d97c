/** Makes elements. A text becomes a text node, so nothing in the data is ever read as HTML. */

/**
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} [attributes]
 *   an attribute that is `true` is empty, one that is `false`, null or undefined is left out; `on…` are handlers
 * @param {(Node | string | null | undefined)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  setAttributes(element, attributes);
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} [attributes]
 * @param {(Node | string)[]} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
function makeSvg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  setAttributes(element, attributes);
  element.append(...children);
  return element;
}

/**
 * @param {Element} element
 * @param {Record<string, string | number | boolean | null | undefined | ((event: any) => void)>} attributes
 */
function setAttributes(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null && value !== undefined) {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
}

/**
 * Returns the element of the page with an id.
 * @param {string} id
 * @returns {HTMLElement}
 */
function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no element ${id}`);
  return found;
}

const NUMBERS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 6 });

/**
 * Returns a figure of the data as text.
 * @param {number} value
 */
function number(value) {
  return NUMBERS.format(value);
}

/**
 * Returns a time with its unit, in three significant digits.
 * @param {number} value in seconds
 */
function seconds(value) {
  const [amount, unit] = value !== 0 && Math.abs(value) < 0.9995 ? [value * 1000, "ms"] : [value, "s"];
  return `${amount.toLocaleString("en-US", { maximumSignificantDigits: 3 })} ${unit}`;
}

/**
 * Returns a time as an element that has all its digits.
 * @param {number} value in seconds
 */
function time(value) {
  return make("data", { value, title: `${value} s` }, seconds(value));
}

/**
 * Returns a share as per cent, as an element that has all its digits.
 * @param {number} value
 */
function percent(value) {
  return make("span", { title: String(value) }, `${(value * 100).toFixed(1)} %`);
}

/** @param {number} value */
function dollars(value) {
  return `$${number(value)}`;
}

/**
 * Returns a count with its noun: "1 call", "2 calls".
 * @param {number} count
 * @param {string} noun
 */
function counted(count, noun) {
  return `${number(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Returns the name of what there may be several of: "view × 3".
 * @param {string} text
 * @param {number} count
 */
function times(text, count) {
  return count === 1 ? text : `${text} × ${number(count)}`;
}

/**
 * Returns a figure; of two modules that are compared, also that of the first: "5 → 7".
 * @param {string} text
 * @param {string | undefined} old
 */
function changedFrom(text, old) {
  return old === undefined || old === text ? text : `${old || "none"} → ${text || "none"}`;
}

/**
 * Returns the length of a prompt: "26 tokens + 1 text".
 * @param {lmc.TokenCount | undefined} tokens
 */
function tokensText(tokens) {
  const known = counted(tokens?.known ?? 0, "token");
  return tokens?.texts ? `${known} + ${counted(tokens.texts, "text")}` : known;
}

/**
 * Returns the length of the prompt of a call; of one that only a run knows, the measured tokens of all its requests.
 * @param {lmc.CallCost} call
 */
function promptText({ prompt, measured }) {
  return measured && !prompt.known ? `${counted(measured.prompt, "token")} measured` : tokensText(prompt);
}

/**
 * Says something to screen readers.
 * @param {string} text
 */
function announce(text) {
  byId("status").textContent = text;
}

/** Milliseconds of work after which the page gets its turn: with style, layout and drawing, a frame takes up to 100. */
const SLICE = 25;
/** Elements that are there at once: as many as can be in view. */
const AT_ONCE = 100;

/**
 * Replaces the children by many others without holding the page up: a slice of them at a time, but at once all down to
 * the end of what is in view, so that a scrolled list stays where it is. Resolves when all are there.
 * @param {HTMLElement} parent
 * @param {number} count
 * @param {(index: number) => Node} make
 * @param {() => boolean} [isCurrent] false: something else is shown by now, and the rest is left out
 * @returns {Promise<void>}
 */
function fill(parent, count, make, isCurrent = () => true) {
  let next = 0;
  const add = (/** @type {number} */ least) => {
    const until = performance.now() + SLICE;
    const part = document.createDocumentFragment();
    while (next < count && (next < least || performance.now() < until)) part.append(make(next++));
    parent.append(part);
  };
  const box = parent.closest(".scroll");
  const inView = box?.scrollTop ? (parent.childElementCount * (box.scrollTop + box.clientHeight)) / box.scrollHeight : 0;
  parent.replaceChildren();
  add(Math.ceil(inView) + AT_ONCE);
  return new Promise((done) => {
    const more = () => {
      if (next === count) done();
      else {
        setTimeout(() => {
          if (!isCurrent()) return;
          add(next + 1);
          more();
        });
      }
    };
    more();
  });
}

/**
 * Lets up, down, Home and End move the focus between elements of which one alone is in the order of Tab.
 * @param {HTMLElement} parent
 * @param {string} selector
 * @param {{previous?: string, next?: string}} [keys]
 */
function rove(parent, selector, { previous = "ArrowUp", next = "ArrowDown" } = {}) {
  parent.addEventListener("keydown", (event) => {
    const keys = [previous, next, "Home", "End"];
    if (!keys.includes(event.key) || event.altKey || event.ctrlKey || event.metaKey) return;
    const items = /** @type {HTMLElement[]} */ ([...parent.querySelectorAll(selector)]).filter(
      (item) => item.getClientRects().length > 0,
    );
    const at = items.indexOf(/** @type {HTMLElement} */ (document.activeElement));
    if (at < 0) return;
    const to = { [previous]: Math.max(at - 1, 0), [next]: Math.min(at + 1, items.length - 1), Home: 0, End: items.length - 1 };
    event.preventDefault();
    moveTabStop(items[at], items[to[event.key]]);
  });
}

/**
 * @param {HTMLElement} from
 * @param {HTMLElement} to
 */
function moveTabStop(from, to) {
  from.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}
