// @ts-check
/** The line of one value over the last hour, with its axes and its highest value. A gap is time without samples. */

import { fill, h, svg } from "../dom.js";
import { stretched } from "../plot.js";
import { clock } from "../streams/brush.js";
import { HOUR_MS } from "./history.js";

/** @typedef {import("./history.js").Sample} Sample */

const BREAK_MS = 25_000; // the server has a sample every ten seconds
const SHORTEST_MS = 60_000;
const FLOOR = 0.95; // where zero is, from the top: a line at either edge would be cut
const CEILING = 0.05;

/** Draws the samples of one value. A field over the drawing reads it at a time: under the pointer, and by the arrow keys. */
export class LinePlot {
  area = svg("path", { class: "area" }); line = svg("path", {}); peak = svg("path", { class: "peak" }); mark = svg("path", { class: "mark" });
  top = h("span", {}); from = h("span", {}); when = h("span", {}); to = h("span", {});

  /** @param {string} name of the value @param {string} label @param {(value: number | null | undefined) => string} write */
  constructor(name, label, write) {
    this.name = name;
    this.label = label;
    this.write = write;
    /** @type {Sample[]} */ this.samples = [];
    /** @type {Sample | undefined} the one that is read */ this.read = undefined;
    this.scale = 1;
    /** The end of the time that is shown, in ms since 1970, and its length. */ this.end = 0; this.span = SHORTEST_MS;
    this.drawing = stretched("ops-plot", 1, 1, "a plot without values yet", this.area, this.mark, this.line, this.peak);
    this.tip = h("span", { class: "ops-tip", "aria-hidden": "true" });
    const hover = (/** @type {PointerEvent} */ event) => this.show(this.nearest(this.end - (1 - event.offsetX / this.range.clientWidth) * this.span));
    const chosen = () => this.show(this.samples[Number(this.range.value)]);
    const leave = () => { if (document.activeElement !== this.range) this.show(undefined); };
    this.range = h("input", { type: "range", class: "ops-range", min: "0", max: "0", "aria-label": `${label}, at`, oninput: chosen, onfocus: chosen, onblur: leave, onpointermove: hover, onpointerleave: leave });
    this.root = h("div", { class: "ops-plot-box" },
      h("div", { class: "ops-y", "aria-hidden": "true" }, this.top, h("span", {}, write(0))),
      h("div", { class: "ops-canvas" }, this.drawing, this.range, this.tip),
      h("div", { class: "ops-x", "aria-hidden": "true" }, this.from, this.when, this.to));
  }

  /** @param {Sample[]} samples */
  draw(samples) {
    this.samples = samples.filter((sample) => sample.values[this.name] !== null);
    this.end = this.samples.at(-1)?.time ?? 0;
    // The hour fills only as it passes: until then the line takes the width from the first answer on, at least one minute.
    this.span = Math.min(HOUR_MS, Math.max(SHORTEST_MS, this.end - (this.samples[0]?.time ?? 0)));
    const highest = this.best((sample) => this.value(sample));
    const lowest = this.best((sample) => -this.value(sample));
    if (!highest || !lowest) return;
    this.scale = this.value(highest) || 1;
    const path = (/** @type {(sample: Sample) => string} */ begin, /** @type {string} */ end) => this.samples.map((sample, at) => {
      if (at && sample.time - this.samples[at - 1].time <= BREAK_MS) return `L${this.place(sample)}`;
      return (at ? end : "") + begin(sample);
    }).join("") + end;
    this.line.setAttribute("d", path((sample) => `M${this.place(sample)}`, "h0"));
    this.area.setAttribute("d", path((sample) => `M${this.x(sample)} 1L${this.place(sample)}`, "V1z"));
    this.peak.setAttribute("d", `M${this.place(highest)}h0`);
    const most = `at most ${this.text(highest)} at ${clock(highest.time)}`;
    const minutes = Math.max(1, Math.round(this.span / 60_000));
    this.drawing.setAttribute("aria-label", `${this.label}, the last ${minutes} minutes: now ${this.text(this.samples.at(-1))}, ${most}, at least ${this.text(lowest)} at ${clock(lowest.time)}`);
    fill(this.top, this.text(highest));
    fill(this.from, clock(this.end - this.span));
    fill(this.when, `max at ${clock(highest.time)}`);
    fill(this.to, clock(this.end));
    this.range.max = String(this.samples.length - 1);
    this.show(this.read && this.nearest(this.read.time));
  }

  /** Return the first of the samples that a measure finds best. @param {(sample: Sample) => number} measure @returns {Sample | undefined} */
  best(measure) {
    return this.samples.reduce((best, sample) => (measure(sample) > measure(best) ? sample : best), this.samples[0]);
  }

  /** The value of a sample, as text, and its place: from the left, and as a point of a path. */
  value = (/** @type {Sample} */ sample) => sample.values[this.name] ?? 0;
  text = (/** @type {Sample | undefined} */ sample) => this.write(sample?.values[this.name]);
  x = (/** @type {Sample} */ sample) => 1 - (this.end - sample.time) / this.span;
  place = (/** @type {Sample} */ sample) => `${this.x(sample)} ${FLOOR - (this.value(sample) / this.scale) * (FLOOR - CEILING)}`;

  nearest = (/** @type {number} */ time) => this.best((sample) => -Math.abs(sample.time - time));

  /** Read the plot at a sample. @param {Sample | undefined} sample */
  show(sample) {
    this.read = sample;
    const text = sample ? `${clock(sample.time, "medium")}  ${this.text(sample)}` : "";
    fill(this.tip, text);
    this.mark.setAttribute("d", sample ? `M${this.x(sample)} 0V1` : "");
    this.range.value = String(sample ? this.samples.indexOf(sample) : this.samples.length - 1);
    this.range.setAttribute("aria-valuetext", text || this.text(this.samples.at(-1)));
  }
}
