// @ts-check
/** What one page of the people view gets: a place for its parts, and listeners that end with it. */

import { fill, h } from "../dom.js";
import { explain } from "../forms.js";
import { Feed } from "./feed.js";
import { PostCard } from "./post.js";

/** @typedef {import("./site.js").Site} Site */

export class Page {
  /** @param {Site} site @param {import("./live.js").Live} live */
  constructor(site, live) {
    this.site = site;
    this.live = live;
    this.ended = false;
    /** @type {(() => void)[]} */
    this.cleanups = [];
    this.root = h("div", { class: "page" });
  }

  /** Call `listener` for live events of a kind until the page ends. @param {string} kind @param {(event: any) => void} listener */
  on(kind, listener) {
    this.cleanups.push(this.live.on(kind, listener));
  }

  end() {
    this.ended = true;
    this.cleanups.splice(0).forEach((cleanup) => cleanup());
  }

  /** Draw the title and the parts. @param {string} title @param {...any} parts */
  show(title, ...parts) {
    const hadFocus = this.root.querySelector("h1") === document.activeElement && document.activeElement !== null;
    const heading = h("h1", { class: "page-title", tabindex: "-1" }, h("bdi", {}, title));
    fill(this.root, heading, ...parts);
    if (hadFocus) heading.focus({ preventScroll: true });
    this.site.app.title(title);
    return this;
  }

  /** Await something for the page; what goes wrong is told in its place. @template T @param {() => Promise<T>} work @param {Element} [place] @returns {Promise<T | undefined>} */
  async attempt(work, place) {
    if (place) fill(place);
    try {
      return await work();
    } catch (error) {
      if (this.ended) return undefined;
      const text = h("p", { class: "problem", role: "alert" }, explain(error));
      if (place) fill(place, text);
      else this.root.append(text);
      return undefined;
    }
  }

  /**
   * Return a feed of what a path answers with, page by page, in its member `noun`.
   * @param {string} path @param {string} noun @param {{label: string, empty: string, query?: any, noun?: [string, string]}} options @param {(item: any) => Element} render
   */
  feed(path, noun, options, render) {
    return new Feed({
      ...options,
      load: async (before) => {
        const page = await this.site.get(path, { ...options.query, before });
        return { items: page[noun], next: page.next };
      },
      render,
    }).start();
  }

  /** Return a feed of statuses from a path. @param {string} path @param {{label: string, empty: string, query?: any}} options */
  statuses(path, options) {
    return this.feed(path, "statuses", { ...options, noun: ["post", "posts"] }, (status) => new PostCard(this.site, status).root);
  }

  /** Return a feed of users from a path. @param {string} path @param {{label: string, empty: string}} options @param {(user: any) => Element} render */
  users(path, options, render) {
    return this.feed(path, "users", options, (user) => {
      this.site.remember(user);
      return render(user);
    });
  }
}
