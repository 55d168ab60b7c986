// @ts-check
/** A list that comes in pages. Newer items are announced, and inserted on demand or while the reader is at the top. */

import { fill, h, number } from "../dom.js";
import { explain } from "../forms.js";
import { Hold } from "../hold.js";
import { quieten, rove } from "../rove.js";
import { counted } from "./text.js";

/**
 * @typedef {{load: (before: string | null) => Promise<{items: any[], next: string | null}>, render: (item: any) => Element, empty: string, label: string, noun?: string}} FeedOptions
 *   `empty`: what to say if there is nothing; `label`: the name of the list for screen readers; `noun`: of items that are articles and may come live
 */

const MAX_SHOWN = 300; // and so many may wait
const MAX_KNOWN = 2000; // ids, to leave out an item that comes by a page and live; a page may be open for days

export class Feed {
  /** @param {FeedOptions} options */
  constructor(options) {
    this.options = options;
    this.isStale = false; // what is on its way began before the list was to begin anew
    this.known = new Set();
    this.list = h("div", { class: "feed-list", role: options.noun ? "feed" : "group", "aria-label": options.label, "aria-busy": "true" });
    this.setStop = options.noun ? rove(this.list) : () => {};
    this.draw = options.noun ? (/** @type {any} */ item) => quieten(options.render(item)) : options.render;
    this.pill = h("button", { type: "button", class: "feed-new", onclick: () => this.insert() });
    this.hold = new Hold(this.list, this.pill, () => this.look());
    this.status = h("p", { class: "visually-hidden", role: "status" });
    this.more = h("button", { type: "button", class: "feed-more", hidden: true, onclick: () => this.load() }, "Show more");
    this.note = h("div", { class: "feed-note" });
    this.root = h("div", { class: "feed" }, this.pill, this.status, this.list, this.note, this.more);
    void this.restart();
  }

  /** Load the next page, at first the newest. */
  async load() {
    if (this.more.disabled) return; // a page is on its way
    this.more.disabled = true;
    fill(this.note, !this.list.childElementCount && skeleton());
    await this.options.load(this.next).then((page) => this.show(page)).catch((error) => this.fail(error));
    this.more.disabled = false;
    this.list.setAttribute("aria-busy", "false");
    if (this.isStale) await this.restart();
  }

  /** @param {{items: any[], next: string | null}} page */
  show(page) {
    this.next = page.next;
    const fresh = page.items.filter((item) => this.isNew(item));
    this.list.append(...fresh.map((item) => this.draw(item)));
    this.setStop();
    this.more.hidden = page.next === null;
    fill(this.note, this.next === null && h("p", { class: "feed-empty feed-none" }, this.options.empty)); // seen while no row is
  }

  /** @param {unknown} error */
  fail(error) {
    const again = h("button", { type: "button", onclick: () => this.load() }, "Try again");
    fill(this.note, h("p", { class: "problem", role: "alert" }, explain(error), " ", again));
    this.more.hidden = true;
  }

  /** Return whether an item was not shown before, and remember it. @param {any} item */
  isNew(item) {
    if (item.id === undefined) return true;
    const isNew = !this.known.has(item.id);
    this.known.add(item.id);
    if (this.known.size > MAX_KNOWN) this.known.delete(this.known.values().next().value);
    return isNew;
  }

  /** Take a newer item: show it at once unless it is held, and else announce it. @param {any} item @param {boolean} [own] */
  announce(item, own = false) {
    if (!this.isNew(item)) return;
    this.waiting.push(item);
    if (this.waiting.length > MAX_SHOWN) this.dropped += this.waiting.splice(0, 1).length;
    if (own) this.insert();
    else this.look();
  }

  /** Show what waits, unless the page is hidden or left, or somebody is at the list. */
  look() {
    if (document.hidden || !this.root.isConnected || this.hold.isOn) this.tell();
    else if (this.waiting.length) this.insert();
  }

  /** Tell how many newer items wait. */
  tell() {
    const count = this.waiting.length + this.dropped;
    const text = count ? counted(count, `new ${this.options.noun ?? "item"}`) : "";
    fill(this.pill, text);
    if (!count || !this.status.textContent) this.status.textContent = text;
  }

  /** Show the newer items that wait. */
  insert() {
    const hadFocus = document.activeElement === this.pill;
    const fresh = this.waiting.splice(0).reverse().map((item) => this.draw(item));
    this.list.prepend(...fresh);
    this.setStop();
    if (this.dropped) fresh.at(-1)?.after(h("p", { class: "feed-empty" }, `${number(this.dropped)} more are not shown. Reload the page to see them.`));
    this.dropped = 0;
    this.tell();
    this.cut();
    if (hadFocus && fresh[0] instanceof HTMLElement) fresh[0].focus();
  }

  /** Drop the oldest elements above the bound. A cursor points behind them, so paging ends there and says so. */
  cut() {
    if (this.list.childElementCount <= MAX_SHOWN) return;
    while (this.list.childElementCount > MAX_SHOWN) this.list.lastElementChild?.remove();
    this.more.hidden = true;
    fill(this.note, h("p", { class: "feed-empty" }, `Older than the newest ${MAX_SHOWN}: `,
      h("button", { type: "button", onclick: () => this.restart() }, "Load again")));
  }

  /** Begin anew from the newest page; while a page is on its way, after that one. */
  restart() {
    this.isStale = this.more.disabled;
    if (this.isStale) return undefined;
    fill(this.list);
    this.known.clear();
    /** @type {any[]} newer items that are not shown yet */ this.waiting = [];
    this.dropped = 0; // of them
    this.tell();
    /** @type {string | null} */ this.next = null;
    return this.load();
  }

  /** Give an item that waits its new values; one on show has them already. @param {any} item */
  renew(item) {
    this.waiting = this.waiting.map((one) => (one.id === item.id ? item : one));
  }

  /** Take out an item that waits; one on show removes itself. @param {string} id */
  drop(id) {
    this.waiting = this.waiting.filter((item) => item.id !== id);
    this.tell();
  }
}

/** Grey lines that stand for what is on its way. */
const skeleton = () => h("div", { class: "skeleton", "aria-hidden": "true" }, h("i", {}), h("i", {}), h("i", {}));
