// @ts-check
// The field in which one writes a rule. A mistake is marked where it stands, and operators are completed from the list
// of the server, which has those of installed filters too.

import { fill, h } from "./dom.js";
import { explain, problemBox } from "./forms.js";

const SHOWN = 8; // completions at one time

/** @type {Promise<import("./types.d.ts").RuleOperator[]> | null} */ let asked = null;

/** @param {import("./client.js").Client} client */
function operatorsOf(client) {
  const forget = () => ((asked = null), []);
  return (asked ??= client.request("GET", "/v1/rules/operators").then(({ operators }) => operators, forget));
}

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

/** @typedef {{text: string, insert: string, help: string}} Completion */

export class RuleField {
  /** @param {import("./client.js").Client} client @param {{label: string, value?: string, onChange?: () => void}} options */
  constructor(client, { label, value = "", onChange = () => {} }) {
    this.client = client;
    this.onChange = onChange;
    const id = `rule-${Math.random().toString(36).slice(2)}`;
    /** @type {Completion[]} */ this.completions = [];
    this.chosen = -1;
    this.marks = h("div", { class: "rule-marks", "aria-hidden": "true" });
    this.input = h("textarea", {
      id, name: "rule", rows: 2, spellcheck: "false", autocapitalize: "none", placeholder: "-is:repost (tea OR cake) has:links meta.room:7", value,
      "aria-autocomplete": "list", "aria-controls": `${id}-list`, "aria-describedby": `${id}-problem ${id}-help`,
      oninput: (/** @type {InputEvent} */ event) => this.changed(event.isComposing), onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      onblur: () => this.offer([]), onscroll: () => (this.marks.scrollTop = this.input.scrollTop),
    });
    this.list = h("ul", { id: `${id}-list`, class: "completions", role: "listbox", "aria-label": "Operators", hidden: true });
    this.count = h("span", { class: "visually-hidden", role: "status" });
    this.problem = problemBox();
    this.problem.id = `${id}-problem`;
    this.element = h("div", { class: "field" }, h("label", { for: id }, label), h("div", { class: "rule-box" }, this.marks, this.input, this.list), this.count, this.problem,
      h("span", { class: "muted small", id: `${id}-help` }, "Ctrl+Space completes an operator. ", h("a", { href: "docs/filters.html#rules", target: "_blank" }, "All operators")));
  }

  get value() {
    return this.input.value;
  }

  set value(text) {
    this.input.value = text;
    this.unmark();
  }

  /** @param {boolean} isComposing */
  changed(isComposing) {
    this.unmark();
    this.onChange();
    if (isComposing || this.word === "") this.offer([]);
    else void this.complete();
  }

  /** The word before the caret, with its minus. */
  get word() {
    return /[^\s()"]*$/.exec(this.value.slice(0, this.input.selectionStart))?.[0] ?? "";
  }

  /** Offers what the word may become: a name of an operator, or behind the colon one of the values that it lists. */
  async complete() {
    const operators = await operatorsOf(this.client);
    const { word } = this;
    const [minus, bare] = /^(-?)(.*)$/s.exec(word)?.slice(1) ?? ["", ""];
    const start = bare.toLowerCase();
    const names = operators.filter(({ name, negatable }) => name && (negatable || !minus)).flatMap((operator) => {
      const name = operator.name.replace(/\.NAME$/, ".");
      const values = operator.value.split(", ").filter((value) => /^[a-z_]{2,}$/.test(value)).map((value) => `${name}:${value}`);
      return [name.endsWith(".") ? name : `${name}:`, ...(start.includes(":") && values.length > 1 ? values : [])].map((text) => ({ text, insert: minus + text, help: operator.help }));
    });
    const found = names.filter(({ text }, at) => text.startsWith(start) && text !== start && names.findIndex((one) => one.text === text) === at);
    this.offer(document.activeElement === this.input ? found.slice(0, SHOWN) : []);
  }

  /** @param {Completion[]} found */
  offer(found) {
    this.completions = found;
    const choose = (/** @type {number} */ at) => (/** @type {Event} */ event) => (event.preventDefault(), this.take(at)); // the field keeps the focus
    fill(this.list, found.map(({ text, help }, at) => h("li", { id: `${this.list.id}-${at}`, role: "option", "aria-selected": "false", onpointerdown: choose(at) }, h("code", {}, text), h("span", { class: "muted" }, help))));
    this.list.hidden = !found.length;
    fill(this.count, found.length ? `${found.length} operators, choose by the arrow keys` : "");
    this.choose(-1);
  }

  /** @param {number} at */
  choose(at) {
    this.chosen = at;
    for (const [index, option] of [...this.list.children].entries()) option.setAttribute("aria-selected", String(index === at));
    if (at < 0) return this.input.removeAttribute("aria-activedescendant");
    this.input.setAttribute("aria-activedescendant", this.list.children[at].id);
    this.list.children[at].scrollIntoView({ block: "nearest" });
  }

  /** @param {number} at */
  take(at) {
    const end = this.input.selectionStart;
    this.input.setRangeText(this.completions[at].insert, end - this.word.length, end, "end");
    this.changed(false);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const count = this.completions.length;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.isComposing) return;
    if (event.key === " " && event.ctrlKey) void this.complete();
    else if (step && count) this.choose((this.chosen + step + count + (this.chosen < 0 && step < 0 ? 1 : 0)) % count);
    else if ((event.key === "Enter" || event.key === "Tab") && this.chosen >= 0) this.take(this.chosen);
    else if (event.key === "Escape" && count) (event.stopPropagation(), this.offer([])); // and leaves the window open
    else return;
    event.preventDefault();
  }

  unmark() {
    fill(this.problem);
    fill(this.marks);
    this.input.removeAttribute("aria-invalid");
  }

  /** Awaits a write, and marks the mistake if the server refuses its rule. @param {() => Promise<any>} work @returns {Promise<any>} null after a mistake */
  async told(work) {
    return work().catch((error) => {
      if (!error.column) throw error;
      this.mark(error);
      this.input.focus();
      return null;
    });
  }

  /** Says why the server does not take the rule, and marks the place in the field. @param {import("./client.js").ApiError} refusal @param {number} [before] code points of the rule before the text of the field @returns {boolean} false if the place is not in the field */
  mark(refusal, before = 0) {
    const column = (refusal.column ?? 0) - before;
    const at = column - 1 + Array.from(/^\s*/.exec(this.value)?.[0] ?? "").length;
    const isHere = column > 0 && at <= Array.from(this.value.trimEnd()).length;
    fill(this.problem, isHere ? refusal.message.replace(/; column \d+:/, ":") : explain(refusal));
    this.input.setAttribute("aria-invalid", "true");
    if (isHere) fill(this.marks, marked(this.value, at));
    return isHere;
  }
}
