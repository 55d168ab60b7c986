// @ts-check
// The rate of a column over the last minute, a bar a second, on a canvas of its own; and the ages of its events.

import { colour, h } from "./dom.js";

const SECONDS = 60;
const AGES = 300; // of the latest events, for the median and the 99th percentile

/** Counts what arrives, and draws it once a second. */
export class Plot {
  constructor() {
    this.canvas = h("canvas", { class: "plot", role: "img", "aria-label": "events in each second of the last minute" });
    this.counts = new Uint32Array(SECONDS);
    this.second = Math.floor(Date.now() / 1000);
    /** @type {number[]} */ this.ages = [];
    this.total = 0;
  }

  /** @param {number} at when the event happened, in ms by this machine's clock @param {number} ageMs how old it was when it came, or NaN for one that was read later */
  add(at, ageMs) {
    this.advance();
    const second = Math.min(this.second, Math.floor(at / 1000));
    if (second > this.second - SECONDS) this.counts[second % SECONDS] += 1;
    this.total += 1;
    if (!Number.isFinite(ageMs)) return;
    this.ages.push(Math.max(0, ageMs));
    if (this.ages.length > AGES) this.ages.shift();
  }

  advance() {
    const now = Math.floor(Date.now() / 1000);
    for (let passed = Math.min(SECONDS, now - this.second); passed > 0; passed--) this.counts[(now - passed + 1) % SECONDS] = 0;
    this.second = now;
  }

  /** Events a second over the last ten whole seconds. */
  rate() {
    this.advance();
    let sum = 0;
    for (let back = 1; back <= 10; back++) sum += this.counts[(this.second - back + SECONDS) % SECONDS];
    return sum / 10;
  }

  /** @param {number} share such as 0.5 @returns {number} an age in ms, NaN without events */
  age(share) {
    const sorted = [...this.ages].sort((a, b) => a - b);
    return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] : NaN;
  }

  draw() {
    this.advance();
    const { canvas } = this;
    const [width, height, scale] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
    if (!width) return;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(scale, scale);
    context.fillStyle = accent();
    const bar = width / SECONDS;
    const top = Math.max(4, ...this.counts);
    for (let index = 0; index < SECONDS; index++) {
      const count = this.counts[(this.second + 1 + index) % SECONDS];
      const tall = count && Math.max(2, (count / top) * height);
      context.fillRect(index * bar, height - tall, Math.max(1, bar - 1), tall);
    }
  }
}

let known = "";
addEventListener("themechange", () => (known = ""));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => (known = ""));
const accent = () => (known ||= colour("accent"));

/** @param {number} perSecond */
export function showRate(perSecond) {
  if (perSecond >= 10) return `${Math.round(perSecond)}/s`;
  if (perSecond >= 1) return `${perSecond.toFixed(1)}/s`;
  return perSecond ? `${Math.round(perSecond * 60)}/min` : "quiet";
}

/** @param {number} ms */
export function showAge(ms) {
  if (Number.isNaN(ms)) return "–";
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
}
