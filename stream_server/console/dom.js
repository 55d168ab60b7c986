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

/** Replaces the children of a node. @param {Element} node @param {...any} children */
export function fill(node, ...children) {
  node.replaceChildren(...flat(children));
  return node;
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
export function isolate(text, attributes = {}) {
  return h("bdi", attributes, text);
}

const ICONS = {
  bell: "M6 17V11a6 6 0 0 1 12 0v6l2 2H4zM10 21h4",
  check: "M5 12l5 5L20 7",
  close: "M6 6l12 12M18 6L6 18",
  comment: "M4 5h16v11H11l-5 4v-4H4z",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  edit: "M4 7h16M4 12h10M4 17h6",
  gap: "M4 12h3M10.5 12h3M17 12h3",
  grip: "M9 6h.01M15 6h.01M9 12h.01M15 12h.01M9 18h.01M15 18h.01",
  group: "M9 11a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7zM2.5 20a6.5 6.5 0 0 1 13 0M16 4.5a3.5 3.5 0 0 1 0 6.5M18 14a6.5 6.5 0 0 1 3.5 6",
  heart: "M12 20s-8-5-8-11a4 4 0 0 1 8-1.5A4 4 0 0 1 20 9c0 6-8 11-8 11z",
  help: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 18h.01",
  home: "M4 11l8-7 8 7v9h-5v-6H9v6H4z",
  knock: "M10 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM3 21a7 7 0 0 1 11-5.7M18 14v6M15 17h6",
  link: "M10 14l4-4M9 7l2-2a4.2 4.2 0 0 1 6 6l-2 2M15 17l-2 2a4.2 4.2 0 0 1-6-6l2-2",
  list: "M8 6h12M8 12h12M8 18h12M4 6h.01M4 12h.01M4 18h.01",
  lock: "M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3",
  mail: "M3 6h18v12H3zM3 7l9 7 9-7",
  more: "M5 12h.5M12 12h.5M19 12h.5",
  pause: "M8 5v14M16 5v14",
  pen: "M4 20l1-4L16 5l3 3L8 19z",
  pin: "M12 21s-7-6-7-12a7 7 0 0 1 14 0c0 6-7 12-7 12zM12 9h.01",
  play: "M7 5l11 7-11 7z",
  plus: "M12 5v14M5 12h14",
  quote: "M10 6H4v7h6zM10 12c0 4-2 5-5 6M20 6h-6v7h6zM20 12c0 4-2 5-5 6",
  reply: "M10 6L4 12l6 6M4 12h9a7 7 0 0 1 7 7",
  repost: "M17 3l4 4-4 4M21 7H7a4 4 0 0 0-4 4v1M7 21l-4-4 4-4M3 17h14a4 4 0 0 0 4-4v-1",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  shield: "M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6z",
  star: "M12 3.5l2.6 5.4 5.9.8-4.3 4.1 1 5.9-5.2-2.8-5.2 2.8 1-5.9L3.5 9.7l5.9-.8z",
  theme: "M12 4a8 8 0 1 0 8 8 6 6 0 0 1-8-8z",
  trash: "M5 7h14M9 7V4h6v3M7 7l1 13h8l1-13M10 11v5M14 11v5",
  user: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21a8 8 0 0 1 16 0",
  warn: "M12 4l9 16H3zM12 10v4M12 17h.01",
};

/** @typedef {keyof typeof ICONS} IconName */

/** A small drawing, hidden from screen readers: the button or text beside it has the name. @param {IconName} name */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

/** A number as all pages write it: in English, as their words are, with at least so many digits that count. @param {number} value @param {number} [digits] */
export const number = (value, digits = 2) => value.toLocaleString("en", Math.abs(value) < 10 ** (digits - 1) ? { maximumSignificantDigits: digits } : { maximumFractionDigits: 0 });

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
  root.addEventListener("click", (/** @type {Event} */ event) => { if (/** @type {Element} */ (event.target).closest("button")) close(); });
  root.addEventListener("focusout", (/** @type {FocusEvent} */ event) => { if (!root.contains(/** @type {Node} */ (event.relatedTarget))) close(); });
  root.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !root.open) return;
    close();
    root.querySelector("summary")?.focus();
  });
  return root;
}

/** @param {string} label @param {() => any} onclick @param {string} [kind] a class, such as "danger" */
export function entry(label, onclick, kind = "") {
  return h("button", { type: "button", class: ["menu-entry", kind], onclick }, h("bdi", {}, label));
}
