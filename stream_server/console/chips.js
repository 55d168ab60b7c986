// @ts-check
// A field that collects several values as chips: Enter or a comma adds one, Backspace in the empty field takes the last. What
// is pasted is split at commas, lines and the cells of a table; a blank or a semicolon may be part of a phrase.

import { fill, h, icon, isolate, tellFull } from "./dom.js";
import { MAX_RULE } from "./filter.js";
import { isComposing } from "./keys.js";

const COMMAS = /[,、，]/;
const BREAKS = /[\r\n\t]+/g;
const MAX_VALUES = 50; // an address has no more

/** @param {string} text @returns {string[]} */
export const splitAtCommas = (text) => text.split(COMMAS).map((part) => part.trim()).filter(Boolean);

export class Chips {
  /**
   * @param {{label: string, hint?: string, values: string[], onChange: () => void, suggestions?: string[], help?: string,
   *   accept?: (text: string) => string | Promise<string>}} options `accept` returns the value to keep, or throws
   *   an Error that says what is wrong with the text.
   */
  constructor(options) {
    this.options = options;
    this.values = [...options.values];
    this.committing = Promise.resolve();
    const id = `chips-${Math.random().toString(36).slice(2)}`;
    const split = () => { if (COMMAS.test(this.input.value)) void this.commit(); else fill(this.problem, tellFull(this.input)); };
    this.chips = h("span", { class: "chips" });
    this.problem = h("span", { class: "problem small", role: "alert" });
    this.input = h("input", {
      id, maxlength: MAX_RULE, placeholder: options.hint ?? "", list: `${id}-list`, autocapitalize: "none", autocomplete: "off", spellcheck: "false", enterkeyhint: "enter",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      oninput: (/** @type {InputEvent} */ event) => isComposing(event) || split(),
      oncompositionend: () => split(),
      onpaste: (/** @type {ClipboardEvent} */ event) => this.paste(event),
      onblur: () => this.commit(),
    });
    this.suggestions = h("datalist", { id: `${id}-list` }, (options.suggestions ?? []).map((value) => h("option", { value })));
    this.element = h("div", { class: "field" },
      h("label", { for: id }, options.label),
      h("div", { class: "chip-field", onclick: () => this.input.focus() }, this.chips, this.input, this.suggestions),
      options.help && h("span", { class: "muted small" }, options.help),
      this.problem);
    this.show();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (isComposing(event)) return;
    if (event.key === "Enter" && this.input.value.trim()) {
      event.preventDefault();
      this.commit();
    } else if (event.key === "Backspace" && !this.input.value && this.values.length) this.remove(this.values.length - 1);
  }

  /** Fields of one line drop the ends of lines, which separate values here. @param {ClipboardEvent} event */
  paste(event) {
    const text = (event.clipboardData?.getData("text") ?? "").trim().replace(BREAKS, ",").slice(0, MAX_RULE);
    if (!COMMAS.test(text)) return;
    event.preventDefault();
    this.input.setRangeText(text, this.input.selectionStart, this.input.selectionEnd, "end");
    void this.commit();
  }

  /** Takes what was typed. Leaving the field and sending the form do so at once, one after the other. */
  commit() {
    return (this.committing = this.committing.then(() => this.take()));
  }

  async take() {
    const texts = splitAtCommas(this.input.value);
    const refused = [];
    fill(this.problem, tellFull(this.input));
    this.input.value = "";
    if (!texts.length) return;
    for (const text of texts) {
      try {
        if (Math.max(this.values.length, refused.length) >= MAX_VALUES) throw new Error(`There can be ${MAX_VALUES} at most. The others wait in the field.`);
        const value = (await this.options.accept?.(text)) ?? text;
        if (!this.values.includes(value)) this.values.push(value);
      } catch (error) {
        refused.push(text);
        if (refused.length === 1) fill(this.problem, /** @type {Error} */ (error).message);
      }
    }
    this.input.value ||= refused.join(", "); // to be mended
    this.show();
    this.options.onChange();
  }

  /** @param {number} index */
  remove(index) {
    this.values.splice(index, 1);
    this.show();
    this.options.onChange();
    this.input.focus();
  }

  show() {
    fill(this.chips, this.values.map((value, index) => h("span", { class: "chip" }, isolate(value, { class: "chip-text" }),
      h("button", { type: "button", class: "chip-x", "aria-label": `Remove ${value}`, onclick: () => this.remove(index) }, icon("close")))));
  }
}
