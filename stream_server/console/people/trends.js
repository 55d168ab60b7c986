// @ts-check
/** The tags that more people use than an hour ago, beside the pages. */

import { fill, h, isolate } from "../dom.js";
import { counted, tagHref } from "./text.js";

const COUNT = 8;

export class Trends {
  /** @param {import("./site.js").Site} site */
  constructor(site) {
    this.site = site;
    this.list = h("ol", { class: "trends-list" });
    this.root = h("section", { class: "trends", "aria-labelledby": "trends-title", hidden: true }, h("h2", { id: "trends-title" }, "Trending now"), this.list);
  }

  /** Ask the server. Without an answer the last one stays, since nobody waits for it. */
  async load() {
    try {
      const { trends } = await this.site.get("/v1/trends", { count: COUNT });
      this.root.hidden = trends.length === 0;
      fill(this.list, ...trends.map(entry));
    } catch {
      // The next attempt comes in a minute.
    }
  }
}

function entry(trend) {
  return h("li", {}, h("a", { href: tagHref(trend.text) }, isolate(`#${trend.text}`)), h("span", { class: "muted" }, counted(trend.count, "person", "people")));
}
