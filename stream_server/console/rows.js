// @ts-check
// A bounded list of rows, newest first: arrivals wait in a list, and one frame of the browser inserts them together.
//
// Inserting each arrival by itself, or more than a few hundred rows, makes frames late: at 500 posts a second the page
// freezes. So at most 300 rows are in the page and 2,000 records in memory. While the reader has scrolled down, arrivals
// wait, and are counted. A hidden tab gets no frames, so there they wait too.

import { fill, h, number } from "./dom.js";

export const MAX_RECORDS = 2000;
export const MAX_ROWS = 300;
const REST_MS = 6; // an insertion that took longer is followed by a rest

/** @typedef {{id?: string, event?: any, make: () => HTMLElement, row?: HTMLElement}} Item */

export class Rows {
  /** @param {string} label */
  constructor(label) {
    /** @type {Item[]} */ this.items = []; // in the page or above its cap, newest first
    /** @type {Item[]} */ this.waiting = []; // not yet in the page, oldest first
    /** @type {Map<string, Item>} */ this.byId = new Map();
    this.dropped = 0; // that nobody saw, because too many waited
    this.total = 0;
    this.cap = MAX_ROWS; // of rows in the page; more while one looks back
    this.isScheduled = false;
    this.restUntil = 0;
    this.newer = h("button", { class: "newer", hidden: true, onclick: () => this.toNewest() });
    this.end = h("p", { class: "end-note muted", hidden: true });
    this.label = label;
    this.feed = h("div", { class: "rows" });
    this.scroller = h("div", { class: "scroller", tabindex: "0", role: "region", "aria-label": label, onscroll: () => this.scrolled() }, this.feed, this.end);
  }

  /** Whether the reader reads older rows, which must not move. */
  get isHeld() {
    return this.scroller.scrollTop > 60;
  }

  /** Adds the newest row; one with a known id is left out. @param {Item} item */
  add(item) {
    if (item.id !== undefined) {
      if (this.byId.has(item.id)) return;
      this.byId.set(item.id, item);
    }
    this.total += 1;
    this.waiting.push(item);
    if (this.waiting.length > MAX_RECORDS) {
      this.forget(this.waiting.shift());
      this.dropped += 1;
    }
    this.schedule();
  }

  /** Puts a row in the place of the one with the same id; a new one is added. @param {Item} item */
  replace(item) {
    const known = this.byId.get(item.id ?? "");
    if (!known) return this.add(item);
    known.make = item.make;
    if (!known.row) return;
    const row = item.make();
    known.row.replaceWith(row);
    known.row = row;
  }

  /** Adds rows that are older than all others. @param {Item[]} items newest first */
  addOlder(items) {
    for (const item of items) {
      if (item.id !== undefined && this.byId.has(item.id)) continue;
      if (item.id !== undefined) this.byId.set(item.id, item);
      this.items.push(item);
    }
    this.showMore(items.length);
  }

  /** Shows rows that are held below those in the page. @param {number} count @returns {number} how many */
  showMore(count) {
    const from = this.items.findLastIndex((item) => item.row) + 1;
    const more = this.items.slice(from, Math.min(from + count, MAX_RECORDS));
    for (const item of more) this.feed.append((item.row = item.make()));
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
    const held = this.all().map(({ row, ...item }) => item);
    [this.items, this.waiting, this.dropped, this.total, this.cap] = [[], [], 0, 0, MAX_ROWS];
    this.byId.clear();
    fill(this.feed);
    this.scroller.scrollTop = 0;
    this.trim();
    this.tellNewer();
    return held;
  }

  /** @param {string} id */
  remove(id) {
    const item = this.byId.get(id);
    if (!item) return;
    this.forget(item);
    this.items = this.items.filter((one) => one !== item);
    this.waiting = this.waiting.filter((one) => one !== item);
    item.row?.remove();
    this.showRole();
  }

  /** @param {Item | undefined} item */
  forget(item) {
    if (item?.id !== undefined) this.byId.delete(item.id);
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
    if (this.isHeld) return this.tellNewer();
    const arrived = this.waiting.splice(0).reverse();
    if (!arrived.length) return;
    this.cap = MAX_ROWS;
    const shown = arrived.slice(0, MAX_ROWS);
    const fragment = document.createDocumentFragment();
    for (const item of shown) fragment.append((item.row = item.make()));
    this.feed.prepend(fragment);
    this.items.unshift(...arrived);
    this.trim();
    this.tellNewer();
  }

  /** Keeps both caps, and says so at the end of the list. */
  trim() {
    for (const item of this.items.splice(MAX_RECORDS)) this.forget(item);
    while (this.feed.childElementCount > this.cap) this.feed.lastElementChild?.remove();
    for (let index = this.cap; index < this.items.length && this.items[index].row; index++) delete this.items[index].row;
    this.showRole();
    this.end.hidden = this.items.length <= this.cap && !this.dropped;
    if (!this.end.hidden) fill(this.end, `The newest ${this.cap} are shown. ${this.dropped ? `${number(this.dropped)} came faster than they could be shown.` : ""}`);
  }

  /** A feed without articles is none to a screen reader. */
  showRole() {
    const isFeed = this.feed.childElementCount > 0;
    this.feed.role = isFeed ? "feed" : null;
    this.feed.ariaLabel = isFeed ? this.label : null;
  }

  tellNewer() {
    const count = this.waiting.length;
    this.newer.hidden = !count || !this.isHeld;
    if (!this.newer.hidden) fill(this.newer, `▲ ${number(count)}${count >= MAX_RECORDS ? "+" : ""} new`);
  }

  scrolled() {
    if (!this.isHeld && this.waiting.length) this.schedule();
    this.tellNewer();
  }

  toNewest() {
    this.scroller.scrollTop = 0;
    this.schedule();
  }
}
