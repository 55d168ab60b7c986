// @ts-check
// How many past posts match a rule, as a chart with a bar for each minute or hour. The server reads a second at a
// time, so the chart fills from its right end.

import { fill, h, number, svg } from "./dom.js";
import { choice, explain } from "./forms.js";
import { bars, stretched } from "./plot.js";
import { clock } from "./streams/brush.js";
import { inTurn } from "./streams/turns.js";
import { counted } from "./people/text.js";

/** @typedef {import("./types.d.ts").CountBucket} CountBucket */
/** @typedef {{from: string, every: "minute" | "hour", unit: string}} Span */

const SPANS = /** @type {Record<string, Span>} */ ({
  Hour: { from: "-1h", every: "minute", unit: "a minute" },
  Day: { from: "-1d", every: "hour", unit: "an hour" },
  Week: { from: "-7d", every: "hour", unit: "an hour" },
});
const MAX_ANSWERS = 15; // of one chart; a user may ask sixty questions a minute
const AGAIN_MS = 60_000; // until a chart in a column counts its newest bar again

export class CountChart {
  /** @param {import("./client.js").Client} client @param {import("./streams/brush.js").Brush | null} [brush] by which a time is chosen */
  constructor(client, brush = null) {
    this.client = client;
    this.brush = brush;
    this.rule = "";
    this.question = 0; // the number of the last one: an answer to another is too late
    this.span = SPANS.Hour;
    const names = Object.fromEntries(Object.keys(SPANS).map((name) => [name, name]));
    const buttons = choice({ class: "row small", "aria-label": "Time of the chart" }, names, (name) => this.show(this.rule, SPANS[name]));
    this.total = h("span", { class: "counts-total muted" });
    this.plot = h("div", { class: "counts-plot" });
    this.ends = h("div", { class: "counts-ends row muted small" });
    this.root = h("div", { class: "counts" }, h("div", { class: "row" }, buttons, this.total), this.plot);
  }

  /** Forgets the rule: what is on its way to it will not be shown. */
  clear() {
    this.question += 1;
    fill(this.plot);
    fill(this.total);
  }

  /** Counts the posts that match a rule, and draws them as they come. @param {string} rule @param {Span} [span] @param {CountBucket[]} [held] what was counted, the newest first; then only the newest is counted anew, and what came since */
  async show(rule, span = this.span, held = []) {
    if (!held.length) this.clear();
    if (!held.length) fill(this.total, "Counting…");
    Object.assign(this, { rule, span });
    const { question } = this;
    const body = { rules: [{ rule }], from: held[0]?.from ?? span.from, every: span.every, next: null };
    /** @type {CountBucket[]} */ const buckets = [];
    let all = held;
    try {
      for (let answers = 0; answers < MAX_ANSWERS && question === this.question; answers++) {
        const page = await inTurn(() => this.client.request("POST", "/v1/rules/counts", { body }));
        if (question !== this.question) return;
        buckets.push(...page.buckets);
        body.next = page.next;
        if (held.length && page.next) continue;
        all = [...buckets, ...held.slice(1)].slice(0, held.length || undefined);
        const isLast = !page.next || answers + 1 === MAX_ANSWERS;
        this.draw(all, isLast ? "" : ", counting…");
        if (isLast) break;
      }
    } catch (error) {
      if (question === this.question) fill(this.total, explain(error));
    }
    if (question === this.question) this.later(all);
  }

  /** Counts again after a while, as long as the chart is seen in a column. @param {CountBucket[]} held */
  later(held) {
    const { question, root } = this;
    const goOn = () => (document.hidden || !root.checkVisibility() ? this.later(held) : this.show(this.rule, this.span, held));
    setTimeout(() => question === this.question && root.closest(".board") && goOn(), AGAIN_MS);
  }

  /** @param {CountBucket[]} buckets the newest first @param {string} more behind their sum */
  draw(buckets, more) {
    if (!buckets.length) return;
    const sum = buckets.reduce((all, { count }) => all + count, 0);
    const most = Math.max(1, ...buckets.map(({ count }) => count));
    const shown = buckets.toReversed();
    const since = buckets.at(-1)?.complete ? "" : ", as far as the log goes back";
    const text = `${counted(sum, "post")}, at most ${number(most)} in ${this.span.unit}${since}`;
    fill(this.total, text + more);
    const tip = h("span", { class: "ops-tip", "aria-hidden": "true" });
    const point = (/** @type {PointerEvent} */ event) => {
      const bucket = shown[Math.floor((event.offsetX / this.plot.clientWidth) * shown.length)];
      fill(tip, bucket && `${new Date(bucket.from).toLocaleString([], { dateStyle: "short", timeStyle: "short" })}  ${number(bucket.count)}`);
    };
    const path = svg("path", { d: bars(shown.map(({ count }) => count), most) });
    const drawing = stretched("counts-bars", shown.length, 1, text, path, ...(this.brush ? [this.brush.mark] : []));
    const box = this.brush?.hold(shown) ?? h("div", { class: "counts-box" });
    fill(box, h("div", { onpointermove: point, onpointerleave: () => fill(tip) }, drawing, tip));
    fill(this.ends, clock(Date.parse(shown[0].from)), this.brush?.told ?? h("span", { class: "grow" }), clock(Date.parse(shown[shown.length - 1].to)));
    if (box.parentNode !== this.plot) fill(this.plot, box, this.ends);
  }
}
