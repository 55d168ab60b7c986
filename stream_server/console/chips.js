// @ts-check
// A field that collects several values as chips: Enter or a comma adds one, Backspace in the empty field takes the last.

import { fill, h, icon, isolate } from "./dom.js";

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
    this.chips = h("span", { class: "chips" });
    this.problem = h("span", { class: "problem small", role: "alert" });
    this.input = h("input", {
      id, placeholder: options.hint ?? "", list: `${id}-list`, autocapitalize: "none", autocomplete: "off", spellcheck: "false", enterkeyhint: "enter",
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      oninput: () => /[,\n]$/.test(this.input.value) && this.commit(),
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
    if (event.key === "Enter" && this.input.value.trim()) {
      event.preventDefault();
      this.commit();
    } else if (event.key === "Backspace" && !this.input.value && this.values.length) this.remove(this.values.length - 1);
  }

  /** Takes what was typed. Leaving the field and sending the form do so at once, one after the other. */
  commit() {
    return (this.committing = this.committing.then(() => this.take()));
  }

  async take() {
    const text = this.input.value.replace(/,+$/, "").trim();
    this.input.value = "";
    fill(this.problem, "");
    if (!text) return;
    try {
      const value = (await this.options.accept?.(text)) ?? text;
      if (!this.values.includes(value)) this.values.push(value);
      this.show();
      this.options.onChange();
    } catch (error) {
      this.input.value ||= text; // to be mended
      fill(this.problem, /** @type {Error} */ (error).message);
    }
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
