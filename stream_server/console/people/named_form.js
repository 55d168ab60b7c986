// @ts-check
/** The form with a name and a description that makes or changes a list or a group. */

import { fill, h } from "../dom.js";
import { explain } from "../session.js";
import { RetryKey } from "./site.js";

/** @typedef {Record<string, any>} Json */

/**
 * Return the form. It keeps what was written if the server refuses it, and its key, so that a retry makes nothing twice.
 * @param {{title: string, button: string, given?: Json, more?: any, read?: (form: any) => Json,
 *   send: (body: Json, key: string) => Promise<any>, onCancel?: () => void}} options
 */
export function namedForm(options) {
  const { given = {} } = options;
  const key = new RetryKey();
  const problem = h("p", { class: "problem", role: "alert" });
  const form = h("form", { class: "card stack", "aria-label": options.title }, h("h2", {}, options.title),
    h("label", {}, "Name", h("input", { name: "name", maxlength: "50", required: true, dir: "auto", autocomplete: "off", value: given.name ?? "" })),
    h("label", {}, "Description", h("input", { name: "description", maxlength: "200", dir: "auto", autocomplete: "off", value: given.description ?? "" })),
    options.more, problem,
    h("div", { class: "row end" }, options.onCancel ? h("button", { type: "button", onclick: options.onCancel }, "Cancel") : null, h("button", { class: "primary" }, options.button)));
  form.addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    fill(problem);
    const value = (/** @type {string} */ name) => form.elements.namedItem(name).value;
    const body = { name: value("name"), description: value("description"), ...options.read?.(form) };
    try {
      await options.send(body, key.of(body));
    } catch (error) {
      fill(problem, explain(error));
    }
  });
  return form;
}

/** Return a button that shows a form beneath it, and hides it again. @param {string} label @param {(close: () => void) => Element} make */
export function unfold(label, make) {
  const slot = h("div", {});
  const button = h("button", { type: "button", "aria-expanded": "false" }, label);
  const close = () => {
    fill(slot);
    button.setAttribute("aria-expanded", "false");
  };
  button.addEventListener("click", () => {
    if (slot.childElementCount) return close();
    const form = make(close);
    fill(slot, form);
    button.setAttribute("aria-expanded", "true");
    form.querySelector("input")?.focus();
    return undefined;
  });
  return { button, slot };
}
