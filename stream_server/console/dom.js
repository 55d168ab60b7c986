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

/** A name or login that others chose: its direction of writing must not turn the text around it. @param {any} text */
export function isolate(text, attributes = {}) {
  return h("bdi", attributes, text);
}

const ICONS = {
  pause: "M8 5v14M16 5v14",
  play: "M7 5l11 7-11 7z",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  more: "M12 5h.01M12 12h.01M12 19h.01",
  theme: "M12 4a8 8 0 1 0 8 8 6 6 0 0 1-8-8z",
  help: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 18h.01",
  pen: "M4 20l1-4L16 5l3 3L8 19z",
  reply: "M10 7L4 12l6 5M4 12h10a6 6 0 0 1 6 6",
  heart: "M12 20s-8-5-8-11a4 4 0 0 1 8-1 4 4 0 0 1 8 1c0 6-8 11-8 11z",
  repost: "M5 9l3-3 3 3M8 6v10h6M19 15l-3 3-3-3M16 18V8h-6",
  pin: "M12 21s-7-6-7-12a7 7 0 0 1 14 0c0 6-7 12-7 12zM12 11h.01",
  user: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21a8 8 0 0 1 16 0",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM21 21l-5-5",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  left: "M15 5l-7 7 7 7",
  right: "M9 5l7 7-7 7",
  warn: "M12 4l9 16H3zM12 10v4M12 17h.01",
  check: "M5 12l5 5L20 7",
  gap: "M4 12h3M10.5 12h3M17 12h3",
  edit: "M4 7h16M4 12h10M4 17h6",
};

/** A small drawing, hidden from screen readers: the button or text beside it has the name. @param {keyof typeof ICONS} name */
export function icon(name) {
  return svg("svg", { class: "icon", viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));
}

/** The colour of a role (`--accent`) as canvas needs it. @param {string} role */
export function colour(role) {
  const probe = h("i", { class: `role-${role}`, hidden: true });
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** @param {string} iso a time of the API @returns {string} such as `18:02:07` in the viewer's own time */
export function clock(iso) {
  return new Date(iso).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

/** A time of the API as the viewer reads it, with the exact one on hover. @param {string} iso */
export function time(iso) {
  return h("time", { datetime: iso, title: new Date(iso).toLocaleString() }, clock(iso));
}
