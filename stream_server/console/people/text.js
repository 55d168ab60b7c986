// @ts-check
/** Texts of users as nodes: links for mentions, tags and addresses. All text is text; no markup is read. */

import { duration, h, isolate, number, outside } from "../dom.js";

/** Return the text of a status or a comment as a paragraph. @param {string} message @param {any} entities */
export const richText = (message, entities) => h("p", { class: "post-text", dir: "auto" }, textNodes(message, entities));

/** Return a text as nodes, with its links, and with marks where it matched. @param {string} message @param {any} entities @param {number[][]} [matches] where each begins and ends @returns {(Node | string)[]} */
export function textNodes(message, entities, matches = []) {
  const characters = Array.from(message);  // indices count code points, and JavaScript's strings count UTF-16 units
  const marked = new Uint8Array(characters.length);
  for (const [start, end] of matches) marked.fill(1, start, end);
  const linked = Object.keys(LINKS).flatMap((kind) => (entities?.[kind] ?? []).map((/** @type {any} */ entity) => ({ entity, link: LINKS[kind] })));
  const nodes = [];
  let at = 0;
  for (const { entity, link } of linked.sort((one, other) => one.entity.indices[0] - other.entity.indices[0])) {
    const [start, end] = entity.indices;
    if (start < at || end > characters.length || end <= start) continue;
    nodes.push(...marks(characters, marked, at, start), link(entity, marks(characters, marked, start, end)));
    at = end;
  }
  return [...nodes, ...marks(characters, marked, at, characters.length)];
}

/** @param {string[]} characters @param {Uint8Array} marked @param {number} from @param {number} to */
function marks(characters, marked, from, to) {
  const nodes = [];
  for (let start = from, end = from; start < to; start = end) {
    while (end < to && marked[end] === marked[start]) end += 1;
    const text = characters.slice(start, end).join("");
    nodes.push(marked[start] ? h("mark", {}, text) : text);
  }
  return nodes;
}

/** What becomes of each kind of entity, with the text inside it. @type {Record<string, (entity: any, inside: any) => Node>} */
const LINKS = {
  mentions: ({ id, login }, inside) => (id ? h("a", { href: userHref(login) }, isolate(inside)) : isolate(inside)),
  hashtags: ({ text }, inside) => h("a", { href: tagHref(text) }, inside),
  cashtags: (_, inside) => h("b", {}, inside),
  urls: (entity, inside) => outside(entity.expanded_url || entity.url, inside),
};

/** @param {string} login */
export const userHref = (login) => `#/people/@${encodeURIComponent(login)}`;

/** @param {string} tag */
export const tagHref = (tag) => `#/people/tag/${encodeURIComponent(tag)}`;

/** A link to a user by login. @param {string} login */
export const userLink = (login, attributes = {}) => h("a", { href: userHref(login), ...attributes }, isolate(`@${login}`));

/** Return a round sign for a user: the first letter of the name, in one of eight colours. @param {any} user with `login` and maybe `name` */
export function face(user) {
  const first = Array.from(user.name || user.login || "?")[0].toUpperCase();
  const sum = Array.from(user.login ?? "").reduce((total, letter) => total + (letter.codePointAt(0) ?? 0), 0);
  return h("span", { class: ["face", `face-${sum % 8}`], "aria-hidden": "true" }, isolate(first));
}

/** Return how long ago a time of the API was, in short; the date if that is a day. @param {string} iso */
export function ago(iso) {
  const seconds = Math.max(0, (Date.now() - Date.parse(iso)) / 1000);
  if (seconds < 5) return "now";
  return seconds < 86_400 ? `${duration(seconds)} ago` : new Date(iso).toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
}

/** Return a time of the API that says how long ago it was; `refreshTimes` keeps it right. @param {string} iso */
export const timeAgo = (iso) => h("time", { datetime: iso, title: new Date(iso).toLocaleString(), "data-ago": true }, ago(iso));

/** A time of the API with its day, for what one looks up later. @param {string} iso */
export const when = (iso) => h("time", { datetime: iso }, new Date(iso).toLocaleString([], { dateStyle: "medium", timeStyle: "medium", hour12: false }));

/** The parameters of an address as a person reads them, such as `rule: tea OR coffee`. @param {string} query */
export const filterText = (query) => [...new URLSearchParams(query)].map(([name, value]) => `${name}: ${value}`).join(", ");

/** What a stream reads: its path, and its filters as a person reads them. @param {{path: string, parameters: string}} stream */
export const streamText = ({ path, parameters }) => (parameters ? `${path}, ${filterText(parameters)}` : path);

/** Lets ages go on. One that stays is not written again: a reader may have selected it. @param {Element} root */
export function refreshTimes(root) {
  for (const each of root.querySelectorAll("time[data-ago]")) {
    const text = ago(each.getAttribute("datetime") ?? "");
    if (each.textContent !== text) each.textContent = text;
  }
}

/** @param {number} count @param {string} one @param {string} [many] */
export const counted = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
