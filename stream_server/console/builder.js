// @ts-check
// The window that builds a column's filter from parts, asks the server about the rule while one types, and tries it on
// the past hour before it is added.

import { Chips, splitAtCommas } from "./chips.js";
import { fill, h } from "./dom.js";
import { newFilter, ownStart, readFilter, titleOf, toHash, toRule } from "./filter.js";
import { WorldMap } from "./map.js";
import { draftAt, draftPlace, explain } from "./forms.js";
import { saveRule } from "./rule_form.js";
import { marked, refusalOf, RuleField } from "./rule_field.js";
import { store } from "./stored.js";
import { Trial } from "./trial.js";

const CHECK_MS = 300; // after the last key
const LANGUAGES = ["ar", "de", "en", "es", "fr", "hi", "id", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr", "uk", "und", "vi", "zh"];

export class Builder {
  /** @param {any} app @param {import("./filter.js").Filter | null} filter to change, or null for a new column @param {(filter: import("./filter.js").Filter) => void} onDone @param {string} [name] of the draft */
  constructor(app, filter, onDone, name = "column") {
    this.app = app;
    this.onDone = onDone;
    this.before = filter;
    this.name = name;
    this.place = draftPlace(app, name);
    this.draft = draftAt(this.place);
    const parts = this.draft ? readFilter(this.draft.filter) : filter ?? newFilter();
    const onChange = () => this.changed();
    this.words = new Chips({ label: "Words", hint: "coffee, #redis, good morning", values: parts.words, onChange, help: "A comma or Enter ends a chip. A post has to have one of the chips, and of that one all words, directly after each other." });
    this.people = new Chips({ label: "People", hint: "a username or a name", values: parts.people, onChange, accept: (text) => this.findUser(text), help: "Written by any of them." });
    this.people.input.addEventListener("input", () => { clearTimeout(this.finding); this.finding = setTimeout(() => this.suggestPeople(), CHECK_MS); });
    this.languages = new Chips({ label: "Languages", hint: "en", values: parts.languages, onChange, suggestions: LANGUAGES, accept: checkLanguage });
    this.fields = [this.words, this.people, this.languages];
    this.sample = h("input", { type: "range", min: 1, max: 100, value: parts.sample || 100, "aria-label": "Percent of the posts" });
    this.sampleText = h("output", {}, "");
    this.rule = new RuleField(app.client, { label: "Further conditions, as a rule", value: parts.rule });
    this.title = h("input", { value: parts.title, maxlength: 60, placeholder: "as the filter says" });
    this.map = new WorldMap(parts.boxes, onChange);
    this.shownRule = h("code", { class: "rule" });
    this.trial = new Trial(app, (refused) => this.rule.mark(refused, ownStart(this.filter)));
    this.addButton = h("button", { class: "primary", type: "submit" }, filter ? "Change the column" : "Add column");
    this.tryButton = h("button", { type: "button", onclick: () => this.tryPastHour() }, "Try the past hour");
    this.saveButton = h("button", { type: "button", class: "small", onclick: () => this.save() }, "Save as rule");
    this.window = app.dialog(filter ? "Change the filter" : "Add a column", this.draw(), { wide: true, class: "builder" });
    this.draft?.typed.forEach((/** @type {string} */ text, /** @type {number} */ at) => (this.fields[at].input.value = text));
    this.changed();
    this.words.input.focus();
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
    const quick = [{}, { following: true }, { saved: "all" }, { sample: 10 }].map(newFilter).map((filter) => h("button", { type: "button", onclick: () => this.done(filter) }, titleOf(filter)));
    const anew = () => (this.forget(), new Builder(this.app, this.before, this.onDone, this.name));
    return h("form", { onsubmit: (/** @type {Event} */ event) => this.submit(event), oninput: () => this.changed() },
      this.draft && h("p", { class: "row" }, "This is what you had entered here.", h("button", { type: "button", onclick: anew }, "Start anew")),
      this.before ? null : h("div", { class: "row quick" }, h("span", { class: "muted" }, "At once:"), quick),
      h("div", { class: "builder-parts" },
        h("div", { class: "stack" },
          this.fields.map(({ element }) => element),
          h("label", {}, "Sample", h("span", { class: "row nowrap" }, this.sample, this.sampleText)),
          this.rule.element,
          h("label", {}, "Title", this.title)),
        h("fieldset", {}, h("legend", {}, "Areas"), this.map.element,
          h("div", { class: "rule-line" }, h("span", { class: "muted small" }, "The rule"), this.shownRule, h("span", { class: "grow" }), this.saveButton),
          this.trial.root)),
      h("div", { class: "row end builder-actions" }, this.tryButton, this.addButton));
  }

  /** @returns {import("./filter.js").Filter} */
  get filter() {
    const sample = Number(this.sample.value);
    const parts = newFilter({
      words: this.words.values, people: this.people.values, languages: this.languages.values, boxes: this.map.boxes.filter((box) => box.length === 4),
      sample: sample === 100 ? 0 : sample, rule: this.rule.value, title: this.title.value.trim(), following: this.before?.following && !this.words.values.length,
    });
    return toRule(parts) ? parts : { ...parts, saved: this.before?.saved ?? "" };
  }

  changed() {
    const percent = Number(this.sample.value);
    fill(this.sampleText, percent === 100 ? "all posts" : `${percent} %`);
    clearTimeout(this.timer);
    this.keepDraft();
    const filter = { ...this.filter, words: [...new Set([...this.words.values, ...splitAtCommas(this.words.input.value)])] }; // also the word that is being typed
    const rule = toRule(filter);
    if (rule !== this.onShow) this.rule.unmark(); // a mistake stays, and the window keeps its height, while another field changes nothing
    this.onShow = rule;
    fill(this.shownRule, rule || titleOf(filter));
    this.tryButton.hidden = this.saveButton.hidden = Boolean(filter.saved || filter.following); // which are no rule
    this.trial.keepOnly(rule); // what was found by another rule than the one on show says nothing of it
    if (rule) this.timer = setTimeout(() => this.check(rule, filter), CHECK_MS);
  }

  /** Asks the server whether it reads the rule, and marks the place where it does not. @param {string} rule @param {import("./filter.js").Filter} filter @returns {Promise<boolean>} */
  async check(rule, filter) {
    const refusal = await refusalOf(this.app.client, rule);
    if (refusal && rule === this.onShow && !this.rule.mark(refusal, ownStart(filter)) && refusal.column) fill(this.shownRule, marked(rule, refusal.column - 1));
    return !refusal;
  }

  /** Takes what was typed into the chips. @returns {Promise<boolean>} false if one of them has to be mended; it has the focus then */
  async commitChips() {
    await Promise.all(this.fields.map((each) => each.commit()));
    const refused = this.fields.find((each) => each.input.value);
    refused?.input.focus();
    return !refused;
  }

  /** Saves the filter as a rule, if it is one. */
  async save() {
    const rule = (await this.commitChips()) && toRule(this.filter);
    if (rule) saveRule(this.app, rule, this.filter.title);
    else this.app.say("To save a rule, give words, people, areas or conditions.", "warn");
  }

  async tryPastHour() {
    if (await this.commitChips()) await this.trial.show(toRule(this.filter));
  }

  /** @param {Event} event */
  async submit(event) {
    event.preventDefault();
    if (!(await this.commitChips())) return;
    const { filter } = this;
    const rule = toRule(filter);
    if (!rule || (await this.check(rule, filter))) this.done(filter);
  }

  /** @param {import("./filter.js").Filter} filter */
  done(filter) {
    this.forget();
    this.trial.chart.clear(); // the column's history is read next
    this.onDone(filter);
  }

  /** @param {string} text the beginning of a login or a name @returns {Promise<any[]>} users, the one with just this login first */
  async usersNamed(text) {
    const query = { q: text.slice(0, 50) };
    return text ? (await this.app.client.request("GET", "/v1/users/search", { query })).users : [];
  }

  async suggestPeople() {
    const users = await this.usersNamed(this.people.input.value.trim()).catch(() => []);
    if (users.length) fill(this.people.suggestions, users.map(({ login, name }) => h("option", { value: [login, name].filter(Boolean).join(" · ") })));
  }

  /** The login of a user who is given by login or name. @param {string} text @returns {Promise<string>} */
  async findUser(text) {
    const wanted = text.split(" · ")[0].replace(/^@/, "").trim();
    const users = await this.usersNamed(wanted).catch((error) => { throw new Error(explain(error)); });
    const found = ["login", "name"].flatMap((part) => users.find((user) => user[part].toLowerCase() === wanted.toLowerCase()) ?? [])[0];
    if (!found) throw new Error(`There is no user ${wanted}.`);
    return found.login;
  }
}

/** @param {string} text */
function checkLanguage(text) {
  if (!/^[a-z]{2,3}(-[a-z0-9]{2,8})*$/i.test(text)) throw new Error("A language is a tag such as en, pt-BR or und.");
  return text.toLowerCase();
}
