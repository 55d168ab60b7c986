// @ts-check
// Keys of a single letter. A person may turn them off: who speaks to the browser, or touches a key by chance, would do what
// nobody meant (WCAG 2.1.4). The browser keeps the choice for all pages.

import { h } from "./dom.js";
import { store, stored } from "./stored.js";

const CHOICE = "stream-server.keys";

/** Whether an input method is at work: its keys choose among words, and are not for the page. @param {any} event */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** Whether a key may do something by itself. @param {KeyboardEvent} event */
export function isShortcut(event) {
  const isField = /** @type {Element} */ (event.target).closest("input, textarea, select, [contenteditable], dialog, [role=application]");
  const isOff = event.key.length === 1 && event.key !== " " && stored("localStorage", CHOICE);
  return !(isField || event.ctrlKey || event.metaKey || event.altKey || isComposing(event) || isOff);
}

export function keySwitch() {
  const box = h("input", { type: "checkbox", checked: !stored("localStorage", CHOICE), onchange: () => store("localStorage", CHOICE, box.checked ? "" : "off") });
  return h("label", { class: "check" }, box, "Keys of a single letter, digit or sign work");
}
