// @ts-check
// What an address shows that names nothing.

import { fill, h, isolate } from "./dom.js";

/** @param {Element} root @param {string} kind what is missing, such as "page" @param {string} name @param {[string, string][]} links where to go instead: addresses, and what stands there */
export function showLost(root, kind, name, links) {
  fill(root, h("section", { class: "card" }, h("h1", { tabindex: "-1" }, `There is no ${kind} `, isolate(name.slice(0, 80))),
    h("p", { class: "row" }, links.map(([href, text]) => h("a", { class: "button", href }, text)))));
}

/** A view for a name that no view has. @param {string} name @param {Record<string, {title: string}>} views */
export const lostView = (name, views) => ({
  title: "No such view",
  mount: (/** @type {Element} */ root) => {
    showLost(root, "view", name, Object.entries(views).map(([each, { title }]) => [`#/${each}`, title]));
    return { unmount() {} };
  },
});
