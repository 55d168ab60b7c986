// @ts-check
/** The form that writes a status. A draft outlives errors and reloads; a repetition of the same text is safe. */

import { ApiError } from "../client.js";
import { h, number, tellFull } from "../dom.js";
import { form, problemBox, told } from "../forms.js";
import { store, stored } from "../session.js";

/** @typedef {{onPosted: (status: any) => void, onCancel?: () => void, hint?: string}} ComposerOptions  `onCancel` shows a button that gives up; `hint` is the label of the text */

const PREFIX = "stream-server.draft";
const NEAR_LIMIT = 20;
const SPARE = 10; // times the limit: so much may be pasted to be shortened. Browsers take seconds to lay out a megabyte at each key
export const MAX_UNITS = 10_000; // while the limit is not known
const FIXED = ["in_reply_to", "origin", "group"];
const FIELDS = ["message", "place", "lon", "lat", "lang", "group"];

let count = 0;

export class Composer {
  /** @param {any} app @param {any} draft  `message`, `in_reply_to`, `origin`, `group`, `location` @param {ComposerOptions} options */
  constructor(app, draft, options) {
    this.app = app;
    this.draft = draft;
    this.options = options;
    this.limit = 0;
    this.place = [PREFIX, app.user.id, ...FIXED.map((name) => draft[name] ?? "")].join(".");
    const label = options.hint ?? "Write a post";
    this.counter = h("span", { class: "composer-count", id: `composer-count-${++count}` });
    this.text = h("textarea", { name: "message", rows: "3", dir: "auto", maxlength: MAX_UNITS, "aria-label": label, placeholder: options.hint ?? "What is new?", "aria-describedby": this.counter.id });
    this.problem = problemBox();
    this.send = h("button", { class: "primary" }, draft.origin ? "Quote" : draft.in_reply_to ? "Reply" : "Post");
    const cancel = options.onCancel && h("button", { type: "button", onclick: () => { store("sessionStorage", this.place, ""); options.onCancel?.(); } }, "Cancel");
    this.root = form({ class: "composer", "aria-label": label }, [
      this.text, this.more(), this.problem, h("div", { class: "composer-foot" }, this.counter, cancel, this.send)], (_, key) => this.post(key), " Your text is kept.");
    this.root.addEventListener("input", () => { this.counted(); store("sessionStorage", this.place, JSON.stringify(this.values())); });
    this.text.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.root.requestSubmit();
    });
    this.restore();
    void messageLimit(app.client).then((limit) => { this.limit = limit; this.text.maxLength = SPARE * limit || MAX_UNITS; this.counted(); });
  }

  more() {
    const field = (/** @type {string} */ name, /** @type {string} */ label, more) => h("label", {}, label, h("input", { name, autocomplete: "off", ...more }));
    this.groups = this.draft.group || this.draft.in_reply_to ? null : h("select", { name: "group" }, h("option", { value: "" }, "everybody"));
    this.details = h("details", { class: "composer-more" }, h("summary", {}, this.groups ? "Place, language, group" : "Place, language"),
      h("div", { class: "composer-fields" },
        field("place", "Place", { maxlength: "100", placeholder: "Lisbon" }),
        field("lat", "Latitude", { inputmode: "decimal", placeholder: "38.72" }),
        field("lon", "Longitude", { inputmode: "decimal", placeholder: "-9.14" }),
        field("lang", "Language", { maxlength: "35", placeholder: "detected" }),
        this.groups ? h("label", {}, "For", this.groups) : null));
    this.details.addEventListener("toggle", () => this.details.open && this.loadGroups());
    return this.details;
  }

  async loadGroups() {
    if (!this.groups || this.hasGroups) return;
    this.hasGroups = true;
    const error = await told(this.problem, async () => {
      const { groups } = await this.app.client.request("GET", "/v1/users/me/groups", { query: { count: 200 } });
      const chosen = this.groups.value;
      if (groups.some((group) => group.id === this.groups.lastElementChild.value)) this.groups.lastElementChild.remove(); // it has a name now
      this.groups.append(...groups.map((group) => h("option", { value: group.id }, `group: ${group.name}`)));
      this.groups.value = chosen;
    });
    this.hasGroups = !error;
  }

  counted() {
    const left = this.limit - Array.from(this.text.value).length;  // the server counts code points
    const cut = tellFull(this.text) && `. ${tellFull(this.text)}`;
    this.counter.textContent = this.limit ? number(left) + cut : "";
    this.counter.setAttribute("aria-label", `${number(left)} characters left${cut}`);
    this.counter.classList.toggle("composer-near", left <= NEAR_LIMIT);
    this.counter.classList.toggle("problem", left < 0);
    this.send.disabled = this.limit > 0 && left < 0;
  }

  /** @returns {Record<string, string>} */
  values() {
    const data = new FormData(this.root);
    return Object.fromEntries(FIELDS.map((name) => [name, String(data.get(name) ?? "")]));
  }

  /** Return the body of the request; throws a sentence if a field cannot be read. @returns {any} */
  body() {
    const given = this.values();
    const body = /** @type {any} */ ({ message: given.message });
    for (const name of FIXED) if (this.draft[name]) body[name] = this.draft[name];
    if (given.place.trim()) body.place = { name: given.place.trim() };
    if (given.lang.trim()) body.lang = given.lang.trim();
    if (given.group) body.group = given.group;
    if (given.lat.trim() || given.lon.trim()) body.location = { lon: degrees(given.lon, "lon"), lat: degrees(given.lat, "lat") };
    return body;
  }

  /** @param {import("../forms.js").RetryKey} key */
  async post(key) {
    try {
      const body = this.body();
      const status = await this.app.client.request("POST", "/v1/statuses", { body, headers: { "Idempotency-Key": key.of(body) } });
      this.root.reset();
      store("sessionStorage", this.place, "");
      this.counted();
      this.options.onPosted(status);
    } catch (error) {
      this.text.focus(); // unless it names another field
      throw error;
    }
  }

  restore() {
    const { message = "", location = null } = this.draft;
    const given = JSON.parse(stored("sessionStorage", this.place) || "null") ?? { message, lon: location?.lon ?? "", lat: location?.lat ?? "" };
    if (given.group) this.groups?.append(h("option", { value: given.group }, "the group of this draft")); // until its name is known
    for (const name of FIELDS) {
      const field = this.root.elements.namedItem(name);
      if (field) field.value = given[name] ?? "";
    }
    if (FIELDS.some((name) => name !== "message" && given[name])) this.details.open = true;
  }
}

/** @param {string} text @param {string} param */
function degrees(text, param) {
  const value = Number(text.replace(",", "."));
  if (text.trim() !== "" && Number.isFinite(value)) return value;
  throw new ApiError(400, { code: "invalid_parameter", message: "a place on the map needs two numbers of degrees", param });
}

/** The window that writes a post, from any view; see `app.compose` in app.js. @param {any} app @param {Record<string, any>} [draft] `message`, `in_reply_to`, `origin`, `group`, `location` */
export function compose(app, draft = {}) {
  const title = draft.origin ? "Quote" : draft.in_reply_to ? "Reply" : "Write a post";
  const composer = new Composer(app, draft, {
    onPosted: () => {
      window.close();
      app.say("Posted");
    },
  });
  const window = app.dialog(title, composer.root);
  composer.text.focus();
}

/** @type {Promise<number> | null} */
let asked = null;

/** Return the longest message that the server takes, in code points and asked once, or 0 while the server does not say. @param {import("../client.js").Client} client */
function messageLimit(client) {
  asked ??= client.request("GET", "/", { open: true }).then(
    (index) => index?.message_max_chars ?? 0,
    () => { asked = null; return 0; });
  return asked;
}
