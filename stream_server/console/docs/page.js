// @ts-check
/** The page `/docs`: all routes of the server, from its own `/openapi.json`. */

import { decoded, fill, h, isolate, neighbour } from "../dom.js";
import { isComposing, isShortcut } from "../keys.js";
import { openClient, scopesOf } from "../session.js";
import { errorsOf, routesOf, search } from "./document.js";
import { codeList, objectOf, prose, routeSection, shape } from "./route.js";

const LAST = ["server", "console"]; // of the tags: those about the server itself

class Page {
  /** Draws the page, and listens to keys and to the address. @param {Element} root @param {any} source @param {import("../client.js").Client} client of the console's session; the page also works without one */
  constructor(root, source, client) {
    this.routes = routesOf(source);
    this.sections = this.routes.map((route) => routeSection(source, route, client));
    const isLast = (/** @type {any} */ tag) => Number(LAST.includes(tag.name));
    this.groups = source.tags.toSorted((one, other) => isLast(one) - isLast(other)).map((tag) => this.group(tag));
    this.count = h("p", { class: "docs-count", role: "status" });
    this.search = h("input", { type: "search", id: "docs-search", placeholder: "Search routes", autocomplete: "off", "aria-keyshortcuts": "/", oninput: () => this.filter() });
    this.links = h("ul", { class: "docs-tags" });
    this.none = h("p", {}, "No route has these words. ", h("button", { type: "button", onclick: () => this.clear() }, "Show all routes"));
    this.main = h("main", { class: "docs-main", id: "main", tabindex: "-1" },
      introduction(source, client), this.none, this.groups.map((group) => group.root),
      operators(source), dialects(source), errorTable(source), objects(source));
    fill(root, h("nav", { class: "docs-nav", "aria-label": "Routes" },
      h("label", { for: "docs-search", class: "visually-hidden" }, "Search routes"), this.search, this.count, this.links), this.main);
    this.filter();
    addEventListener("hashchange", () => this.follow());
    document.addEventListener("keydown", (event) => this.key(event));
    this.follow();
  }

  group(tag) {
    const sections = this.sections.filter((section) => section.route.tag === tag.name);
    const root = h("section", { class: "docs-group", id: `tag-${tag.name}`, "aria-labelledby": `title-${tag.name}` },
      h("h2", { id: `title-${tag.name}` }, h("a", { href: `#tag-${tag.name}` }, titleOf(tag.name))),
      h("p", { class: "docs-about" }, prose(tag.description ?? "")),
      sections.map((section) => section.root));
    return { name: tag.name, sections, root };
  }

  /** Show the routes that the search field asks for. */
  filter() {
    const wanted = search(this.routes, this.search.value);
    for (const section of this.sections) section.root.hidden = !wanted.includes(section.route);
    const shown = this.groups.map((group) => ({ group, count: group.sections.filter((section) => !section.root.hidden).length }));
    for (const { group, count } of shown) group.root.hidden = count === 0;
    this.main.classList.toggle("docs-searching", this.search.value.trim() !== "");
    this.none.hidden = wanted.length > 0;
    this.count.textContent = `${wanted.length} of ${this.routes.length} routes`;
    fill(this.links, shown.filter(({ count }) => count).map(({ group, count }) =>
      h("li", {}, h("a", { href: `#tag-${group.name}` }, titleOf(group.name), h("span", { class: "muted" }, count)))));
  }

  /** Open the route that the address names. */
  follow() {
    const target = document.getElementById(decoded(location.hash.slice(1)));
    if (target?.hidden) this.clear();
    if (target instanceof HTMLDetailsElement) target.open = true;
    target?.scrollIntoView();
    /** @type {HTMLElement | null | undefined} */ (target?.querySelector(":scope > summary"))?.focus({ preventScroll: true });
  }

  clear() {
    this.search.value = "";
    this.filter();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Escape" && event.target === this.search) return isComposing(event) ? event.preventDefault() : this.clear(); // else the browser clears it
    if (!isShortcut(event)) return;
    if (event.key === "/") this.search.focus();
    else if (event.key === "j" || event.key === "k") neighbour(this.main.querySelectorAll(".docs-route:not([hidden])"), event.key === "j" ? 1 : -1)?.querySelector("summary").focus();
    else return;
    event.preventDefault();
  }
}

/** @param {string} tag */
const titleOf = (tag) => tag[0].toUpperCase() + tag.slice(1).replaceAll("_", " ");

/** @param {import("../client.js").Client} client */
function accountWords(client) {
  if (!client.user) return ["You are not signed in: you can read everything here, and try the open routes. ", h("a", { href: "./" }, "Sign in"), " to try the others."];
  const codes = scopesOf(client).map((scope) => [" ", h("code", {}, scope)]);
  return ["You are signed in as ", h("b", {}, isolate(`@${client.user.login}`)), " with the scopes", codes, ". Requests that you try are real."];
}

/** @param {any} source @param {import("../client.js").Client} client */
function introduction(source, client) {
  return h("section", { class: "docs-intro" },
    h("h1", {}, "The API ", h("small", {}, source.info.version)),
    h("p", {}, prose(source.info.description)),
    h("p", { class: "docs-account" }, accountWords(client)),
    /** @type {HTMLTemplateElement} */ (document.getElementById("docs-words")).content);
}

/** Return the operators of rules. Links to their place in the guide lead here where there is no guide. @param {any} source */
const operators = (source) => extra("rules", "Operators of rules",
  h("p", { class: "docs-about" }, "The value of ", h("code", {}, "rule"), " is made of these, with ", h("code", {}, "OR"), ", parentheses, and a minus before what must not match."),
  h("ul", { class: "docs-plain" }, source["x-operators"].map(({ operator, help, example }) => h("li", {}, h("code", {}, operator), " ", prose(help), ", as in ", h("code", {}, example)))));

/** Return the routes of other protocols, which OpenAPI's paths leave out. @param {any} source */
function dialects(source) {
  return extra("dialects", "Twitter's protocols",
    h("p", { class: "docs-about" }, "These routes speak the streaming protocols of Twitter v1.1 and v2, so that its clients work unchanged."),
    h("ul", { class: "docs-plain" }, source["x-dialects"].map((row) => h("li", {},
      h("span", { class: `docs-method docs-${row.method.toLowerCase()}` }, row.method), " ", h("code", { class: "docs-path" }, row.path), " ",
      h("span", { class: "docs-summary" }, prose(row.summary))))));
}

function errorTable(source) {
  return extra("errors", "Errors",
    h("p", { class: "docs-about" }, "A refused request gets this body. ", h("code", {}, "param"), " names the wrong parameter, member or header."),
    shape(source, source.components.schemas.ErrorResponse, false),
    codeList(errorsOf(source, source.components.responses)));
}

function objects(source) {
  const all = Object.entries(source.components.schemas).sort(([one], [other]) => one.localeCompare(other));
  return extra("objects", "Objects",
    all.map(([name, schema]) => objectOf(source, { class: "docs-object", id: `object-${name}` }, h("code", {}, name), schema, false)));
}

/** A section behind those of the routes. @param {string} id @param {string} title @param {...any} parts */
const extra = (id, title, ...parts) => h("section", { class: "docs-extra", id }, h("h2", {}, h("a", { href: `#${id}` }, title)), parts);

const root = /** @type {Element} */ (document.getElementById("docs"));
try {
  const response = await fetch("openapi.json");
  if (!response.ok) throw new Error(`${response.status}`);
  const client = openClient();
  if (scopesOf(client).includes("admin")) document.querySelector(".views [href='docs']")?.before(h("a", { href: "./#/operations" }, "Operations"));
  new Page(root, await response.json(), client);
} catch {
  fill(root, h("p", { class: "docs-bad", role: "alert" }, "The server did not answer. Reload the page to try again."));
}
