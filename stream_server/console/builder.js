// @ts-check
// The window that builds a column's filter from parts, asks the server about the rule while one types, and tries it on
// the past hour before it is added.

import { Chips } from "./chips.js";
import { CountChart } from "./counts.js";
import { fill, h, number, time } from "./dom.js";
import { newFilter, readFilter, titleOf, toHash, toRule } from "./filter.js";
import { WorldMap } from "./map.js";
import { counted } from "./people/text.js";
import { postRow } from "./post.js";
import { explain, forPeople, problemBox } from "./forms.js";
import { inTurn } from "./streams/turns.js";
import { store, stored } from "./session.js";

const CHECK_MS = 300; // after the last key
const SHOWN = 3;
const LANGUAGES = ["ar", "de", "en", "es", "fr", "hi", "id", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "uk", "und", "vi", "zh"];

/** @type {Map<string, string>} logins that were seen, with names, to suggest them */
const known = new Map();

/** Lets the builder suggest a user later. @param {string} login @param {string} [name] */
export function remember(login, name) {
  if (known.size < 500 || known.has(login)) known.set(login, name ?? known.get(login) ?? "");
}

export class Builder {
  /** @param {any} app @param {import("./filter.js").Filter | null} filter to change, or null for a new column @param {(filter: import("./filter.js").Filter) => void} onDone @param {string} [name] of the draft */
  constructor(app, filter, onDone, name = "column") {
    this.app = app;
    this.onDone = onDone;
    this.before = filter;
    this.name = name;
    this.triedRule = ""; // of which the result stands in the window
    this.place = `stream-server.draft.${app.user.id}.${name}`;
    this.draft = JSON.parse(stored("sessionStorage", this.place) || "null");
    const parts = this.draft ? readFilter(this.draft.filter) : filter ?? newFilter();
    const onChange = () => this.changed();
    this.words = new Chips({ label: "Words", hint: "coffee, #redis, good morning", values: parts.words, onChange, help: "Any of them. Several words in one chip stand directly after each other." });
    this.people = new Chips({ label: "People", hint: "a username or a name", values: parts.people, onChange, suggestions: [...known].map(([login, name]) => (name ? `${login} · ${name}` : login)), accept: (text) => this.findUser(text), help: "Written by any of them." });
    this.languages = new Chips({ label: "Languages", hint: "en", values: parts.languages, onChange, suggestions: LANGUAGES, accept: checkLanguage });
    this.sample = h("input", { type: "range", min: 1, max: 100, value: parts.sample || 100, oninput: onChange, "aria-label": "Percent of the posts" });
    this.sampleText = h("output", {}, "");
    this.rule = h("textarea", { rows: 2, spellcheck: "false", oninput: onChange, placeholder: "-is:repost (tea OR cake) has:links meta.room:7" }, parts.rule);
    this.title = h("input", { value: parts.title, maxlength: 60, placeholder: "as the filter says", oninput: onChange });
    this.map = new WorldMap(parts.boxes, onChange);
    this.shownRule = h("code", { class: "rule" });
    this.problem = problemBox();
    this.result = h("div", { class: "trial", "aria-live": "polite" });
    this.chart = new CountChart(app.client);
    this.addButton = h("button", { class: "primary", type: "submit" }, filter ? "Change the column" : "Add column");
    this.tryButton = h("button", { type: "button", onclick: () => this.tryPastHour() }, "Try the past hour");
    this.window = app.dialog(filter ? "Change the filter" : "Add a column", this.draw(), { wide: true, class: "builder" });
    this.draft?.typed.forEach((/** @type {string} */ text, /** @type {number} */ at) => (this.fields[at].input.value = text));
    this.changed();
    this.words.input.focus();
  }

  get fields() {
    return [this.words, this.people, this.languages];
  }

  /** Keeps what was entered for this user until it is done: Escape and the end of the session close the window. */
  keepDraft() {
    const typed = this.fields.map(({ input }) => input.value);
    const isDraft = typed.some(Boolean) || toHash([this.filter]) !== toHash([this.before ?? newFilter()]);
    if (!this.isDone) store("sessionStorage", this.place, isDraft ? JSON.stringify({ filter: this.filter, typed }) : "");
  }

  /** Closes the window, with nothing to come back to. */
  forget() {
    this.isDone = true;
    store("sessionStorage", this.place, "");
    this.window.close();
  }

  draw() {
    const quick = (/** @type {string} */ text, /** @type {Partial<import("./filter.js").Filter>} */ parts) =>
      h("button", { type: "button", onclick: () => this.done(newFilter(parts)) }, text);
    const anew = () => (this.forget(), new Builder(this.app, this.before, this.onDone, this.name));
    return h("form", { onsubmit: (/** @type {Event} */ event) => this.submit(event), oninput: () => this.keepDraft() },
      this.draft && h("p", { class: "row" }, "This is what you had entered here.", h("button", { type: "button", onclick: anew }, "Start anew")),
      this.before ? null : h("div", { class: "row quick" }, h("span", { class: "muted" }, "At once:"), quick("Everything", {}), quick("People I follow", { following: true }), quick("A 10 % sample", { sample: 10 })),
      h("div", { class: "builder-parts" },
        h("div", { class: "stack" },
          this.words.element, this.people.element, this.languages.element,
          h("label", {}, "Sample", h("span", { class: "row nowrap" }, this.sample, this.sampleText)),
          h("label", {}, "Further conditions, as a rule", this.rule),
          h("label", {}, "Title", this.title)),
        h("fieldset", {}, h("legend", {}, "Areas"), this.map.element,
          h("div", { class: "rule-line" }, h("span", { class: "muted small" }, "The rule"), this.shownRule),
          this.problem, this.result)),
      h("div", { class: "row end builder-actions" }, this.tryButton, this.addButton));
  }

  /** @returns {import("./filter.js").Filter} */
  get filter() {
    const sample = Number(this.sample.value);
    return newFilter({
      words: this.words.values, people: this.people.values, languages: this.languages.values, boxes: this.map.boxes.filter((box) => box.length === 4),
      sample: sample === 100 ? 0 : sample, rule: this.rule.value, title: this.title.value.trim(), following: this.before?.following && !this.words.values.length,
    });
  }

  changed() {
    const percent = Number(this.sample.value);
    fill(this.sampleText, percent === 100 ? "all posts" : `${percent} %`);
    clearTimeout(this.timer);
    this.keepDraft();
    const rule = toRule(this.filter);
    fill(this.shownRule, rule || titleOf(this.filter));
    fill(this.problem, "");
    if (rule !== this.triedRule) { // what was found by another rule than the one on show says nothing of it
      this.triedRule = "";
      this.chart.clear();
      fill(this.result);
    }
    if (rule) this.timer = setTimeout(() => this.check(rule), CHECK_MS);
  }

  /** Asks the server whether it reads the rule, and marks the place where it does not. @param {string} rule @returns {Promise<boolean>} */
  async check(rule) {
    try {
      await this.app.client.request("POST", "/v1/rules", { body: { rules: [{ rule }], dry_run: true } });
      return true;
    } catch (error) {
      const refusal = /** @type {import("./client.js").ApiError} */ (error);
      if (refusal.status === 409) return true; // it reads it; the user has saved the same rule
      if (rule === toRule(this.filter)) this.showMistake(rule, refusal);
      return false;
    }
  }

  /** @param {string} rule @param {import("./client.js").ApiError} refusal */
  showMistake(rule, refusal) {
    fill(this.problem, refusal.column ? forPeople(refusal.message) : explain(refusal));
    if (!refusal.column) return;
    const letters = Array.from(`${rule} `); // a mistake at the end stands under a blank
    const from = refusal.column - 1;
    const blank = letters.findIndex((letter, index) => index > from && letter === " ");
    const to = blank < 0 ? letters.length : blank;
    fill(this.shownRule, letters.slice(0, from).join(""), h("mark", { class: "mistake" }, letters.slice(from, to).join("") || " "), letters.slice(to).join(""));
  }

  /** Takes what was typed into the chips. @returns {Promise<boolean>} false if one of them has to be mended; it has the focus then */
  async commitChips() {
    await Promise.all(this.fields.map((each) => each.commit()));
    const refused = this.fields.find((each) => each.input.value);
    refused?.input.focus();
    return !refused;
  }

  async tryPastHour() {
    if (!(await this.commitChips())) return;
    const rule = toRule(this.filter);
    this.triedRule = rule;
    const isOld = () => rule !== this.triedRule;
    fill(this.result, h("p", { class: "muted" }, rule ? "Reading the past hour…" : "To try a filter, give words, people, areas or conditions."));
    if (!rule) return;
    try {
      this.chart.clear();
      await this.chart.idle;
      if (isOld()) return;
      const found = await inTurn(() => this.app.client.request("POST", "/v1/rules/preview", { body: { rule, minutes: 60 } }));
      if (isOld()) return;
      const since = found.complete ? "in the past hour" : ["since ", time(found.from), ", all that was read"];
      fill(this.result,
        h("p", {}, h("strong", {}, counted(found.matched, "post"), " "), since, `, ${number(found.per_minute)} a minute`),
        found.examples.slice(0, SHOWN).map((example) => postRow(example.status, example.parts, this.app, { rule, why: "" })),
        this.chart.root);
      await this.chart.show(rule); // after the preview: a user may ask one question at a time
      if (isOld()) return;
    } catch (error) {
      if (isOld()) return;
      fill(this.result, h("p", { class: "problem" }, explain(error)));
    }
    this.result.scrollIntoView({ block: "nearest" });
  }

  /** @param {Event} event */
  async submit(event) {
    event.preventDefault();
    if (!(await this.commitChips())) return;
    const { filter } = this;
    const rule = toRule(filter);
    if (!rule || (await this.check(rule))) this.done(filter);
  }

  /** @param {import("./filter.js").Filter} filter */
  done(filter) {
    this.forget();
    this.chart.clear(); // the column's history is read next, and a user may ask one question at a time
    this.chart.idle.then(() => this.onDone(filter));
  }

  /** The login of a user who is given by login or name. @param {string} text @returns {Promise<string>} */
  async findUser(text) {
    const wanted = text.split(" · ")[0].replace(/^@/, "").trim();
    const byName = [...known].find(([, name]) => name.toLowerCase() === wanted.toLowerCase());
    const login = byName?.[0] ?? wanted;
    if (!/^\w{1,20}$/.test(login)) throw new Error(`Nobody named ${wanted} was seen here; give the username.`);
    const user = await this.app.client.request("GET", `/v1/users/by-login/${login}`).catch((error) => {
      throw new Error(error.status === 404 ? `There is no user ${login}.` : explain(error));
    });
    remember(user.login, user.name);
    return user.login;
  }
}

/** @param {string} text */
function checkLanguage(text) {
  if (!/^[a-z]{2,3}(-[a-z0-9]{2,8})*$/i.test(text)) throw new Error("A language is a tag such as en, pt-BR or und.");
  return text.toLowerCase();
}

/** Suggests the people whom the user follows. @param {any} app */
export async function rememberFollowing(app) {
  const answer = await app.client.request("GET", `/v1/users/${app.user.id}/following`, { query: { count: 200 } }).catch(() => ({ users: [] }));
  for (const user of answer.users) remember(user.login, user.name);
}
