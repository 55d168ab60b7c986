// @ts-check
// Chooses a time on a chart: by dragging over its bars, or by the arrow keys, with Shift for several bars, and Enter.

import { fill, h, svg } from "../dom.js";
import { counted } from "../people/text.js";

/** @typedef {{from: number, to: number}} Range in ms since 1970 */
/** @typedef {import("../counts.js").CountBucket} Bucket */

/** A time, with its day if it is long past, or to come. @param {number} ms since 1970 @param {"short" | "medium"} [timeStyle] */
export const clock = (ms, timeStyle = "short") => new Date(ms).toLocaleString([], { dateStyle: ms < Date.now() + 3_600_000 && ms > Date.now() - 20 * 3_600_000 ? undefined : "short", timeStyle, hour12: false });
/** @param {Range} range */
export const words = ({ from, to }) => `${clock(from)} to ${clock(to)}`;

export class Brush {
  /** @param {(range: Range) => void} onChoose @param {Range | null} time which is marked at first */
  constructor(onChoose, time) {
    /** @type {Bucket[]} the oldest first */ this.buckets = [];
    this.anchor = this.at = -1; // the bar where the choice begins, and the one to which it goes
    this.time = time; // which is marked, as far as there are bars of it
    this.told = h("span", { class: "grow", "aria-hidden": "true" }); // what is chosen; the slider says it too
    this.mark = svg("rect", { class: "brush-mark", height: 1 });
    const choose = () => this.range && onChoose(this.range);
    const barAt = (/** @type {PointerEvent} */ event) => Math.floor(((event.clientX - this.root.getBoundingClientRect().left) / this.root.clientWidth) * this.buckets.length);
    const key = (/** @type {KeyboardEvent} */ event) => {
      const end = this.buckets.length - 1;
      const place = /** @type {Record<string, number>} */ ({ ArrowLeft: this.at < 0 ? end : this.at - 1, ArrowRight: this.at + 1, Home: 0, End: end })[event.key];
      if (event.key === "Enter") choose();
      if (place !== undefined) this.move(place, event.shiftKey);
      if (event.key === "Enter" || place !== undefined) event.preventDefault();
    };
    this.root = h("div", {
      class: "counts-box brush", role: "slider", tabindex: "0", "aria-label": "Choose a time: arrow keys, Shift for several bars, Enter shows it", "aria-valuemin": 0, "aria-valuenow": 0, onkeydown: key, onpointerup: choose,
      onpointerdown: (/** @type {PointerEvent} */ event) => (this.root.setPointerCapture(event.pointerId), this.move(barAt(event), false)),
      onpointermove: (/** @type {PointerEvent} */ event) => event.buttons & 1 && this.move(barAt(event), true),
    });
  }

  /** Takes the bars of the chart. Older ones may come before those that are known. @param {Bucket[]} buckets */
  hold(buckets) {
    this.buckets = buckets;
    this.point(this.time);
    return this.root;
  }

  /** Marks a time. @param {Range | null} time */
  point(time) {
    const first = time ? this.buckets.findIndex(({ to }) => Date.parse(to) > time.from) : -1;
    const last = this.buckets.findLastIndex(({ from }) => time && Date.parse(from) < time.to);
    [this.anchor, this.at] = first < 0 || last < first ? [-1, -1] : this.at < this.anchor ? [last, first] : [first, last];
    this.show(time);
  }

  get range() {
    const bars = this.at < 0 ? [] : this.buckets.slice(Math.min(this.anchor, this.at), Math.max(this.anchor, this.at) + 1);
    return bars.length ? { from: Date.parse(bars[0].from), to: Date.parse(bars[bars.length - 1].to), bars } : null;
  }

  /** @param {number} index @param {boolean} extend */
  move(index, extend) {
    this.at = Math.max(0, Math.min(this.buckets.length - 1, index));
    if (!extend || this.anchor < 0) this.anchor = this.at;
    this.show();
  }

  /** @param {Range | null} time */
  show(time = this.range) {
    const { root, mark, range } = this;
    this.time = time;
    mark.setAttribute("x", String(Math.min(this.anchor, this.at)));
    mark.setAttribute("width", String(range?.bars.length ?? 0));
    [root.ariaValueMax, root.ariaValueNow] = [this.buckets.length - 1, this.at].map((value) => String(Math.max(0, value)));
    root.ariaValueText = range ? `${words(range)}, ${counted(range.bars.reduce((sum, { count }) => sum + count, 0), "post")}` : "no time is chosen";
    fill(this.told, range && root.ariaValueText);
  }
}
