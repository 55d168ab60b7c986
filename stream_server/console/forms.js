// @ts-check
// Work that may fail, and the place where one is told why: beside a button, or in a form.

import { ApiError } from "./client.js";
import { fill, h } from "./dom.js";
import { store, stored } from "./stored.js";

/** What the wire calls a login is a username to a person, and a status is a post; what stands in quotes stays. @param {string} text */
export const forPeople = (text) => text.replace(/^unknown status$/, "this post is no longer there").replace(/(?<!['"\w:])`?\blogin(s?)\b`?(?!['":\w])/g, "username$1");

/** A sentence for a person about what went wrong. @param {unknown} error @param {string} [place] the parameter at whose field it stands @param {string} [said] instead of the error's own message */
export function explain(error, place, said) {
  if (!(error instanceof ApiError)) return String(error);
  const wait = error.retryAfter ? ` Try again in ${Math.ceil(error.retryAfter)} s.` : "";
  const where = error.param && error.param !== place ? ` (${error.param})` : "";
  const message = forPeople((said ?? error.message) + where);
  const begin = /^\w+:/.test(message) ? message[0] : message[0]?.toUpperCase(); // the name of an operator stays
  return `${begin ?? ""}${message.slice(1)}${message.endsWith("?") ? "" : "."}${wait}`;
}

/** What the page refuses by itself, as the server would. @param {string} message @param {string} [param] the field */
export const refusal = (message, param) => new ApiError(400, { code: "invalid_parameter", message, param });

/** The paragraph that tells what went wrong, empty until something does. */
export const problemBox = () => h("p", { class: "problem", role: "alert" });

/** Does some work, and tells in `place` what went wrong, with a text behind it. @param {Element} place @param {() => Promise<any>} work @param {string} [after] @returns {Promise<any>} the error, or null */
export async function told(place, work, after = "") {
  fill(place);
  try {
    await work();
    return null;
  } catch (error) {
    fill(place, explain(error), after);
    return error;
  }
}

/**
 * Makes a form. Sending it does some work, once at a time, and tells what went wrong in the paragraph of `problemBox` among
 * the parts. The field that the error names gets the focus, and where it has a label, the error stands beneath it.
 * @param {Record<string, any>} attributes @param {any[]} parts @param {(form: any, key: RetryKey) => Promise<any>} work gets the key of its write
 * @param {{after?: string, draft?: string, rule?: import("./rule_field.js").RuleField}} [options] a text behind what went wrong; where a draft is kept until the form is reset, by Cancel or by `work` when the server has it; the field that marks a mistake in its rule
 */
export function form(attributes, parts, work, { after, draft, rule } = {}) {
  let key = new RetryKey();
  const made = h("form", attributes, parts);
  const problem = [...made.querySelectorAll(".problem")].at(-1); // one before it is of a field for a rule
  const { parentNode: home, nextSibling: next } = problem;
  made.addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (made.ariaBusy) return;
    made.ariaBusy = "true";
    home.insertBefore(problem, next);
    const error = await told(problem, () => work(made, key), after);
    made.ariaBusy = null;
    if (!error) return void (key = new RetryKey()); // the next write is another one, even with the same content
    if (error.column && rule) return void (fill(problem), rule.mark(error), rule.input.focus());
    const param = error.param ?? ""; // such as `place.name`
    const wrong = [param, ...param.split(".")].map((name) => made.elements.namedItem(name)).find(Boolean);
    const around = wrong?.closest("label, .field");
    if (around) around.after(problem);
    if (wrong) fill(problem, explain(error, param), after);
    if (wrong?.closest("details")) wrong.closest("details").open = true;
    wrong?.focus();
  });
  if (draft) keepDraft(made, draft);
  return made;
}

/** Where a draft is kept: users of one browser do not see each other's. @param {any} app @param {...string} names */
export const draftPlace = (app, ...names) => ["stream-server.draft", app.user.id, ...names].join(".");

/** The draft at a place, or null. @param {string} place @returns {any} of a form: values by the names of its fields */
export const draftAt = (place) => JSON.parse(stored("sessionStorage", place) || "null");

/**
 * Puts a draft back into a form, and keeps what is entered from now on until the form is reset. It lies readable in the browser,
 * so that no password is kept. @param {any} form @param {string} place
 */
function keepDraft(form, place) {
  const draft = draftAt(place) ?? {};
  const fields = [...form.elements].filter(({ name, type }) => name && type !== "password");
  const member = (/** @type {any} */ { type }) => (type === "checkbox" ? "checked" : "value");
  const values = () => JSON.stringify(Object.fromEntries(fields.map((each) => [each.name, each[member(each)]])));
  const untouched = values();
  for (const each of fields) each[member(each)] = draft[each.name] ?? each[member(each)];
  form.addEventListener("input", () => store("sessionStorage", place, values() === untouched ? "" : values()));
  form.addEventListener("reset", () => store("sessionStorage", place, ""));
}

/** Shows a form in a slot while it has a draft. @param {Element} slot @param {string} place of the draft @param {(place: string) => any} draw @returns {() => void} shows it with the focus in its first field */
export function opener(slot, place, draw) {
  if (draftAt(place)) fill(slot, draw(place));
  return () => fill(slot, draw(place)).querySelector("input, textarea").focus();
}

/** Copies a text. Where the browser does not let the page do so, it is selected, if it stands on the page. @param {{say: (text: string, kind: string) => void}} teller the app, or a form of its own @param {string} text @param {Element} [shown] whose text it is */
export async function copyText(teller, text, shown) {
  const done = await navigator.clipboard?.writeText(text).then(() => true, () => false); // a page of plain HTTP has none
  if (!done && shown) getSelection()?.selectAllChildren(shown);
  teller.say(done ? "Copied" : `The browser does not let the page copy. ${shown ? "The text is selected: press Ctrl-C" : "Select the text instead"}.`, done ? "ok" : "warn");
}

/** A field with its label above, and perhaps a hint beneath. @param {string} label @param {Record<string, any>} attributes @param {string} [hint] */
export function field(label, attributes, hint = "") {
  const id = `field-${newKey()}`;
  return h("div", { class: "field" }, h("label", { for: id }, label),
    h("input", { id, autocapitalize: "none", autocomplete: "off", spellcheck: "false", "aria-describedby": hint ? `${id}-hint` : null, ...attributes }),
    hint && h("span", { id: `${id}-hint`, class: "muted small" }, hint));
}

/** Buttons of which one is pressed, at first the first. @param {Record<string, any>} attributes @param {Record<string, string>} options names, and what stands on the buttons @param {(name: string) => void} onChoice */
export function choice(attributes, options, onChoice) {
  const press = (/** @type {Event} */ { currentTarget }) => {
    buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === currentTarget)));
    onChoice(/** @type {HTMLElement} */ (currentTarget).dataset.name ?? "");
  };
  const buttons = Object.entries(options).map(([name, text], at) => h("button", { type: "button", "aria-pressed": String(!at), dataset: { name }, onclick: press }, text));
  return h("div", { role: "group", ...attributes }, buttons);
}

/** The buttons beneath a form. @param {string} label of the one that sends it @param {() => void} [cancel] @param {...any} others */
export const formEnd = (label, cancel, ...others) => h("div", { class: "row end" }, cancel && h("button", { type: "button", onclick: (/** @type {any} */ { currentTarget }) => (currentTarget.form.reset(), cancel()) }, "Cancel"), others, h("button", { class: "primary" }, label));

/** The key of a write that may have to be repeated: the same content keeps its key, so that it takes effect once. */
export class RetryKey {
  text = "";
  key = "";

  /** @param {unknown} content @returns {string} */
  of(content) {
    const text = JSON.stringify(content);
    if (this.text !== text) Object.assign(this, { text, key: newKey() });
    return this.key;
  }
}

/** A text that is nowhere else: the key of a write, the id of a field. `crypto.randomUUID` is missing on plain HTTP of another host. */
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
