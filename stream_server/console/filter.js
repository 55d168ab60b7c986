// @ts-check
// What a column asks for: the parts that the builder collects, as a rule, as parameters of a stream, and in the address.

/**
 * @typedef {{words: string[], people: string[], boxes: number[][], languages: string[], sample: number, rule: string,
 *   following: boolean, saved: string, title: string}} Filter
 *   `boxes`: `[west, south, east, north]` in degrees; `sample`: percent, 0 or 100 for all; `following`: posts from and
 *   to the users whom one follows, instead of the other parts; `saved`: "all" for the saved rules instead, or "tag:" and a tag of them.
 */

/** @param {Partial<Filter>} [parts] @returns {Filter} */
export const newFilter = (parts = {}) => ({ words: [], people: [], boxes: [], languages: [], sample: 0, rule: "", following: false, saved: "", title: "", ...parts });

export const MAX_RULE = 1024; // characters that the server takes
const PLAIN_WORD = /^[#@$]?[\p{L}\p{N}\p{M}_]+$/u;

/** One word as the rule language writes it: with punctuation or blanks inside it needs quotes. @param {string} word */
export function term(word) {
  const text = word.trim();
  const isPlain = PLAIN_WORD.test(text) && !/^(and|or)$/i.test(text) && !/^[#@$]\d+$/.test(text);
  return isPlain ? text : `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

/** @param {string[]} alternatives */
const anyOf = (alternatives) => (alternatives.length > 1 ? `(${alternatives.join(" OR ")})` : alternatives[0] ?? "");

/**
 * The parts as one rule: those of one kind are alternatives, the kinds are joined by AND. A box is the operator
 * `locations:`, since every filter of the server is one. Empty if the parts cannot form a rule: a language or a sample
 * matches too much to stand alone, and `follow=@me` is a parameter only.
 * @param {Filter} filter
 */
export function toRule(filter) {
  if (filter.following || filter.saved || !(filter.words.length || filter.people.length || filter.boxes.length || filter.rule.trim())) return "";
  const own = filter.rule.trim();
  const narrower = [anyOf(filter.languages.map((tag) => `lang:${tag}`)), narrows(filter) ? `sample:${filter.sample}` : ""];
  return [beforeOwn(filter), isGroup(filter) ? `(${own})` : own, ...narrower].filter(Boolean).join(" ");
}

/** @param {Filter} filter */
const beforeOwn = (filter) => [
  anyOf(filter.words.map(term)),
  anyOf(filter.people.map((login) => `from:${login}`)),
  filter.boxes.length ? `locations:"${filter.boxes.map((box) => box.join(",")).join(",")}"` : "",
].filter(Boolean).join(" ");

/** Whether the conditions that the user wrote need parentheses beside the others. @param {Filter} filter */
const isGroup = (filter) => /\sOR\s/.test(filter.rule.trim()) && Boolean(beforeOwn(filter) || filter.languages.length || narrows(filter));

/** How many code points of the rule stand before the conditions that the user wrote. @param {Filter} filter */
export const ownStart = (filter) => Array.from(beforeOwn(filter)).length + (beforeOwn(filter) ? 1 : 0) + (isGroup(filter) ? 1 : 0);

/** What the server says of a rule: its places become those in the conditions that the user wrote, and what the console put before has none. @param {string} message @param {number} before code points of the rule before the conditions */
export const atOwnPlace = (message, before) => message.replace(/ (?:of )?column (\d+):?/g, (text, at) => (at > before ? text.replace(at, String(at - before)) : ""));

/** @param {Filter} filter */
const narrows = (filter) => filter.sample > 0 && filter.sample < 100;

/**
 * How a column gets its events. `shared` are parameters that may stand beside those of other columns on one connection.
 * A sample cannot: it is a base of its own on the wire, never beside rules. Such a column gets a connection to itself.
 * @param {Filter} filter @param {string} tag
 * @returns {{shared?: {rule?: string, follow?: string}, own?: Record<string, any>}}
 */
export function toParameters(filter, tag) {
  const rule = toRule(filter);
  if (rule) return { shared: { rule: tag ? `${tag}:${rule}` : rule } };
  if (filter.following) return { shared: { follow: "@me" } };
  if (filter.saved) return { own: { rules: "saved", explain: "true" } };
  return { own: { sample: filter.sample || 100, language: filter.languages.join(",") || undefined } };
}

/** The kinds of events that columns show. */
export const SHOWN_KINDS = "post,edit,delete";

/** The parameters of a stream of this column alone, as a program would open it. @param {Filter} filter @returns {Record<string, any>} */
export function aloneParameters(filter) {
  const { shared, own } = toParameters(filter, "");
  return { ...(shared ?? own), explain: "true" };
}

/** What to call a column. @param {Filter} filter */
export function titleOf(filter) {
  if (filter.title) return filter.title;
  if (filter.following) return "From and to people I follow"; // as `follow` has it: also answers to them, and reposts of theirs
  if (filter.saved) return filter.saved === "all" ? "My saved rules" : `Saved rules: ${filter.saved.slice(4)}`;
  const boxes = filter.boxes.length ? [filter.boxes.length > 1 ? `${filter.boxes.length} areas` : "an area"] : [];
  const named = [...filter.words, ...filter.people.map((login) => `@${login}`), ...boxes, ...(filter.rule.trim() ? [filter.rule.trim()] : [])];
  const tail = filter.languages.length ? ` in ${filter.languages.join(", ")}` : "";
  if (!named.length) return (narrows(filter) ? `A ${filter.sample} % sample` : "Everything") + tail;
  return named.join(", ") + tail;
}

/** A filter without its empty parts. @param {Filter} filter @returns {Partial<Filter>} */
export const short = (filter) => Object.fromEntries(Object.entries(filter).filter(([, value]) => (Array.isArray(value) ? value.length : value)));

/** The columns as a part of the address, short and without any token. @param {Filter[]} filters */
export const toHash = (filters) => encodeURIComponent(JSON.stringify(filters.map(short)));

/** Whether two filters ask for the same posts: a title is for the reader. @param {Filter} one @param {Filter} other */
export const asksSame = (one, other) => toHash([{ ...one, title: "" }]) === toHash([{ ...other, title: "" }]);

/** @param {string} text @returns {Filter[] | null} null if the address names no columns, or none that can be read */
export function fromHash(text) {
  try {
    const found = JSON.parse(decodeURIComponent(text));
    return Array.isArray(found) ? found.slice(0, 40).map(readFilter) : null;
  } catch {
    return null;
  }
}

/** Takes of a foreign address only what a filter has. @param {any} given @returns {Filter} */
export function readFilter(given) {
  const texts = (list) => (Array.isArray(list) ? list.map(String).slice(0, 50) : []);
  const boxes = Array.isArray(given?.boxes) ? given.boxes.map((box) => [box].flat().map(Number)) : [];
  return newFilter({
    words: texts(given?.words),
    people: texts(given?.people).filter((login) => /^\w{1,20}$/.test(login)),
    languages: texts(given?.languages).filter((tag) => /^[\w-]{2,20}$/.test(tag)),
    boxes: boxes.filter((/** @type {number[]} */ box) => box.length === 4 && box.every(Number.isFinite)).slice(0, 25),
    sample: Math.min(100, Math.max(0, Number(given?.sample) || 0)),
    rule: String(given?.rule ?? "").slice(0, MAX_RULE),
    title: String(given?.title ?? "").slice(0, 60),
    following: given?.following === true,
    saved: /^(all$|tag:)/.test(given?.saved) ? given.saved.slice(0, 200) : "",
  });
}
