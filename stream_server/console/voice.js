// @ts-check
// Says how the connection does to screen readers: once for each new kind of state, few times a minute, and no numbers.

import { h } from "./dom.js";

const PAUSE_MS = 10_000; // between two announcements
const FIRST_MS = 1000; // a state that is over by then is not told

export class Voice {
  constructor() {
    this.root = h("p", { class: "visually-hidden", role: "status" });
    this.told = this.kind = this.text = "";
    this.at = -PAUSE_MS;
    this.timer = 0;
  }

  /** @param {string} kind @param {string} text its words; what stands behind a number that changes is left out */
  tell(kind, text) {
    if (kind === this.kind) return;
    [this.kind, this.text] = [kind, text.split(/ · |, (?:try|again|at) | for \d/)[0]];
    this.timer ||= setTimeout(() => this.speak(), Math.max(FIRST_MS, this.at + PAUSE_MS - performance.now()));
  }

  speak() {
    this.timer = 0;
    if (this.kind === this.told) return;
    this.told = this.kind;
    this.at = performance.now();
    this.root.textContent = this.text;
  }
}
