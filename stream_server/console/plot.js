// @ts-check
// Plots: the rate of a column over the last minute, a bar a second, with the ages of its events; and the line of one
// value over the last hour, in which a gap is time in which nobody asked. They are SVG in units of their own and no canvas,
// so that the style sheet colours and stretches them.

import { fill, h, number, svg } from "./dom.js";
import { HOUR_MS } from "./operations/history.js";

/** @typedef {import("./operations/history.js").Sample} Sample */

const SECONDS = 60;
const AGES = 300; // of the latest events, for the median and the 99th percentile

/** A drawing in units of its own, which is stretched over the room that it has. @param {string} name a class @param {number} width @param {number} height @param {string} label @param {...Element} parts */
const stretched = (name, width, height, label, ...parts) =>
  svg("svg", { class: name, viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, parts);

/** Counts what arrives, and draws it once a second. */
export class RatePlot {
  constructor() {
    this.bars = svg("path", {});
    this.root = stretched("plot", SECONDS, 1, "events in each second of the last minute", this.bars);
    this.counts = new Uint32Array(SECONDS);
    this.second = Math.floor(Date.now() / 1000);
    /** @type {number[]} */ this.ages = [];
  }

  /** @param {number} at when the event happened, in ms by this machine's clock @param {number} ageMs how old it was when it came, or NaN for one that was read later */
  add(at, ageMs) {
    this.advance();
    const second = Math.min(this.second, Math.floor(at / 1000));
    if (second > this.second - SECONDS) this.counts[second % SECONDS] += 1;
    if (!Number.isFinite(ageMs)) return;
    this.ages.push(Math.max(0, ageMs));
    if (this.ages.length > AGES) this.ages.shift();
  }

  advance() {
    const now = Math.floor(Date.now() / 1000);
    for (let passed = Math.min(SECONDS, now - this.second); passed > 0; passed--) this.counts[(now - passed + 1) % SECONDS] = 0;
    this.second = now;
  }

  /** The counts of the last minute, the oldest first. The last one is of the second that still runs. */
  minute() {
    this.advance();
    return Array.from({ length: SECONDS }, (_, index) => this.counts[(this.second + 1 + index) % SECONDS]);
  }

  /** Events a second over the last ten whole seconds. */
  rate() {
    return this.minute().slice(-11, -1).reduce((sum, count) => sum + count, 0) / 10;
  }

  /** @param {number} share such as 0.5 @returns {number} an age in ms, NaN without events */
  age(share) {
    const sorted = [...this.ages].sort((a, b) => a - b);
    return sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] : NaN;
  }

  draw() {
    const counts = this.minute();
    const top = Math.max(4, ...counts);
    this.bars.setAttribute("d", counts.map((count, index) => (count ? `M${index + 0.5} 1V${1 - Math.max(0.07, count / top)}` : "")).join(""));
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
  return ms < 1000 ? `${Math.round(ms)} ms` : `${number(ms / 1000)} s`;
}

const BREAK_MS = 8000;
const SHORTEST_MS = 60_000;
const FLOOR = 0.95; // where zero is, from the top: a line at either edge would be cut
const CEILING = 0.05;

/** Draws the samples of one value, and shows the one under the pointer. */
export class LinePlot {
  /** @param {string} name of the value @param {string} label @param {(value: number | null | undefined) => string} write */
  constructor(name, label, write) {
    this.name = name;
    this.label = label;
    this.write = write;
    /** @type {Sample[]} */ this.samples = [];
    this.line = svg("path", {});
    this.area = svg("path", { class: "area" });
    this.drawing = stretched("ops-plot", 1, 1, "a plot without values yet", this.area, this.line);
    this.tip = h("span", { class: "ops-tip", "aria-hidden": "true" });
    const point = (/** @type {PointerEvent} */ event) => this.point(event.offsetX / this.root.clientWidth);
    this.root = h("div", { class: "ops-plot-box", onpointermove: point, onpointerleave: () => fill(this.tip) }, this.drawing, this.tip);
  }

  /** @param {Sample[]} samples */
  draw(samples) {
    this.samples = samples.filter((sample) => sample.values[this.name] !== null);
    const value = (/** @type {Sample} */ sample) => sample.values[this.name] ?? 0;
    const highest = Math.max(0, ...this.samples.map(value));
    const x = (/** @type {Sample} */ sample) => 1 - (this.end - sample.time) / this.span;
    const points = (/** @type {Sample[]} */ run) => run.map((sample) => `L${x(sample)} ${FLOOR - (value(sample) / (highest || 1)) * (FLOOR - CEILING)}`).join("");
    const found = runs(this.samples);
    this.line.setAttribute("d", found.map((run) => `M${points(run).slice(1)}h0`).join(""));
    this.area.setAttribute("d", found.map((run) => `M${x(run[0])} 1${points(run)}V1z`).join(""));
    const minutes = Math.max(1, Math.round(this.span / 60_000));
    const now = this.samples.at(-1)?.values[this.name];
    this.drawing.setAttribute("aria-label", `${this.label}, the last ${minutes} minutes: now ${this.write(now)}, at most ${this.write(highest)}`);
  }

  /** The end of the hour that is shown, in ms since 1970. */
  get end() {
    return this.samples.at(-1)?.time ?? 0;
  }

  /** The hour fills only as it passes: until then the line takes the width from the first answer on, at least one minute. */
  get span() {
    const first = this.samples[0]?.time ?? 0;
    return Math.min(HOUR_MS, Math.max(SHORTEST_MS, this.end - first));
  }

  /** Show the value that is nearest to a place. @param {number} at its share of the width, from the left */
  point(at) {
    const time = this.end - (1 - at) * this.span;
    const distance = (/** @type {Sample} */ sample) => Math.abs(sample.time - time);
    const [nearest] = this.samples.toSorted((one, other) => distance(one) - distance(other));
    fill(this.tip, nearest && `${new Date(nearest.time).toLocaleTimeString()}  ${this.write(nearest.values[this.name])}`);
  }
}

/** Return the samples in runs without gaps. @param {Sample[]} samples */
function runs(samples) {
  const found = /** @type {Sample[][]} */ ([]);
  for (const sample of samples) {
    const run = found.at(-1);
    const last = run?.at(-1);
    if (run && last && sample.time - last.time <= BREAK_MS) run.push(sample);
    else found.push([sample]);
  }
  return found;
}
