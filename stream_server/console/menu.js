// @ts-check
// A button that opens a small menu, which closes by Escape, by a choice and when the focus leaves it.

import { h, icon } from "./dom.js";

/** @param {string} label @param {any[]} entries of `entry` @param {string} [look] classes of the button @returns {any} */
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
