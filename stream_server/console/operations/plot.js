// @ts-check
/** A line of one value over the last hour, on a canvas. A gap in the line is time in which nobody asked. */

import { colour, h } from "../dom.js";
import { HOUR_MS } from "./history.js";

/** @typedef {import("./history.js").Sample} Sample */

const BREAK_MS = 8000;
const SHORTEST_MS = 60_000;
const PAD = 3;

export class Plot {
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
    const { canvas } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    const ratio = devicePixelRatio || 1;
    if (!width) return;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    if (!context) return;
    context.scale(ratio, ratio);
    this.line(context, width, height);
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
  context.beginPath();
  context.moveTo(x(first), height);
  run.forEach((sample) => context.lineTo(x(sample), y(sample)));
  context.lineTo(x(last), height);
  context.fill();
  context.beginPath();
  run.forEach((sample, at) => (at ? context.lineTo(x(sample), y(sample)) : context.moveTo(x(sample), y(sample))));
  if (run.length === 1) context.arc(x(first), y(first), 1.5, 0, 2 * Math.PI);
  context.stroke();
}
