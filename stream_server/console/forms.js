// @ts-check
// Work that may fail, and the place where one is told why: beside a button, or in a form.

import { ApiError } from "./client.js";
import { fill, h } from "./dom.js";

/** What the wire calls a login is a username to a person; what stands in quotes stays. @param {string} text */
export const forPeople = (text) => text.replace(/(?<!['"\w:])`?\blogin(s?)\b`?(?!['":\w])/g, "username$1");

/** A sentence for a person about what went wrong. @param {unknown} error @param {string} [place] the parameter at whose field it stands */
export function explain(error, place) {
  if (!(error instanceof ApiError)) return String(error);
  const wait = error.retryAfter ? ` Try again in ${Math.ceil(error.retryAfter)} s.` : "";
  const where = error.param && error.param !== place ? ` (${error.param})` : "";
  const message = forPeople(error.message + where);
  return `${message[0]?.toUpperCase() ?? ""}${message.slice(1)}.${wait}`;
}

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
 * @param {string} [after] a text behind what went wrong
 */
export function form(attributes, parts, work, after) {
  const key = new RetryKey();
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
    if (!error) return key.done();
    const param = error.param ?? ""; // such as `place.name`
    const wrong = [param, ...param.split(".")].map((name) => made.elements.namedItem(name)).find(Boolean);
    const around = wrong?.closest("label, .field");
    if (around) (around.after(problem), fill(problem, explain(error, param), after));
    if (wrong?.closest("details")) wrong.closest("details").open = true;
    wrong?.focus();
  });
  return made;
}

/** Copies a text. Where the browser does not let the page do so, it is selected, if it stands on the page. @param {{say: (text: string, kind: string) => void}} teller the app, or a form of its own @param {string} text @param {Element} [shown] whose text it is */
export async function copyText(teller, text, shown) {
  const done = await navigator.clipboard?.writeText(text).then(() => true, () => false); // a page of plain HTTP has none
  if (!done && shown) getSelection()?.selectAllChildren(shown);
  teller.say(done ? "Copied" : `The browser does not let the page copy. ${shown ? "The text is selected: press Ctrl-C" : "Select the text instead"}.`, done ? "ok" : "warn");
}

let fields = 0;

/** A field with its label above, and perhaps a hint beneath. @param {string} label @param {Record<string, any>} attributes @param {string} [hint] */
export function field(label, attributes, hint = "") {
  const id = `field-${++fields}`;
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

/** The two buttons beneath a form. @param {string} label of the one that sends it @param {() => void} [cancel] */
export const formEnd = (label, cancel) => h("div", { class: "row end" }, cancel && h("button", { type: "button", onclick: cancel }, "Cancel"), h("button", { class: "primary" }, label));

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

  /** Forget the content: the next write is a new one, even with the same content. */
  done() {
    this.text = "";
  }
}

/** Return a new idempotency key. `crypto.randomUUID` is missing on plain HTTP of another host. */
export const newKey = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
