// @ts-check
// Looks back from a column: to the posts before its oldest row, and to a time that it shows instead of what is live.

import { CountChart } from "../counts.js";
import { fill, h, number } from "../dom.js";
import { aloneParameters } from "../filter.js";
import { explain } from "../forms.js";
import { counted } from "../people/text.js";
import { MAX_RECORDS } from "../rows.js";
import { Brush, words } from "./brush.js";
import { inTurn } from "./turns.js";

const [PAGE, LONG_PAGE] = [50, 500]; // posts of one answer, for the column and for a file
const FIRST = 10; // posts of a new column
const ANSWERS = 10; // of one press of the button, while they have no posts
const HOUR_MS = 3_600_000;
const LOW = matchMedia("(max-height: 400px)"); // has no room for the form beside the posts

const iso = (/** @type {number} */ ms) => new Date(ms).toISOString();
const local = (/** @type {number} */ ms) => iso(ms - 60_000 * new Date(ms).getTimezoneOffset()).slice(0, 16); // as a field of the browser has it
const postsOf = (/** @type {any} */ page) => page.events.filter(({ kind }) => kind === "post").reverse();

export class LookBack {
  /** @param {import("../column.js").Column} column */
  constructor(column) {
    this.column = column;
    /** @type {import("./brush.js").Range | null} of which the column shows the posts; null while it is live */ this.range = null;
    this.next = ""; // the place before which to read on, if it is not the oldest row
    this.shown = 0; // counts the times that were chosen: a page of another one comes too late
    this.copied = 0; // posts that were read for a file
    this.isBusy = this.isAtEnd = false;
    this.isForward = Boolean(column.filter.saved); // saved rules change along the log, which is read forward then
    this.button = h("button", { hidden: this.isForward, onclick: () => this.older() }, "Older");
    this.told = h("p", { class: "muted small", role: "status" });
    const onsubmit = (/** @type {Event} */ event) => (event.preventDefault(), this.show({ from: Date.parse(this.from.value), to: Date.parse(this.to.value) }));
    this.panel = h("form", { class: "look-back", hidden: true, "aria-label": "Look back", onsubmit });
    column.rows.scroller.append(h("div", { class: "older" }, this.button, this.told));
  }

  /** Opens or closes the part of the column's head in which a time is chosen. */
  toggle() {
    const { rule, app, element } = this.column;
    this.panel.hidden = !this.panel.hidden;
    if (this.panel.hidden) return element.focus();
    this.brush = new Brush((range) => this.show(range), this.range);
    const chart = rule ? new CountChart(app.client, this.brush) : null;
    const { from, to } = this.range ?? { from: Date.now() - HOUR_MS, to: Date.now() + 60_000 };
    [this.from, this.to] = Object.entries({ From: from, To: to }).map(([name, ms]) => h("input", { type: "datetime-local", required: true, value: local(ms), "aria-label": name }));
    fill(this.panel, chart?.root ?? h("p", { class: "muted small" }, "A chart counts the posts of a rule, and this column has none. Its time can be typed."),
      h("div", { class: "row" }, this.from, "to", this.to), h("div", { class: "row" }, h("button", { class: "primary", onclick: () => (this.to.min = this.from.value) }, "Show"), // the browser tells of an end before the begin
        h("button", { type: "button", onclick: () => this.toggle() }, "Close")));
    chart?.show(rule);
    this.from.focus();
  }

  /** Shows the posts of a time, or with null what is live again. @param {import("./brush.js").Range | null} range */
  show(range) {
    const { column } = this;
    if (range) [this.from.value, this.to.value] = [local(range.from), local(range.to)];
    if (range && LOW.matches) this.toggle();
    else if (column.element.contains(document.activeElement)) column.element.focus();
    this.range = range;
    this.brush?.point(range);
    column.pausedAt = "";
    this.clear();
    column.showPause();
    return this.older();
  }

  /** Takes all rows away, and begins anew. @returns {import("../rows.js").Item[]} what was held */
  clear() {
    this.shown += 1;
    this.next = this.range ? iso(this.range.to) : "";
    this.isBusy = this.isAtEnd = false;
    this.button.hidden = this.isForward;
    fill(this.told);
    return this.column.rows.clear();
  }

  /** Loads the newest posts of the past hour, so that a new column is not empty; of followed people also older ones. */
  async begin() {
    const since = this.column.filter.following ? "" : iso(Date.now() - HOUR_MS);
    const page = await this.read("", since, FIRST);
    if (!this.range) this.take(page, page.more ? page.cursor : since, !since);
  }

  /** Adds the page before the oldest row: of those that are held, or else of the server's log. */
  async older() {
    const { column, shown } = this;
    if (this.isBusy || column.rows.showMore(PAGE)) return;
    this.isBusy = true;
    fill(this.told, "Reading…");
    column.showState();
    let [found, problem] = [0, "Nothing was found yet. “Older” reads on."];
    for (let answers = 0; !found && !this.isAtEnd && answers < ANSWERS; answers++) {
      const before = this.next || column.rows.all().findLast(({ event }) => event?.cursor)?.event.cursor;
      const page = await this.read(before, this.range ? iso(this.range.from) : "", PAGE).catch((error) => void (problem = explain(error)));
      if (shown !== this.shown) return;
      if (!page) break;
      found = this.take(page, page.cursor, true);
    }
    this.isBusy = false;
    if (!found && !this.isAtEnd) fill(this.told, problem);
    column.showState();
  }

  /** @param {string} before "" for the end of the log @param {string} since @param {number} limit @returns {Promise<any>} */
  read(before, since, limit) {
    const body = { ...aloneParameters(this.column.filter), kinds: "post", before: before || iso(Date.now() + HOUR_MS), since: since || undefined, limit: String(limit) };
    return inTurn(() => this.column.app.client.request("POST", "/v1/events", { body }));
  }

  /** @param {any} page @param {string} next where to go on if it has no posts @param {boolean} isOfAll whether nothing wanted is before its last page @returns {number} how many of its posts are new here */
  take(page, next, isOfAll) {
    const { rows, element } = this.column;
    const gap = page.events.find(({ kind }) => kind === "gap");
    const added = rows.addOlder(postsOf(page).map((event) => this.column.item(event, event.matched ?? [])));
    this.next = added ? "" : next;
    this.isAtEnd = !page.more && (isOfAll || Boolean(gap));
    const isFull = rows.items.length >= MAX_RECORDS;
    const end = gap ? `The server's log begins here: ${gap.count ? number(gap.count) : "the"} older entries are no longer on it.` : `${this.range ? "The time that is shown" : "The server's log"} begins here.`;
    fill(this.told, isFull ? `A column holds ${number(MAX_RECORDS)} posts. To look further back, choose a time.` : this.isAtEnd && end);
    if (this.button === document.activeElement && (this.isAtEnd || isFull)) element.focus({ preventScroll: true });
    this.button.hidden = this.isAtEnd || isFull;
    return added;
  }

  /** Reads all posts of the time for a file. @param {number} most @returns {Promise<{events: any[], more: boolean}>} the newest of them, the oldest first, and whether there are more */
  async readAll(most) {
    const { from, to } = /** @type {import("./brush.js").Range} */ (this.range);
    const /** @type {any[]} */ events = [];
    let page = { cursor: iso(to), more: true };
    for (; page.more && events.length < most; this.column.showState()) {
      page = await this.read(page.cursor, iso(from), Math.min(LONG_PAGE, most - events.length)).finally(() => (this.copied = 0));
      this.copied = events.push(...postsOf(page));
    }
    this.copied = 0;
    return { events: events.reverse(), more: page.more };
  }

  /** @returns {[string, string]} a kind of state and its words */
  describe() {
    const posts = counted(this.column.rows.items.length, "post");
    const how = this.copied ? `${counted(this.copied, "post")} read for the file` : this.isBusy ? "reading" : posts + (this.isAtEnd ? "" : ", and older ones");
    return ["range", `${words(/** @type {import("./brush.js").Range} */ (this.range))}: ${how}`];
  }
}
