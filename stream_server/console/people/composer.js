// @ts-check
/** The form that writes a status. A draft outlives errors and reloads; a repetition of the same text is safe. */

import { h, number, tellFull } from "../dom.js";
import { draftAt, draftPlace, form, formEnd, newKey, problemBox, refusal, told } from "../forms.js";
import { isComposing } from "../keys.js";

/** @typedef {{onPosted: (status: any) => void, onCancel?: () => void, hint?: string}} ComposerOptions  `onCancel` shows a button that gives up; `hint` is the label of the text */

const NEAR_LIMIT = 20;
const SPARE = 10; // times the limit: so much may be pasted to be shortened. Browsers take seconds to lay out a megabyte at each key
export const MAX_UNITS = 10_000; // while the limit is not known
const FIXED = ["in_reply_to", "origin", "group"];

export class Composer {
  /** @param {any} app @param {any} draft  `in_reply_to`, `origin`, `group` @param {ComposerOptions} options */
  constructor(app, draft, options) {
    this.app = app;
    this.draft = draft;
    this.options = options;
    this.limit = 0;
    this.place = draftPlace(app, ...FIXED.map((name) => draft[name] ?? ""));
    const label = options.hint ?? "Write a post";
    this.counter = h("span", { class: "composer-count", id: `composer-count-${newKey()}` });
    this.text = h("textarea", { name: "message", rows: "3", dir: "auto", maxlength: MAX_UNITS, "aria-label": label, placeholder: options.hint ?? "What is new?", "aria-describedby": this.counter.id });
    this.problem = problemBox();
    const word = draft.origin ? "Quote" : draft.in_reply_to ? "Reply" : "Post";
    this.root = form({ class: "composer", "aria-label": label, oninput: () => this.counted() }, [
      this.text, this.more(), this.problem, formEnd(word, options.onCancel, this.counter),
    ], (_, key) => this.post(key), { after: " Your text is kept.", draft: this.place });
    this.text.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !isComposing(event)) this.root.requestSubmit();
    });
    this.details.open = [...this.details.querySelectorAll("input, select")].some(({ value }) => value);
    void messageLimit(app.client).then((limit) => { this.limit = limit; this.text.maxLength = SPARE * limit || MAX_UNITS; this.counted(); });
  }

  more() {
    const field = (/** @type {string} */ name, /** @type {string} */ label, more) => h("label", {}, label, h("input", { name, autocomplete: "off", ...more }));
    const group = draftAt(this.place)?.group; // its name is not known yet
    this.groups = this.draft.group || this.draft.in_reply_to ? null : h("select", { name: "group" }, h("option", { value: "" }, "everybody"), group && h("option", { value: group }, "the group of this draft"));
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
    this.root.querySelector(".primary").disabled = this.limit > 0 && left < 0;
  }

  /** Return the body of the request; throws a sentence if a field cannot be read. @returns {any} */
  body() {
    const given = /** @type {any} */ (Object.fromEntries(new FormData(this.root)));
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
      this.counted();
      this.options.onPosted(status);
    } catch (error) {
      this.text.focus(); // unless it names another field
      throw error;
    }
  }
}

/** @param {string} text @param {string} param */
function degrees(text, param) {
  const value = Number(text.replace(",", "."));
  if (text.trim() !== "" && Number.isFinite(value)) return value;
  throw refusal("a place on the map needs two numbers of degrees", param);
}

/** The window that writes a post, from any view; see `app.compose` in app.js. @param {any} app @param {{in_reply_to?: string, reply_to?: string}} [draft] the post that is answered, and its author's username */
export function compose(app, draft = {}) {
  const hint = draft.reply_to && `Reply to @${draft.reply_to}`;
  const composer = new Composer(app, draft, { hint, onPosted: () => {
    window.close();
    app.say("Posted");
  } });
  const window = app.dialog(hint ?? "Write a post", composer.root);
  composer.text.focus();
}

/** @type {Promise<number> | null} */
let asked = null;

/** Return the longest message that the server takes, in code points and asked once, or 0 while the server does not say. @param {import("../client.js").Client} client */
function messageLimit(client) {
  return (asked ??= client.request("GET", "/", { open: true }).then(
    (index) => index?.message_max_chars ?? 0,
    () => { asked = null; return 0; }));
}
