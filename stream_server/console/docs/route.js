// @ts-check
/** One route: a row that opens into what it takes, what it answers, and a form to try it; and the shape of a JSON object, whose members that are objects open on demand. */

import { fill, h } from "../dom.js";
import { follow, refName } from "./document.js";
import { example, innerObject, isRequired, typeWords, withoutNull } from "./schema.js";
import { TryForm } from "./try.js";

/** @typedef {import("./document.js").Route} Route */

const PLACES = /** @type {Record<string, string>} */ ({ path: "In the path", query: "In the query", header: "Headers" });
const NESTED = { class: "docs-nested" };

/** The row of a route, which opens into its panel. @param {any} source @param {Route} route @param {import("../client.js").Client} client */
export function routeSection(source, route, client) {
  const name = h("h3", { class: "docs-row" }, h("span", { class: `docs-method docs-${route.method.toLowerCase()}` }, route.method), " ", h("code", { class: "docs-path" }, breakable(route.path)));
  const row = [name, access(route), h("span", { class: "docs-summary" }, prose(route.summary))];
  const root = unfolding({ class: "docs-route", id: route.id }, row, () => h("div", { class: "docs-panel", id: `panel-${route.id}` },
    h("div", { class: "docs-facts" }, parameters(source, route), body(source, route), answers(source, route), errors(route)),
    h("div", { class: "docs-side" }, new TryForm(source, route, client).root, examples(source, route))));
  root.addEventListener("toggle", () => history.replaceState(null, "", root.open ? `#${route.id}` : location.pathname));
  return root;
}

/** Return a path that may break after its slashes. @param {string} path @returns {(Node | string)[]} */
const breakable = (path) => path.split(/(?<=\/)/).flatMap((part) => [part, h("wbr", {})]);

/** @param {Route} route */
function access(route) {
  const words = { open: "open to all", token: "any token" }[route.access];
  if (words) return h("span", { class: "docs-access" }, words);
  const ticket = route.ticket ? ", or a ticket" : "";
  return h("span", { class: "docs-access" }, "scope ", h("code", {}, route.access), ticket);
}

/** @param {any} source @param {Route} route @returns {Node[]} */
function parameters(source, route) {
  return Object.entries(PLACES).flatMap(([place, title]) => {
    const found = route.parameters.filter((parameter) => parameter.in === place);
    return found.length ? [h("h4", {}, title), h("ul", { class: "docs-shape" }, found.map((one) => parameter(source, one)))] : [];
  });
}

function parameter(source, parameter) {
  const schema = follow(source, parameter.schema);
  return member(source, parameter.required, parameter.name, { ...schema, description: parameter.description ?? schema.description }, true);
}

/** @param {any} source @param {Route} route */
function body(source, route) {
  const schema = route.bodies.at(-1)?.schema;
  const medias = route.bodies.map((each) => each.media).join(" or ");
  return schema && [
    h("h4", {}, "Body ", h("small", {}, medias, route.bodyRequired ? "" : ", optional")),
    about(follow(source, schema).description),
    shape(source, schema, true),
  ];
}

/** @param {any} source @param {Route} route */
function answers(source, route) {
  return route.answers.flatMap((answer, at) => [
    h("h4", {}, "Answer ", h("span", { class: "docs-status" }, answer.status), " ", h("small", {}, answer.media)),
    about(answer.description),
    answer.headers.map((name) => h("p", { class: "docs-about" }, "Header ", h("code", {}, name))),
    at === 0 && answer.schema && shape(source, answer.schema, false),
  ]);
}

/** @param {Route} route */
function errors(route) {
  return h("details", { class: "docs-errors" },
    h("summary", {}, h("h4", {}, "Errors"), " ", route.errors.map((error) => error.status).join(" ")), codeList(route.errors));
}

/** Return error codes by their status. @param {{status: string, codes: string[]}[]} errors */
export const codeList = (errors) => h("dl", { class: "docs-codes" }, errors.flatMap(({ status, codes }) => [h("dt", {}, status), h("dd", {}, codes.map((code) => h("code", {}, code)))]));

/** @param {any} source @param {Route} route */
function examples(source, route) {
  const answer = route.answers[0];
  if (!answer?.schema || answer.media !== "application/json") return null;
  return h("details", { class: "docs-example", open: true },
    h("summary", {}, "Example of the answer"),
    h("pre", { tabindex: "0", "aria-label": "example of the answer" }, JSON.stringify(example(source, answer.schema), null, 2)));
}

/** Return a text in which the parts between backticks are code. @param {string} text @returns {(Node | string)[]} */
export const prose = (text) => text.split("`").map((part, at) => (at % 2 ? h("code", {}, part) : part));

/** @param {string | undefined} text */
const about = (text) => text && h("p", { class: "docs-about" }, prose(text));

/** Return the members of an object schema as a list, or the objects of which it is one. @param {any} source @param {any} schema @param {boolean} sent  whether a client sends it */
export function shape(source, schema, sent) {
  const own = follow(source, schema);
  const inner = innerObject(source, own);
  if (inner === null) return h("p", { class: "docs-type" }, typeWords(own));
  if (!inner.properties) return h("ul", { class: "docs-shape" }, inner.oneOf.map((one) => h("li", {}, objectOf(source, NESTED, refName(one), one, sent))));
  const members = [inner, ...(inner.oneOf ?? [])].flatMap((one) => Object.entries(one.properties));
  return h("ul", { class: "docs-shape" }, members.map(([name, part]) => member(source, isRequired(inner, name), name, part, sent)));
}

/** Return an object that opens into its description and its members. @param {any} source @param {Record<string, any>} attributes @param {any} summary @param {any} schema @param {boolean} sent */
export const objectOf = (source, attributes, summary, schema, sent) =>
  unfolding(attributes, summary, () => [about(follow(source, schema).description), shape(source, schema, sent)]);

/** Return one member of an object, or a parameter. @param {any} source @param {boolean} required @param {string} name @param {any} schema @param {boolean} sent */
function member(source, required, name, schema, sent) {
  const own = withoutNull(schema).schema;
  const inner = innerObject(source, schema);
  return h("li", {},
    h("div", { class: "docs-member" },
      h("code", { class: "docs-name" }, name),
      h("span", { class: "docs-type" }, typeWords(schema)),
      sent && required && h("span", { class: "docs-required" }, "required"),
      !sent && !required && h("span", { class: "docs-optional" }, "may be absent"),
      fallback(schema)),
    about(schema.description ?? own.description ?? own.items?.description ?? follow(source, own).description),
    inner && unfolding(NESTED, refName(own) || refName(own.items) || "members", () => shape(source, inner, sent)));
}

function fallback(schema) {
  const value = schema.default;
  const dull = value === undefined || value === null || value === "" || (Array.isArray(value) && !value.length);
  return dull ? null : h("span", { class: "docs-optional" }, "default ", h("code", {}, JSON.stringify(value)));
}

/** Return what opens on demand, and is built when it is opened for the first time. @param {Record<string, any>} attributes @param {any} summary @param {() => any} make */
function unfolding(attributes, summary, make) {
  const content = h("div", {});
  return h("details", { ...attributes, ontoggle: () => void (content.hasChildNodes() || fill(content, make())) }, h("summary", {}, summary), content);
}
