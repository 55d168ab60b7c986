// @ts-check
// What a rule would have found in the past hour: how many posts, the newest of them, those that it missed by one part,
// and a chart.

import { CountChart } from "./counts.js";
import { fill, h, number, time } from "./dom.js";
import { explain } from "./forms.js";
import { counted } from "./people/text.js";
import { postRow } from "./post.js";
import { inTurn } from "./streams/turns.js";

const SHOWN = 3;

export class Trial {
  /** @param {any} app @param {(refused: any) => any} mark shows a mistake where the rule is written */
  constructor(app, mark) {
    this.app = app;
    this.mark = mark;
    this.rule = ""; // of which the result is shown
    this.chart = new CountChart(app.client);
    this.root = h("div", { class: "trial", "aria-live": "polite" });
  }

  /** Forgets what another rule has found. @param {string} rule */
  keepOnly(rule) {
    if (rule === this.rule) return;
    this.rule = "";
    this.chart.clear();
    fill(this.root);
  }

  /** @param {string} rule */
  async show(rule) {
    this.rule = rule;
    this.chart.clear();
    fill(this.root, h("p", { class: "muted" }, rule ? "Reading the past hour…" : "To try a filter, give words, people, areas or conditions."));
    if (!rule) return;
    const body = { rule, minutes: 60, near_misses: true };
    try {
      const found = await inTurn(() => this.app.client.request("POST", "/v1/rules/preview", { body }));
      if (rule !== this.rule) return;
      this.draw(found);
      await this.chart.show(rule);
    } catch (error) {
      if (rule === this.rule) fill(this.root, error.column ? void this.mark(error) : h("p", { class: "problem" }, explain(error)));
    }
    if (rule === this.rule) this.root.scrollIntoView({ block: "nearest" });
  }

  /** @param {import("./types.d.ts").RulePreviewResult} found */
  draw(found) {
    const since = found.complete ? "in the past hour" : ["since ", time(found.from), ", all that was read"];
    const row = (/** @type {import("./types.d.ts").PreviewExample} */ { status, parts }) => postRow(status, parts, this.app, { rule: this.rule, why: "" });
    const near = found.near_misses ?? [];
    fill(this.root,
      h("p", {}, h("strong", {}, counted(found.matched, "post"), " "), since, `, ${number(found.per_minute)} a minute`),
      found.examples.slice(0, SHOWN).map(row),
      near.length > 0 && h("details", { class: "near" }, h("summary", {}, counted(found.near_missed ?? 0, "near miss", "near misses"), ": all of the rule but one part"),
        near.slice(0, SHOWN).map((one) => h("div", {}, h("p", { class: "small" }, "misses ", h("code", {}, one.missing)), row(one)))),
      this.chart.root);
  }
}
