// @ts-check
// Chooses a time on a chart: by dragging over its bars, or by the arrow keys, with Shift for several bars, and Enter.

import { h, svg } from "../dom.js";

/** @typedef {{from: number, to: number}} Range in ms since 1970 */

/** @param {number} ms */
const clock = (ms) => new Date(ms).toLocaleString([], { dateStyle: Date.now() - ms < 20 * 3_600_000 ? undefined : "short", timeStyle: "short", hour12: false });

/** @param {Range} range */
export const words = ({ from, to }) => `${clock(from)} to ${clock(to)}`;

export class Brush {
  /** @param {(range: Range) => void} onChoose */
  constructor(onChoose) {
    this.onChoose = onChoose;
    /** @type {import("../counts.js").CountBucket[]} the oldest first */ this.buckets = [];
    this.anchor = this.at = -1; // the first bar of the choice, and the last one that was moved to
    this.mark = svg("rect", { class: "brush-mark", y: 0, height: 1 });
    this.root = h("div", {
      class: "counts-box brush", role: "slider", tabindex: "0", "aria-label": "Choose a time: arrow keys, Shift for several bars, Enter shows it", "aria-valuemin": 0, "aria-valuenow": 0,
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
      onpointerdown: (/** @type {PointerEvent} */ event) => (this.root.setPointerCapture(event.pointerId), this.move(this.barAt(event), false)),
      onpointermove: (/** @type {PointerEvent} */ event) => event.buttons & 1 && this.move(this.barAt(event), true),
      onpointerup: () => this.range && this.onChoose(this.range),
    });
  }

  /** Takes the bars of the chart. Older ones may come before those that are known. @param {import("../counts.js").CountBucket[]} buckets */
  hold(buckets) {
    const more = buckets.length - this.buckets.length;
    const goesOn = this.at >= 0 && more >= 0;
    [this.anchor, this.at] = goesOn ? [this.anchor + more, this.at + more] : [-1, -1];
    this.buckets = buckets;
    this.show();
    return this.root;
  }

  /** @returns {Range | null} */
  get range() {
    const [first, last] = [this.anchor, this.at].sort((a, b) => a - b).map((index) => this.buckets[index]);
    return first && last ? { from: Date.parse(first.from), to: Date.parse(last.to) } : null;
  }

  /** @param {PointerEvent} event */
  barAt({ clientX }) {
    const { left, width } = this.root.getBoundingClientRect();
    return Math.floor(((clientX - left) / width) * this.buckets.length);
  }

  /** @param {number} index @param {boolean} extend */
  move(index, extend) {
    this.at = Math.max(0, Math.min(this.buckets.length - 1, index));
    if (!extend || this.anchor < 0) this.anchor = this.at;
    this.show();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const place = /** @type {Record<string, number>} */ ({ ArrowLeft: this.at < 0 ? this.buckets.length - 1 : this.at - 1, ArrowRight: this.at + 1, Home: 0, End: this.buckets.length })[event.key];
    if (event.key === "Enter" && this.range) this.onChoose(this.range);
    else if (place === undefined) return;
    else this.move(place, event.shiftKey);
    event.preventDefault();
  }

  show() {
    const { root, mark, range } = this;
    const [first, last] = [this.anchor, this.at].sort((a, b) => a - b);
    const count = range && this.buckets.slice(first, last + 1).reduce((sum, bucket) => sum + bucket.count, 0);
    mark.setAttribute("x", String(first));
    mark.setAttribute("width", String(range ? last - first + 1 : 0));
    root.ariaValueMax = String(Math.max(0, this.buckets.length - 1));
    root.ariaValueNow = String(Math.max(0, this.at));
    root.ariaValueText = range ? `${words(range)}, ${count} ${count === 1 ? "post" : "posts"}` : "no time is chosen";
  }
}
