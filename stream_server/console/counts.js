// @ts-check
// How many past posts match a rule, as a chart with a bar for each minute or hour. The server reads a second at a
// time, so the chart fills from its right end.

import { fill, h, number, svg } from "./dom.js";
import { explain } from "./forms.js";
import { inTurn } from "./streams/turns.js";
import { counted } from "./people/text.js";

/** @typedef {import("./types.d.ts").CountBucket} CountBucket */
/** @typedef {{name: string, from: string, every: "minute" | "hour", unit: string}} Span */

/** @type {Span[]} */
const SPANS = [
  { name: "Hour", from: "-1h", every: "minute", unit: "a minute" },
  { name: "Day", from: "-1d", every: "hour", unit: "an hour" },
  { name: "Week", from: "-7d", every: "hour", unit: "an hour" },
];
const MAX_ANSWERS = 15; // of one chart; a user may ask sixty questions a minute

export class CountChart {
  /** @param {import("./client.js").Client} client @param {import("./streams/brush.js").Brush | null} [brush] by which a time is chosen */
  constructor(client, brush = null) {
    this.client = client;
    this.brush = brush;
    this.rule = "";
    this.question = 0; // the number of the last one: an answer to another is too late
    this.span = SPANS[0];
    /** Ends when the server works on no question any more: a user may ask one at a time. */
    this.idle = Promise.resolve();
    this.buttons = h("span", { class: "row", role: "group", "aria-label": "Time of the chart" }, SPANS.map((span) =>
      h("button", { type: "button", class: "small", onclick: () => this.show(this.rule, span) }, span.name)));
    this.total = h("span", { class: "muted" });
    this.plot = h("div", { class: "counts-plot" });
    this.root = h("div", { class: "counts" }, h("div", { class: "row" }, this.buttons, this.total), this.plot);
  }

  /** Forgets the rule: what is on its way to it will not be shown. */
  clear() {
    this.question += 1;
    fill(this.plot);
    fill(this.total);
  }

  /** Counts the posts that match a rule, and draws them as they come. @param {string} rule @param {Span} [span] */
  show(rule, span = this.span) {
    this.clear();
    this.rule = rule;
    this.span = span;
    const { question } = this;
    this.idle = this.idle.then(() => this.ask(question));
    return this.idle;
  }

  /** @param {number} question the number of the question, of which nothing is shown if another one was asked since */
  async ask(question) {
    const { rule, span } = this;
    for (const [index, button] of [...this.buttons.children].entries()) button.setAttribute("aria-pressed", String(SPANS[index] === span));
    const body = { rules: [{ rule }], from: span.from, every: span.every, next: null };
    /** @type {CountBucket[]} */ const buckets = [];
    try {
      for (let answers = 0; answers < MAX_ANSWERS && question === this.question; answers++) {
        const page = await inTurn(() => this.client.request("POST", "/v1/rules/counts", { body }));
        if (question !== this.question) return;
        buckets.push(...page.buckets);
        this.draw(buckets);
        body.next = page.next;
        if (!page.next) return;
      }
    } catch (error) {
      if (question === this.question) fill(this.total, explain(error));
    }
  }

  /** @param {CountBucket[]} buckets the newest first */
  draw(buckets) {
    if (!buckets.length) return;
    const sum = buckets.reduce((all, { count }) => all + count, 0);
    const most = Math.max(1, ...buckets.map(({ count }) => count));
    const shown = buckets.toReversed();
    const since = buckets.at(-1)?.complete ? "" : ", as far as the log goes back";
    const text = `${counted(sum, "post")}, at most ${number(most)} in ${this.span.unit}${since}`;
    fill(this.total, text);
    const bars = shown.map(({ count }, index) => (count ? `M${index + 0.5} 1V${1 - Math.max(0.04, count / most)}` : "")).join("");
    const tip = h("span", { class: "ops-tip", "aria-hidden": "true" });
    const point = (/** @type {PointerEvent} */ event) => {
      const bucket = shown[Math.floor((event.offsetX / this.plot.clientWidth) * shown.length)];
      fill(tip, bucket && `${new Date(bucket.from).toLocaleString([], { dateStyle: "short", timeStyle: "short" })}  ${number(bucket.count)}`);
    };
    const drawing = svg("svg", { class: "counts-bars", viewBox: `0 0 ${shown.length} 1`, preserveAspectRatio: "none", role: "img", "aria-label": text }, svg("path", { d: bars }), this.brush?.mark ?? []);
    const box = this.brush?.hold(shown) ?? h("div", { class: "counts-box" });
    fill(box, h("div", { onpointermove: point, onpointerleave: () => fill(tip) }, drawing, tip));
    if (box.parentNode !== this.plot) fill(this.plot, box);
  }
}
