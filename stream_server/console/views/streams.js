// @ts-check
// The view Streams. See the contract of views in app.js.

import { fill, h } from "../dom.js";

/** @param {HTMLElement} root @param {any} app */
export function mount(root, app) {
  fill(root, h("h1", {}, "Streams"), h("p", { class: "muted" }, `Hello ${app.user.name}`));
  return { unmount() {} };
}
