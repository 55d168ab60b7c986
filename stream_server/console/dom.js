// @ts-check
// Elements from data. Text only ever becomes text: no HTML is parsed, so what other users wrote cannot become markup.

const SVG = "http://www.w3.org/2000/svg";

/** Attributes that would let text become code or style; the page's policy forbids them too. */
const FORBIDDEN = /^(style|on[a-z]+)$/i;

/**
 * Makes an element.
 * @param {string} tag
 * @param {Record<string, any>} [attributes] `onclick: function` listens; `dataset: {}`; `class: []` or text; `true`
 *   sets an empty attribute; null, undefined and false leave it out. `value`, `checked`, `disabled` set the property.
 * @param {...any} children texts, numbers, nodes, arrays of them; null and false are left out.
 * @returns {any} an HTMLElement; `any` spares casts where an input is meant.
 */
export function h(tag, attributes = {}, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** Makes an element of SVG, as `h` does. @param {string} tag @param {Record<string, any>} attributes @param {...any} children */
export function svg(tag, attributes = {}, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

/** @param {any} element @param {Record<string, any>} attributes @param {any[]} children */
function furnish(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(...flat(children));
  return element;
}

/** @param {any} element @param {string} name @param {any} value */
function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function" && name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (FORBIDDEN.test(name)) throw new Error(`the attribute ${name} is not allowed`);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (name === "class") element.setAttribute("class", [value].flat().filter(Boolean).join(" "));
  else if (name === "value" || name === "checked" || name === "disabled" || name === "open") element[name] = value;
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** @param {any[]} children @returns {(Node | string)[]} */
function flat(children) {
  const kept = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  return kept.map((child) => (child instanceof Node ? child : String(child)));
}

/** Replaces the children of a node. If the focus was on one that goes, what is around gets it, such as a row. @param {Element} node @param {...any} children */
export function fill(node, ...children) {
  const focused = /** @type {any} */ (document.activeElement);
  node.replaceChildren(...flat(children));
  if (focused !== document.activeElement) (node.contains(focused) ? focused : node.closest("[tabindex]"))?.focus({ preventScroll: true });
  return node;
}

/** Replaces the children of a node if others differ from them: else they keep what is selected. @param {Element} node @param {...any} children without a state or listeners of their own */
export function refill(node, ...children) {
  const made = /** @type {Element} */ (node.cloneNode());
  if (!fill(made, ...children).isEqualNode(node)) fill(node, ...made.childNodes);
}

/** Holds what is off the page and may be shown again by Back, so that `everywhere` finds it. */
export const shelf = document.createElement("div");

/** The elements on the page and on the shelf. @param {string} selector @returns {HTMLElement[]} */
export const everywhere = (selector) => [document, shelf].flatMap((root) => [...root.querySelectorAll(/** @type {"div"} */ (selector))]);

/** A link to another site, or the bare text if the address is not http or https. @param {string} url @param {any} text */
export function outside(url, text) {
  if (!/^https?:\/\//i.test(url)) return h("span", {}, text);
  return h("a", { href: url, rel: "noopener noreferrer nofollow", target: "_blank" }, text);
}

/** A part of an address as text. What is escaped wrongly, such as a bare `%`, stays as it is. @param {string} part */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The element after or before the one that has the focus, or else the first one. @param {Iterable<Element>} elements @param {number} by 1 or -1 @returns {any} */
export function neighbour(elements, by) {
  const all = [...elements];
  const at = all.findIndex((each) => each.contains(document.activeElement));
  return all[Math.max(0, Math.min(all.length - 1, at + by))];
}

/** A name or login that others chose: its direction of writing must not turn the text around it. @param {any} text */
export const isolate = (text, attributes = {}) => h("bdi", attributes, text);

/** @typedef {keyof typeof import("./icons.json")} IconName */

/** @type {Record<string, string> | undefined} the lines of the drawings, by name */ let lines;
/** @type {Promise<void> | undefined} of them: the page's head asks for them, so that they come with the modules */ let coming;

/** A small drawing, hidden from screen readers: the button or text beside it has the name. @param {IconName} name */
export function icon(name) {
  const path = svg("path", { d: lines?.[name] });
  coming ??= fetch(new URL("icons.json", import.meta.url)).then((answer) => answer.json()).then((all) => { lines = all; }, () => {});
  if (!lines) coming.then(() => path.setAttribute("d", lines?.[name] ?? "")); // without them, the buttons still have their names
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, path);
}

/** A number as all pages write it: in English, as their words are, with at least so many digits that count. @param {number} value @param {number} [digits] */
export const number = (value, digits = 2) => value.toLocaleString("en", Math.abs(value) < 10 ** (digits - 1) ? { maximumSignificantDigits: digits } : { maximumFractionDigits: 0 });

/** What to say of a field that is full: browsers cut what is put in there without a word. @param {any} field with a `maxlength` */
export const tellFull = ({ value, maxLength }) => (value.length < maxLength ? "" : `No more than ${number(maxLength)} fit in here: the rest was cut off.`);

/** Return a time span in words, such as `3 h`. @param {number} seconds */
export function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** A time of the API as the viewer reads it, such as `18:02:07`, with the exact one on hover. @param {string} iso */
export function time(iso) {
  const date = new Date(iso);
  return h("time", { datetime: iso, title: date.toLocaleString() }, date.toLocaleTimeString([], { timeStyle: "medium", hour12: false }));
}

/** A button that opens a small menu, which closes by Escape, by a choice and when the focus leaves it. @param {string} label @param {any[]} entries of `entry` @param {string} [look] classes of the button @returns {any} */
export function menu(label, entries, look = "button quiet") {
  const root = h("details", { class: "menu" }, h("summary", { class: look, "aria-label": label, title: label }, icon("more")), h("div", { class: "menu-list" }, entries));
  const close = () => { root.open = false; };
  const goBack = () => (close(), root.querySelector("summary").focus());
  root.addEventListener("toggle", () => root.open && root.lastElementChild.scrollIntoView({ block: "nearest", inline: "nearest" })); // that of a low row is out of sight
  root.addEventListener("click", (/** @type {any} */ event) => { if (event.target.closest("button")) goBack(); }, true); // before the deed: a window returns the focus to what had it
  root.addEventListener("focusout", (/** @type {FocusEvent} */ event) => { if (!root.contains(/** @type {Node} */ (event.relatedTarget))) close(); });
  root.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => { if (event.key === "Escape" && root.open) goBack(); });
  return root;
}

/** A button with a sign instead of a text. @param {any} sign @param {string} label @param {() => any} onclick @returns {any} */
export const tool = (sign, label, onclick) => h("button", { type: "button", class: "quiet", title: label, "aria-label": label, onclick }, sign);

/** @param {string} label @param {() => any} onclick @param {string} [kind] a class, such as "danger" */
export const entry = (label, onclick, kind = "") => h("button", { type: "button", class: ["menu-entry", kind], onclick }, h("bdi", {}, label));

/** Says that an address names nothing. @param {Element} root @param {string} kind what is missing, such as "page" @param {string} name @param {[string, string][]} links where to go instead: addresses, and what stands there */
export const showLost = (root, kind, name, links) => fill(root, h("section", { class: "card" }, h("h1", { tabindex: "-1" }, `There is no ${kind} `, isolate(name.slice(0, 80))),
  h("p", { class: "row" }, links.map(([href, text]) => h("a", { class: "button", href }, text)))));
