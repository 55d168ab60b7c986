// @ts-check
// Work that may fail, and the place where one is told why: beside a button, or in a form.

import { ApiError } from "./client.js";
import { fill, h } from "./dom.js";

/** A sentence for a person about what went wrong. @param {unknown} error */
export function explain(error) {
  if (!(error instanceof ApiError)) return String(error);
  const wait = error.retryAfter ? ` Try again in ${Math.ceil(error.retryAfter)} s.` : "";
  const where = error.param ? ` (${error.param})` : "";
  return `${error.message[0]?.toUpperCase() ?? ""}${error.message.slice(1)}${where}.${wait}`;
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
 * Makes a form. Sending it does some work, and tells what went wrong in the paragraph of `problemBox` among the parts.
 * @param {Record<string, any>} attributes @param {any[]} parts @param {(form: any) => Promise<any>} work @param {string} [after] a text behind what went wrong
 */
export function form(attributes, parts, work, after) {
  const made = h("form", attributes, parts);
  const place = made.querySelector(".problem") ?? made;
  made.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    void told(place, () => work(made), after);
  });
  return made;
}

/** The two buttons beneath a form. @param {string} label of the one that sends it @param {() => void} [cancel] */
export function formEnd(label, cancel) {
  return h("div", { class: "row end" }, cancel && h("button", { type: "button", onclick: cancel }, "Cancel"), h("button", { class: "primary" }, label));
}
