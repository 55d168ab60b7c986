// @ts-check
// Says how the connection does to screen readers: once for each new kind of state, few times a minute, and no numbers.

import { h } from "./dom.js";

const PAUSE_MS = 10_000; // between two announcements
const FIRST_MS = 1000; // a state that is over by then is not told

/** @returns {{root: HTMLElement, tell: (kind: string, text: string) => void}} of a text, what stands behind a number that changes is left out */
export function makeVoice() {
  const root = h("p", { class: "visually-hidden", role: "status" });
  let [told, kind, words, at, timer] = ["", "", "", -PAUSE_MS, 0];
  const speak = () => {
    timer = 0;
    if (kind !== told) [told, at, root.textContent] = [kind, performance.now(), words];
  };
  const tell = (/** @type {string} */ newKind, /** @type {string} */ text) => {
    if (newKind === kind) return;
    [kind, words] = [newKind, text.split(/ · |, (?:try|again|at) | for \d/)[0]];
    timer ||= setTimeout(speak, Math.max(FIRST_MS, at + PAUSE_MS - performance.now()));
  };
  return { root, tell };
}
