// @ts-check
// The field in which one writes a rule. A mistake is marked where it stands, and operators are completed from the list
// of the server, which has those of installed filters too.

import { fill, h, tellFull } from "./dom.js";
import { atOwnPlace, MAX_RULE } from "./filter.js";
import { explain, newKey, problemBox } from "./forms.js";
import { isComposing } from "./keys.js";
import { counted } from "./people/text.js";

/** @type {Promise<import("./types.d.ts").RuleOperator[]> | null} */ let operators = null; // they are asked for once

/** What the server says of a rule that it does not take, or null; so for one that the user has saved already. @param {import("./client.js").Client} client @param {string} rule @returns {Promise<import("./client.js").ApiError | null>} */
export const refusalOf = (client, rule) => client.request("POST", "/v1/rules", { body: { rules: [{ rule }], dry_run: true } }).then(
  () => null, (error) => (error.status === 409 ? null : error));

/** A text whose word at a place is marked; a mistake at the end stands under a blank. @param {string} text @param {number} from in code points */
export function marked(text, from) {
  const letters = Array.from(`${text} `);
  const blank = letters.findIndex((letter, index) => index > from && /\s/.test(letter));
  const to = blank < 0 ? letters.length : blank;
  return [letters.slice(0, from).join(""), h("mark", { class: "mistake" }, letters.slice(from, to).join("") || " "), letters.slice(to).join("")];
}

export class RuleField {
  /** @param {import("./client.js").Client} client @param {{label: string, value?: string}} options */
  constructor(client, { label, value = "" }) {
    this.client = client;
    this.chosen = -1;
    const id = `rule-${newKey()}`;
    this.marks = h("div", { class: "rule-marks", "aria-hidden": "true" });
    this.input = h("textarea", {
      id, name: "rule", rows: 2, maxlength: MAX_RULE, spellcheck: "false", autocapitalize: "none", placeholder: "-is:repost (tea OR cake) has:links meta.room:7", value,
      "aria-autocomplete": "list", "aria-controls": `${id}-list`, "aria-describedby": `${id}-problem ${id}-help`,
      oninput: (/** @type {InputEvent} */ event) => this.changed(isComposing(event)), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      onblur: () => this.offer([]), onscroll: () => (this.marks.scrollTop = this.input.scrollTop),
    });
    this.list = h("ul", { id: `${id}-list`, class: "completions", role: "listbox", "aria-label": "Operators", hidden: true });
    this.count = h("span", { class: "visually-hidden", role: "status" });
    this.problem = problemBox();
    this.problem.id = `${id}-problem`;
    this.element = h("div", { class: "field" }, h("label", { for: id }, label), h("div", { class: "rule-box" }, this.marks, this.input, this.list), this.count, this.problem,
      h("span", { class: "muted small", id: `${id}-help` }, "Enter or Tab completes an operator, Ctrl+Space lists them. ", h("a", { href: "docs/filters.html#rules", target: "_blank" }, "All operators")));
  }

  get value() {
    return this.input.value;
  }

  /** The word before the caret, with its minus. */
  get word() {
    return /[^\s()"]*$/.exec(this.value.slice(0, this.input.selectionStart))?.[0] ?? "";
  }

  /** @param {boolean} isUnsettled */
  changed(isUnsettled) {
    this.unmark();
    if (isUnsettled || !this.word) this.offer([]);
    else void this.complete();
  }

  /** Offers what the word may become: a name of an operator, or behind the colon one of the values that it lists. */
  async complete() {
    operators ??= this.client.request("GET", "/v1/rules/operators").then((answer) => answer.operators, () => ((operators = null), []));
    const all = await operators;
    const [, minus, start] = /^(-?)(.*)$/s.exec(this.word.toLowerCase()) ?? [];
    const found = new Map(all.filter(({ name, negatable }) => name && (negatable || !minus)).flatMap(({ name, value, help }) => {
      const before = name.endsWith(".NAME") ? name.slice(0, -4) : `${name}:`;
      const values = start.includes(":") ? value.split(", ").filter((one) => /^[a-z_]{2,}$/.test(one)) : [];
      return [before, ...values.map((one) => before + one)].filter((text) => text.startsWith(start) && text !== start).map((text) => [text, help]);
    }));
    this.offer(document.activeElement === this.input ? [...found] : []);
  }

  /** @param {[string, string][]} found texts, and what they mean */
  offer(found) {
    fill(this.list, found.map(([text, help], at) => h("li", { id: `${this.list.id}-${at}`, role: "option", dataset: { text }, onpointerdown: (/** @type {Event} */ event) => (event.preventDefault(), this.take(at)) }, h("code", {}, text), h("span", { class: "muted" }, help))));
    this.list.hidden = !found.length;
    fill(this.count, found.length > 0 && `${counted(found.length, "operator")}: Enter takes the first, the arrow keys choose`);
    this.choose(found.length ? 0 : -1);
    if (found.length) this.list.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} at */
  choose(at) {
    this.chosen = at;
    [...this.list.children].forEach((option, index) => option.setAttribute("aria-selected", String(index === at)));
    this.input.setAttribute("aria-activedescendant", this.list.children[at]?.id ?? "");
    this.list.children[at]?.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} at */
  take(at) {
    const [end, { word }] = [this.input.selectionStart, this];
    this.input.setRangeText((word[0] === "-" ? "-" : "") + this.list.children[at].dataset.text, end - word.length, end, "end");
    this.input.dispatchEvent(new InputEvent("input", { bubbles: true })); // for this field, and for the form around it
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const count = this.list.childElementCount;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (isComposing(event)) return;
    if (event.key === " " && event.ctrlKey) void this.complete();
    else if (step && count) this.choose((this.chosen + step + count) % count);
    else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && count) this.take(this.chosen);
    else if (event.key === "Escape" && count) this.offer([]);
    else return;
    event.preventDefault(); // so Escape leaves the window open
  }

  unmark() {
    fill(this.problem, tellFull(this.input));
    fill(this.marks);
    this.input.removeAttribute("aria-invalid");
  }

  /** Says why the server does not take the rule, and marks the place in the field. @param {import("./client.js").ApiError} refusal @param {number} [before] code points of the rule before the text of the field @returns {boolean} false if the place is not in the field */
  mark(refusal, before = 0) {
    const at = (refusal.column ?? 0) - before - 1 + Array.from(/^\s*/.exec(this.value)?.[0] ?? "").length;
    const isHere = (refusal.column ?? 0) > before && at <= Array.from(this.value.trimEnd()).length;
    const message = atOwnPlace(refusal.message.replace(/; column \d+:/, ";"), before); // a mark shows that place, here or in the whole rule
    fill(this.problem, explain(refusal, refusal.param, message), " ", tellFull(this.input));
    this.input.setAttribute("aria-invalid", "true");
    if (isHere) fill(this.marks, marked(this.value, at));
    return isHere;
  }
}
