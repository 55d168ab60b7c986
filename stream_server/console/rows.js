// @ts-check
// A bounded list of rows, newest first: arrivals wait in a list, and one frame of the browser inserts them together.
//
// Inserting each arrival by itself, or more than a few hundred rows, makes frames late: at 500 posts a second the page
// freezes. So at most 300 rows are in the page and 2,000 records in memory. While somebody reads or is about to press
// something, nothing moves: arrivals wait and are counted, an edit waits, and a deleted row leaves its place empty. A hidden
// tab gets no frames, so there they wait too. Where more came than can be shown, and where a pause was, a row stands for the rest.

import { fill, h, icon, number, svg } from "./dom.js";
import { newKey } from "./forms.js";
import { Hold } from "./hold.js";
import { counted } from "./people/text.js";
import { quieten, rove } from "./rove.js";

export const MAX_RECORDS = 2000;
const MAX_ROWS = 300;
const PAGE = 100; // of those that were left out, when one asks for them
const [LONG_PAGE, MAX_PAGES] = [500, 10]; // after a pause
const MAX_BELOW = 50; // rows that are left below a gap, so that one finds what one has read
const REST_MS = 6; // an insertion that took longer is followed by a rest

/**
 * @typedef {{id: string, at?: string, event?: any, count?: number, make: () => HTMLElement, row?: HTMLElement}} Item `at`: the cursor of its message, or its time
 * @typedef {Item & {count: number, isWanted: boolean, tell: () => void}} LeftOut so many items that came after `at` and are not shown; `isWanted`: they are loaded unasked
 */

/** How many posts or notes some items stand for. @param {any[]} items */
const sizeOf = (items) => items.reduce((sum, { count = 1 }) => sum + count, 0);

export class Rows {
  /** @param {string} label */
  constructor(label) {
    /** @type {Item[]} */ this.items = []; // in the page or above its cap, newest first
    /** @type {Item[]} */ this.waiting = []; // not yet in the page, oldest first
    /** @type {Map<string, Item>} */ this.byId = new Map();
    /** @type {(() => void)[]} */ this.later = []; // what was to be done to rows while the reader held them
    /** @type {((at: string, limit: number) => Promise<{items: Item[], at: string, more: boolean} | null>) | null} */ this.read = null; // items behind a place, oldest first
    this.dropped = 0; // since the last insertion, because too many waited
    this.total = 0;
    this.cap = MAX_ROWS; // of rows in the page; more while one looks back
    this.isScheduled = false;
    this.restUntil = 0;
    this.newer = h("button", { class: "newer", onclick: () => this.toNewest() });
    this.end = h("p", { class: "end-note muted" });
    this.label = label;
    this.feed = h("div", { class: "rows" });
    this.setStop = rove(this.feed);
    this.scroller = h("div", { class: "scroller", role: "region", "aria-label": label, onscroll: () => this.schedule() }, this.feed, this.end);
    this.hold = new Hold(this.feed, this.newer, () => this.schedule());
  }

  /** Those whose id is not known yet; it is from now on. @param {Item[]} items */
  fresh(items) {
    return items.filter((item) => !this.byId.has(item.id) && this.byId.set(item.id, item));
  }

  /** Adds the newest row; one with a known id is left out. @param {Item} item */
  add(item) {
    if (!this.fresh([item]).length) return;
    this.total += 1;
    this.waiting.push(item);
    if (this.waiting.length > MAX_RECORDS) this.dropped += this.forget(this.waiting.splice(0, 1));
    this.schedule();
  }

  /** Puts a row in the place of the one with the same id; a new one is added. @param {Item} item */
  replace(item) {
    const known = this.byId.get(item.id);
    if (!known) return this.add(item);
    Object.assign(known, { make: item.make, event: item.event });
    if (!known.row || known.row.classList.contains("edited")) return;
    known.row.classList.add("edited");
    this.later.push(() => known.row?.isConnected && known.row.replaceWith(this.draw(known)));
    if (!this.hold.isOn) this.settle();
  }

  /** Does what waited for the reader. */
  settle() { for (const work of this.later.splice(0)) work(); }

  /** @param {Item} item */
  draw(item) {
    item.row = quieten(item.make());
    item.row.tabIndex = -1;
    return item.row;
  }

  /** Adds rows that are older than all others. @param {Item[]} items newest first @returns {number} how many were not there yet */
  addOlder(items) {
    const fresh = this.fresh(items);
    this.items.push(...fresh);
    this.showMore(items.length);
    return fresh.length;
  }

  /** Shows rows that are held below those in the page. @param {number} count @returns {number} how many */
  showMore(count) {
    const from = this.items.findLastIndex((item) => item.row) + 1;
    const more = this.items.slice(from, Math.min(from + count, MAX_RECORDS));
    this.feed.append(...more.map((item) => this.draw(item)));
    this.cap = Math.max(this.cap, from + more.length);
    this.trim();
    return more.length;
  }

  /** All that is held, newest first. */
  all() {
    return [...this.waiting.toReversed(), ...this.items];
  }

  /** Forgets all. @returns {Item[]} what was held, newest first, for `addOlder` */
  clear() {
    const held = this.all();
    for (const item of held) delete item.row;
    [this.items, this.waiting, this.dropped, this.total, this.cap] = [[], [], 0, 0, MAX_ROWS];
    this.byId.clear();
    fill(this.feed);
    this.scroller.scrollTop = 0;
    this.trim();
    this.tellNewer();
    return held;
  }

  /** @param {string} id @param {string} [why] */
  remove(id, why = "deleted") {
    const item = this.byId.get(id);
    if (!item) return;
    this.byId.delete(id);
    this.items = this.items.filter((one) => one !== item);
    this.waiting = this.waiting.filter((one) => one !== item);
    if (item.row?.isConnected && this.hold.isOn) this.vacate(item.row, why);
    else item.row?.remove();
    this.showRole();
  }

  /** Keeps the height of a row, so that those below it stay where they are. @param {HTMLElement} row @param {string} why */
  vacate(row, why) {
    const height = row.getBoundingClientRect().height - 1; // without its line
    const place = h("article", { class: "row-note gone", tabindex: "-1" }, svg("svg", { width: 1, height, "aria-hidden": "true" }), why);
    const hadFocus = row.contains(document.activeElement);
    row.replaceWith(place);
    this.later.push(() => place.remove());
    if (hadFocus) place.focus({ preventScroll: true });
  }

  /** @param {Item[]} items @returns {number} how many they stood for */
  forget(items) {
    for (const { id } of items) this.byId.delete(id);
    return sizeOf(items);
  }

  schedule() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame((now) => {
      this.isScheduled = false;
      if (now < this.restUntil) return this.schedule();
      this.flush();
      const took = performance.now() - now; // a slow insertion leaves the next frames to the reader: at most a quarter of the time goes to inserting
      this.restUntil = took > REST_MS ? performance.now() + 3 * took : 0;
    });
  }

  flush() {
    if (!this.scroller.isConnected) return; // its view is not on show, and `resume` of the board comes back
    if (this.hold.isOn) return this.tellNewer();
    this.settle();
    const arrived = this.waiting.splice(0).reverse();
    if (arrived.length) this.cap = MAX_ROWS;
    if (arrived.length > MAX_ROWS) {
      const rest = arrived.splice(MAX_ROWS - 1 - Math.min(MAX_BELOW, this.feed.childElementCount));
      arrived.push(this.leftOut(this.forget(rest) + this.dropped, this.items.find((one) => one.at)?.at));
      this.dropped = 0;
    }
    if (arrived.length) {
      this.feed.prepend(...arrived.map((item) => this.draw(item)));
      this.items.unshift(...arrived);
      this.trim();
      for (const item of /** @type {LeftOut[]} */ (arrived)) if (item.isWanted) void this.load(item, LONG_PAGE, MAX_PAGES);
    }
    this.tellNewer();
  }

  /** A row in the place of posts that are not shown. @param {number} count @param {string} [at] behind which they came @param {boolean} [isWanted] @returns {LeftOut} */
  leftOut(count, at, isWanted = false) {
    const said = h("span", { class: "grow" });
    const item = /** @type {LeftOut} */ ({ id: newKey(), count, at, isWanted });
    item.tell = () => fill(said, `${item.count ? counted(item.count, "post is", "posts are") : "Some posts are"} left out here: this column stood still, or did not keep up.`);
    item.make = () => h("article", { class: "row-note gap" }, icon("gap"), said, at && this.read && h("button", { class: "link", onclick: () => this.load(item, PAGE, 1) }, "Load them"));
    item.tell();
    return item;
  }

  /** Shows the next of those that were left out, the oldest first, below the row that stands for them. @param {LeftOut} gap @param {number} limit of a page @param {number} pages */
  async load(gap, limit, pages) {
    const page = await this.read?.(gap.at ?? "", limit);
    const index = this.items.indexOf(gap);
    if (!page || index < 0 || !gap.row || (pages > 1 && this.hold.isOn)) return; // the row stays, with its button
    const reached = page.items.findIndex(({ id }) => this.items.indexOf(this.byId.get(id) ?? gap) < index); // from there on they are above, or come live
    const fresh = this.fresh(page.items.slice(0, reached < 0 ? page.items.length : reached)).reverse();
    const below = gap.row.nextElementSibling;
    const topOf = () => below?.getBoundingClientRect().top ?? NaN;
    const top = topOf();
    gap.row.after(...fresh.map((item) => this.draw(item)));
    if (pages === 1) for (const { row } of fresh) row?.classList.add("whole"); // its height counts at once
    this.items.splice(index + 1, 0, ...fresh);
    if (pages === 1) this.cap = Math.min(MAX_RECORDS, Math.max(this.cap, this.feed.childElementCount)); // the reader goes on into those below
    [gap.at, gap.count] = [page.at, gap.count - fresh.length];
    gap.tell();
    const isWhole = !page.more || reached >= 0 || gap.count <= 0;
    if (isWhole) {
      this.items.splice(index, 1);
      this.byId.delete(gap.id);
      if (gap.row.contains(document.activeElement)) /** @type {any} */ (below ?? gap.row.nextElementSibling)?.focus({ preventScroll: true });
      gap.row.remove();
    }
    this.trim();
    if (pages === 1 && top < this.scroller.getBoundingClientRect().bottom) this.scroller.scrollTop += topOf() - top || 0; // the reader sees the rows below
    if (!isWhole && pages > 1) await this.load(gap, limit, pages - 1);
  }

  /** Keeps both caps, and says so at the end of the list. */
  trim() {
    this.forget(this.items.splice(MAX_RECORDS));
    while (this.feed.childElementCount > this.cap) this.feed.lastElementChild?.remove();
    for (let index = this.cap; index < this.items.length && this.items[index].row; index++) delete this.items[index].row;
    this.showRole();
    fill(this.end, this.items.length > this.cap && `The newest ${this.cap} are shown.`);
  }

  /** A feed without articles is none to a screen reader. */
  showRole() {
    const isFeed = this.feed.childElementCount > 0;
    this.feed.role = isFeed ? "feed" : null;
    this.feed.ariaLabel = isFeed ? this.label : null;
    this.setStop();
  }

  tellNewer() {
    const count = sizeOf(this.waiting) + this.dropped;
    this.newer.textContent = count && this.hold.isOn ? `▲ ${number(count)} new` : "";
  }

  /** Lets what waits come, whatever held the rows: what the reader had open is closed. */
  toNewest() {
    if ([this.newer, ...this.feed.children].some((one) => one.contains(document.activeElement))) this.scroller.closest("section")?.focus({ preventScroll: true });
    this.hold.end();
    this.scroller.scrollTop = 0;
    this.flush();
  }
}
