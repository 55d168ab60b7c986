// @ts-check
/** The shape of a JSON object as a list of members; members that are objects open on demand. */

import { h } from "../dom.js";
import { follow, refName } from "./document.js";
import { innerObject, isRequired, typeWords, withoutNull } from "./schema.js";

/** Return a text in which the parts between backticks are code. @param {string} text @returns {(Node | string)[]} */
export function prose(text) {
  return text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));
}

/** Return the members of an object schema as a list. @param {any} source @param {any} schema @param {boolean} sent  whether a client sends it */
export function shape(source, schema, sent) {
  const own = follow(source, schema);
  const inner = innerObject(source, own);
  if (inner === null) return h("p", { class: "docs-type" }, typeWords(own));
  const members = Object.entries(inner.properties);
  return h("ul", { class: "docs-shape" }, ...members.map(([name, part]) => member(source, inner, name, part, sent)));
}

/** Return one member of an object, or a parameter. @param {any} source @param {any} owner whose `required` names what must be there @param {string} name @param {any} schema @param {boolean} sent */
export function member(source, owner, name, schema, sent) {
  const required = isRequired(owner, name);
  const inner = innerObject(source, schema);
  return h("li", {},
    h("div", { class: "docs-member" },
      h("code", { class: "docs-name" }, name),
      h("span", { class: "docs-type" }, typeWords(schema)),
      mark(required, sent),
      fallback(schema)),
    description(source, schema),
    inner && inner.properties ? nested(source, schema, sent) : null);
}

/** @param {boolean} required @param {boolean} sent */
function mark(required, sent) {
  if (sent) return required ? h("span", { class: "docs-required" }, "required") : null;
  return required ? null : h("span", { class: "docs-optional" }, "may be absent");
}

function fallback(schema) {
  const value = schema.default;
  const dull = value === undefined || value === null || value === "" || (Array.isArray(value) && !value.length);
  return dull ? null : h("span", { class: "docs-optional" }, "default ", h("code", {}, JSON.stringify(value)));
}

function description(source, schema) {
  const own = withoutNull(schema).schema;
  const text = schema.description ?? own.description ?? own.items?.description ?? follow(source, own).description;
  return text ? h("p", { class: "docs-about" }, ...prose(text)) : null;
}

/** Return the shape of an inner object, which is built when it is opened. @param {any} source @param {any} schema @param {boolean} sent */
function nested(source, schema, sent) {
  const own = withoutNull(schema).schema;
  const name = refName(own) || refName(own.items ?? {}) || "members";
  const details = h("details", { class: "docs-nested" }, h("summary", {}, name));
  details.addEventListener("toggle", () => {
    const inner = innerObject(source, schema);
    if (details.open && details.childElementCount === 1 && inner) details.append(shape(source, inner, sent));
  });
  return details;
}
