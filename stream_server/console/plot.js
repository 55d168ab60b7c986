// @ts-check
// The rate of a column over the last minute, a bar a second, with the ages of its events. Plots are SVG in units of their
// own and no canvas, so that the style sheet colours and stretches them.

import { number, svg } from "./dom.js";

const SECONDS = 60;
const AGES = 300; // of the latest events, for the median and the 99th percentile

/** A drawing in units of its own, which is stretched over the room that it has. @param {string} name a class @param {number} width @param {number} height @param {string} label @param {...Element} parts */
export const stretched = (name, width, height, label, ...parts) =>
  svg("svg", { class: name, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, parts);

/** The path of a bar for each count, one unit wide and high; the least is still seen. @param {number[]} counts @param {number} top */
export const bars = (counts, top) => counts.map((count, index) => (count ? `M${index + 0.5} 1V${1 - Math.max(0.05, count / top)}` : "")).join("");

/** Counts what arrives, and draws it once a second. */
export class RatePlot {
  constructor() {
    this.bars = svg("path", {});
    this.root = stretched("plot", SECONDS, 1, "events in each second of the last minute", this.bars);
    this.counts = Array(SECONDS).fill(0); // of the last minute, the oldest first; the last one is of the second that still runs
    this.second = Math.floor(Date.now() / 1000);
    /** @type {number[]} */ this.ages = [];
  }

  /** @param {number} at when the event happened, in ms by this machine's clock @param {number} ageMs how old it was when it came, or NaN for one that was read later */
  add(at, ageMs) {
    this.advance();
    const index = SECONDS - 1 - Math.max(0, this.second - Math.floor(at / 1000));
    if (index >= 0) this.counts[index] += 1;
    if (!Number.isFinite(ageMs)) return;
    this.ages.push(Math.max(0, ageMs));
    if (this.ages.length > AGES) this.ages.shift();
  }

  advance() {
    const now = Math.floor(Date.now() / 1000);
    for (let passed = Math.min(SECONDS, now - this.second); passed > 0; passed--) this.counts = [...this.counts.slice(1), 0];
    this.second = now;
  }

  /** Events a second over the last ten whole seconds; over the minute if these have so few that their number tells little. */
  rate() {
    this.advance();
    const [late, all] = [this.counts.slice(-11, -1), this.counts].map((counts) => counts.reduce((sum, count) => sum + count, 0));
    return late < 10 ? all / SECONDS : late / 10;
  }

  /** @param {number} share such as 0.5 @returns {number} an age in ms, NaN without events */
  age(share) {
    const sorted = [...this.ages].sort((a, b) => a - b);
    return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] : NaN;
  }

  draw() {
    this.advance();
    this.bars.setAttribute("d", bars(this.counts, Math.max(4, ...this.counts)));
  }
}

/** @param {number} perSecond */
export function showRate(perSecond) {
  if (perSecond >= 1) return `${number(perSecond)}/s`;
  return perSecond ? `${Math.round(perSecond * 60)}/min` : "quiet";
}

/** @param {number} ms */
export function showAge(ms) {
  if (Number.isNaN(ms)) return "–";
  return ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : `${number(ms / 1000)} s`;
}
