// @ts-check
// The view People. See the contract of views in app.js.

import { fill, h } from "../dom.js";

/** @param {HTMLElement} root @param {any} app */
export function mount(root, app) {
  fill(root, h("h1", {}, "People"), h("p", { class: "muted" }, `Hello ${app.user.name}`));
  return { unmount() {} };
}
