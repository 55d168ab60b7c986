// @ts-check
/** What one page of the people view gets: a place for its parts, and what the user's stream tells until the page ends. */

import { fill, h, isolate } from "../dom.js";
import { problemBox, told } from "../forms.js";
import { describe, showWorst } from "../voice.js";
import { Feed } from "./feed.js";
import { PostCard } from "./post.js";

/** The user's own stream, which tells all pages what happens. It comes back by itself where it was. */
export class Live extends EventTarget {
  /** @param {any} app @param {HTMLElement} root of the view, which tells of the connection while it is on show */
  constructor(app, root) {
    super();
    this.app = app;
    this.root = root;
    this.words = h("span", {});
    this.end = h("p", { class: "problem row", hidden: true }, this.words, h("button", { type: "button", onclick: () => (this.resume(), root.focus()) }, "Retry"));
    this.start("");
  }

  /** @param {string} since a cursor, of a stream that has ended */
  start(since) {
    this.stream = this.app.client.stream({}, {
      path: "/v1/stream/user", since,
      onMessage: (message) => this.dispatchEvent(new CustomEvent(message.kind, { detail: message })),
      onState: () => this.show(),
    });
  }

  /** Call `listener` for each message of a kind. @param {string} kind @param {(message: any) => void} listener @param {AbortSignal} [signal] ends this */
  on(kind, listener, signal) {
    this.addEventListener(kind, (/** @type {any} */ event) => listener(event.detail), { signal });
  }

  /** Tells of the connection again, and goes on where it ended. */
  resume() {
    if (this.stream.isFinal) this.start(this.stream.cursor);
    this.show();
  }

  show() {
    this.end.hidden = !this.stream.isFinal;
    this.words.textContent = describe(this.stream)[1];
    if (this.root.isConnected) showWorst(this.app, [this.stream]);
  }
}

/**
 * Return links to the parts of a page, and the part that the address names, or else the first.
 * @param {string} href of the page @param {string | undefined} wanted @param {Record<string, [string, () => any]>} parts the title and the content of each
 */
export function tabbed(href, wanted, parts) {
  const shown = wanted !== undefined && Object.hasOwn(parts, wanted) ? wanted : Object.keys(parts)[0];
  const lost = wanted !== undefined && wanted !== shown && h("p", { class: "problem" }, "There is no part ", isolate(wanted.slice(0, 80)), ".");
  const links = Object.entries(parts).map(([name, [title]]) => h("a", { href: `${href}/${name}`, "aria-current": name === shown ? "page" : null }, title));
  return [lost, h("nav", { class: "subtabs", "aria-label": "Parts of this page" }, links), parts[shown][1]()];
}

export class Page {
  /** @param {import("./site.js").Site} site @param {Live} live */
  constructor(site, live) {
    this.site = site;
    this.live = live;
    this.leaving = new AbortController();
    this.title = "";
    /** What it does with a status that the user has just posted. @type {(status: any) => void} */
    this.onPosted = () => {};
    this.root = h("div", { class: "page" });
    this.problem = problemBox();
  }

  get ended() {
    return this.leaving.signal.aborted;
  }

  /** Call `listener` for live events of a kind until the page ends. @param {string} kind @param {(event: any) => void} listener */
  on(kind, listener) {
    this.live.on(kind, listener, this.leaving.signal);
  }

  /** Draw the title and the parts. @param {string} title @param {...any} parts */
  show(title, ...parts) {
    const hadFocus = this.root.querySelector("h1") === document.activeElement && document.activeElement !== null;
    const heading = h("h1", { class: "page-title", tabindex: "-1" }, h("bdi", {}, title));
    fill(this.problem);
    fill(this.root, heading, ...parts, this.problem);
    if (hadFocus) heading.focus({ preventScroll: true });
    this.title = title;
    if (this.root.isConnected) this.site.app.title(title);
    return this;
  }

  end() {
    this.leaving.abort();
    this.root.remove();
  }

  /** Draw it anew, now or when Back leads to it. */
  reload() {
    if (this.root.isConnected) this.site.view.reload();
    else this.end();
  }

  /** Await something for the page; what goes wrong is told in a place of `problemBox`. @template T @param {() => Promise<T>} work @param {Element} [place] at first below all parts @returns {Promise<T | undefined>} */
  async attempt(work, place = this.problem) {
    let result;
    await told(place, async () => { result = await work(); });
    return result;
  }

  /**
   * Return a feed of what a path answers with, page by page, in its member `noun`.
   * @param {string} path @param {string} noun
   * @param {{label: string, empty: string, query?: any, noun?: string, heed?: (answer: any) => any}} options
   *   `query` is read anew for each page; `heed` is awaited with each answer before its items are drawn
   * @param {(item: any) => Element} render
   */
  feed(path, noun, options, render) {
    const { me, app: { undo } } = this.site;
    return new Feed({
      ...options,
      get empty() { return undo.adding(path.replace(me.id, "me")).some(({ item }) => !item) ? "" : options.empty; }, // what waits is told as done; an item is in the list
      load: async (before) => {
        const answer = await this.site.get(path, { ...options.query, before });
        await options.heed?.(answer);
        return { items: answer[noun], next: answer.next ?? null };
      },
      render,
    });
  }

  /** Return a feed of statuses from a path. @param {string} path @param {{label: string, empty: string, query?: any}} options @param {(status: any) => boolean} [belongs] whether one that comes live goes into it; without this, it is not live */
  statuses(path, options, belongs) {
    const feed = this.feed(path, "statuses", { ...options, noun: "post" }, (status) => new PostCard(this.site, status).root);
    if (!belongs) return feed;
    this.onPosted = (status) => { if (belongs(status)) feed.announce(status, status.uid === this.site.me.id); };
    this.on("post", ({ status }) => this.onPosted(status));
    this.on("edit", ({ status, left }) => (status ? feed.renew(status) : feed.drop(left.id)));
    this.on("delete", ({ status }) => feed.drop(status.id));
    return feed;
  }

  /** Return a feed of users from a path. @param {string} path @param {{label: string, empty: string}} options @param {(user: any) => Element} render */
  users(path, options, render) {
    return this.feed(path, "users", options, (user) => render(this.site.remember(user)));
  }
}
