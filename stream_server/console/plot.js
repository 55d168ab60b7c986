// @ts-check
// Plots on canvases: the rate of a column over the last minute, a bar a second, with the ages of its events; and the line
// of one value over the last hour, in which a gap is time in which nobody asked.

import { colour, h } from "./dom.js";
import { HOUR_MS } from "./operations/history.js";

/** @typedef {import("./operations/history.js").Sample} Sample */

const SECONDS = 60;
const AGES = 300; // of the latest events, for the median and the 99th percentile

/** Sizes a canvas for this screen. Returns what draws on it, or null while it is not shown. @param {HTMLCanvasElement} canvas */
function prepare(canvas) {
  const [width, height, scale] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
  if (!width) return null;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(height * scale);
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  context.scale(scale, scale);
  return { context, width, height };
}

/** Counts what arrives, and draws it once a second. */
export class RatePlot {
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
    const drawn = prepare(this.canvas);
    if (!drawn) return;
    const { context, width, height } = drawn;
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

const BREAK_MS = 8000;
const SHORTEST_MS = 60_000;
const PAD = 3;

/** Draws the samples of one value, and shows the one under the pointer. */
export class LinePlot {
  /** @param {string} name of the value @param {string} label @param {(value: number | null) => string} write */
  constructor(name, label, write) {
    this.name = name;
    this.label = label;
    this.write = write;
    /** @type {Sample[]} */
    this.samples = [];
    this.canvas = h("canvas", { class: "ops-plot", role: "img", "aria-label": "a plot without values yet" });
    this.tip = h("span", { class: "ops-tip", "aria-hidden": "true" });
    this.root = h("div", { class: "ops-plot-box" }, this.canvas, this.tip);
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.point(event.offsetX));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
  }

  /** @param {Sample[]} samples */
  draw(samples) {
    this.samples = samples.filter((sample) => sample.values[this.name] !== null);
    const drawn = prepare(this.canvas);
    if (!drawn) return;
    this.line(drawn.context, drawn.width, drawn.height);
    this.describe();
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

  get highest() {
    return Math.max(0, ...this.samples.map((sample) => sample.values[this.name] ?? 0));
  }

  /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height */
  line(context, width, height) {
    const top = this.highest || 1;
    const x = (/** @type {Sample} */ sample) => width - ((this.end - sample.time) / this.span) * width;
    const y = (/** @type {Sample} */ sample) => height - PAD - ((sample.values[this.name] ?? 0) / top) * (height - 2 * PAD);
    context.strokeStyle = colour("line");
    context.beginPath();
    context.moveTo(0, height - 0.5);
    context.lineTo(width, height - 0.5);
    context.stroke();
    context.strokeStyle = colour("accent");
    context.fillStyle = colour("accent-soft");
    context.lineWidth = 1.5;
    for (const run of runs(this.samples)) drawRun(context, run, x, y, height);
  }

  /** Show the value under the pointer. @param {number | null} at  pixels from the left */
  point(at) {
    const time = at === null ? 0 : this.end - (1 - at / this.canvas.clientWidth) * this.span;
    const nearest = at === null ? null : this.samples.reduce((/** @type {Sample | null} */ best, sample) =>
      (best && Math.abs(best.time - time) < Math.abs(sample.time - time) ? best : sample), null);
    this.tip.textContent = nearest ? `${new Date(nearest.time).toLocaleTimeString()}  ${this.write(nearest.values[this.name])}` : "";
  }

  describe() {
    const minutes = Math.max(1, Math.round(this.span / 60_000));
    const now = this.samples.at(-1)?.values[this.name] ?? null;
    this.canvas.setAttribute("aria-label", `${this.label}, the last ${minutes} minutes: now ${this.write(now)}, at most ${this.write(this.highest)}`);
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

/** @param {CanvasRenderingContext2D} context @param {Sample[]} run @param {(sample: Sample) => number} x @param {(sample: Sample) => number} y @param {number} height */
function drawRun(context, run, x, y, height) {
  const first = run[0];
  const last = run[run.length - 1];
  const line = new Path2D();
  run.forEach((sample) => line.lineTo(x(sample), y(sample)));
  if (run.length === 1) line.arc(x(first), y(first), 1.5, 0, 2 * Math.PI);
  const area = new Path2D(line);
  area.lineTo(x(last), height);
  area.lineTo(x(first), height);
  context.fill(area);
  context.stroke(line);
}
