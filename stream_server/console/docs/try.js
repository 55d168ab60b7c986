// @ts-check
/** The form that sends a request of one route, shows its answer, and copies it as curl. */

import { h } from "../dom.js";
import { toQuery } from "../client.js";
import { copyText } from "../forms.js";
import { BASE, parsed } from "../session.js";
import { quoted } from "../snippets.js";
import { follow } from "./document.js";
import { example, startingBody, typeWords } from "./schema.js";

/** @typedef {import("./document.js").Route} Route */
/** @typedef {Record<"path" | "query" | "header", Record<string, string>> & {body: string}} Values  an empty value of a query or a header is left out */

const MAX_SHOWN = 64 * 1024;
const SHOWN_HEADERS = ["location", "retry-after", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "www-authenticate"];
const JSON_TYPE = "application/json";

export class TryForm {
  /** @param {any} source @param {Route} route @param {import("../client.js").Client} client */
  constructor(source, route, client) {
    this.source = source;
    this.route = route;
    this.client = client;
    /** @type {AbortController | null} */ this.running = null;
    this.fields = route.parameters.map((parameter) => fieldOf(source, route, parameter));
    /** @type {HTMLTextAreaElement | null} */ this.body = null;
    this.command = h("pre", { class: "docs-curl", tabindex: "0", "aria-label": "the request as a curl command" });
    this.send = h("button", { type: "submit", class: "primary" }, `Send ${route.method}`);
    this.copy = h("button", { type: "button", onclick: () => copyText(this, this.command.textContent, this.command) }, "Copy as curl");
    this.state = h("p", { class: "docs-state", role: "status" });
    this.answer = h("pre", { class: "docs-answer", tabindex: "0", "aria-label": "the answer", hidden: true });
    const onsubmit = (/** @type {Event} */ event) => (event.preventDefault(), this.submit());
    this.root = h("form", { class: "docs-try", "aria-label": `Try ${route.method} ${route.path}`, oninput: () => this.showCommand(), onsubmit },
      h("h4", {}, "Try it"),
      route.access !== "open" && !client.user && h("p", { class: "muted small" }, "This route needs a token. ", h("a", { href: "./" }, "Sign in"), " in the console, and reload this page."),
      this.fields.map((field) => field.root), route.bodies.length > 0 && this.bodyParts(), this.command,
      h("div", { class: "row" }, this.send, this.copy), this.state, this.answer);
    this.showCommand();
  }

  bodyParts() {
    const schema = follow(this.source, this.route.bodies.find((each) => each.media === JSON_TYPE)?.schema ?? {});
    const text = h("textarea", { spellcheck: "false", id: `body-${this.route.id}` });
    const write = (/** @type {any} */ body) => {
      text.value = JSON.stringify(body, null, 2);
      text.rows = Math.min(12, text.value.split("\n").length + 1);
    };
    const add = (/** @type {string} */ name) => {
      const body = parsed(text.value || "{}");
      if (typeof body !== "object" || body === null) return this.say("The body is not valid JSON.", "warn");
      write({ ...body, [name]: example(this.source, schema.properties[name], name) });
      this.showCommand();
    };
    write(startingBody(this.source, schema));
    if (!this.route.bodyRequired) text.value = "";
    this.body = text;
    return [h("label", { for: text.id }, "Body"), text, h("div", { class: "docs-adders" }, Object.keys(schema.properties ?? {}).map((name) =>
      h("button", { type: "button", class: "docs-adder", "aria-label": `add ${name} to the body`, onclick: () => add(name) }, `+ ${name}`)))];
  }

  /** @returns {Values} */
  values() {
    const values = /** @type {any} */ ({ path: {}, query: {}, header: {}, body: this.body?.value.trim() ?? "" });
    for (const field of this.fields) values[field.place][field.name] = field.input.value.trim();
    return values;
  }

  showCommand() {
    this.command.textContent = curl(this.route, this.values(), location.origin + BASE);
  }

  async submit() {
    if (this.running) return this.running.abort();
    for (const field of this.fields) field.complain("");
    const { body } = this.values();
    if (body && parsed(body) === undefined) return this.say("The body is not valid JSON.", "warn");
    this.running = new AbortController();
    this.send.textContent = "Stop";
    await this.run(this.running.signal);
    this.running = null;
    this.send.textContent = `Send ${this.route.method}`;
  }

  /** @param {AbortSignal} signal */
  async run(signal) {
    const started = performance.now();
    this.say("Sending …");
    this.answer.hidden = true;
    try {
      const response = await this.request(signal);
      const took = `${Math.round(performance.now() - started)} ms`;
      const headers = SHOWN_HEADERS.filter((name) => response.headers.has(name)).map((name) => `${name}: ${response.headers.get(name)}`);
      this.say([`${response.status} ${response.statusText}, ${took}`, ...headers].join("\n"), response.ok ? "ok" : "warn");
      await this.show(response);
    } catch (error) {
      this.say(signal.aborted ? "Stopped." : "The server did not answer.", signal.aborted ? "ok" : "warn");
    }
  }

  /** @param {AbortSignal} signal */
  async request(signal) {
    const values = this.values();
    const headers = new Headers(given(values.header));
    if (this.route.access !== "open" && this.client.user) headers.set("Authorization", `Bearer ${await this.client.token()}`);
    headers.set("Accept", this.route.streams ? "application/x-ndjson" : "*/*");
    if (values.body) headers.set("Content-Type", JSON_TYPE);
    return fetch(BASE + target(this.route, values), { method: this.route.method, headers, body: values.body || undefined, signal });
  }

  /** Show the body as it comes, and at its end as formatted JSON. @param {Response} response */
  async show(response) {
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
      text = (text + part.value).slice(-MAX_SHOWN);
      this.answer.textContent = text;
      this.answer.hidden = false;
    }
    const body = parsed(text);
    if (body === undefined) return;
    this.answer.textContent = JSON.stringify(body, null, 2);
    this.fields.find((field) => field.name === body?.error?.param)?.complain(body.error.message);
  }

  /** @param {string} text @param {string} [kind] "ok" or "warn" */
  say(text, kind = "ok") {
    this.state.textContent = text;
    this.state.classList.toggle("docs-bad", kind === "warn");
  }
}

/** One parameter of the form, with a place for what is wrong with it. @param {any} source @param {Route} route @param {any} parameter */
function fieldOf(source, route, { name, in: place, required, schema }) {
  const id = `${route.id}-${name}`;
  const input = h("input", { id, required, autocomplete: "off", spellcheck: "false", placeholder: typeWords(follow(source, schema)), "aria-describedby": `${id}-error` });
  const error = h("span", { class: "docs-bad", id: `${id}-error` });
  const complain = (/** @type {string} */ text) => {
    error.textContent = text;
    input.toggleAttribute("aria-invalid", text !== "");
    if (text) input.focus();
  };
  return { name, place, input, complain, root: h("div", { class: "docs-field" }, h("label", { for: id }, name), input, error) };
}

/** Return the path and query of a request. An empty path parameter stays as `{name}`. @param {Route} route @param {Values} values */
function target(route, values) {
  const path = route.path.replace(/\{(\w+)\}/g, (whole, name) => encodeURIComponent(values.path[name] ?? "") || whole);
  const query = toQuery(values.query);
  return query ? `${path}?${query}` : path;
}

/** Return the entries that have a value. @param {Record<string, string>} values @returns {[string, string][]} */
const given = (values) => Object.entries(values).filter(([, value]) => value !== "");

/** Return the request as a curl command. `$TOKEN` stands for the token. @param {Route} route @param {Values} values @param {string} origin */
function curl(route, values, origin) {
  const parts = [`curl ${route.streams ? "-sSN" : "-sS"}${route.method === "GET" ? "" : ` -X ${route.method}`} ${quoted(origin + target(route, values))}`];
  if (route.access !== "open") parts.push('-H "Authorization: Bearer $TOKEN"');
  for (const [name, value] of given(values.header)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (values.body) parts.push("-H 'Content-Type: application/json'", `-d ${quoted(values.body)}`);
  return parts.join(" \\\n  ");
}
