// @ts-check
import { fill, h, isolate } from "./dom.js";

/** Says that an address names nothing. @param {Element} root @param {string} kind what is missing, such as "page" @param {string} name @param {[string, string][]} links where to go instead: addresses, and what stands there */
export const showLost = (root, kind, name, links) => fill(root, h("section", { class: "card" }, h("h1", { tabindex: "-1" }, `There is no ${kind} `, isolate(name.slice(0, 80))),
  h("p", { class: "row" }, links.map(([href, text]) => h("a", { class: "button", href }, text)))));
