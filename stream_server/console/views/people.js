// @ts-check
/** The view People: a small social site on the server's API. See the contract of views in app.js. */

import { fill, h, icon, isolate, neighbour, shelf } from "../dom.js";
import { showLost } from "../lost.js";
import { placeOf } from "../place.js";
import { groupPage, groups, listPage, lists } from "../people/collections.js";
import { conversation, home, kept, mentions, tagPage } from "../people/home.js";
import { notifications } from "../people/notifications.js";
import { Live, Page } from "../people/page.js";
import { profile } from "../people/profile.js";
import { privacy, requests } from "../people/requests.js";
import { Site } from "../people/site.js";
import { subscriptions } from "../people/subscriptions.js";
import { talkPage, talks } from "../people/talks.js";
import { counted, refreshTimes, tagHref, userHref } from "../people/text.js";

/** @type {{name: string, icon: import("../dom.js").IconName, title: string}[]} */
const NAVIGATION = [
  { name: "home", icon: "home", title: "Home" },
  { name: "notifications", icon: "bell", title: "Notifications" },
  { name: "talks", icon: "mail", title: "Messages" },
  { name: "mentions", icon: "reply", title: "Mentions" },
  { name: "lists", icon: "list", title: "Lists" },
  { name: "groups", icon: "group", title: "Groups" },
  { name: "kept", icon: "star", title: "Bookmarks" },
  { name: "subscriptions", icon: "pin", title: "Subscriptions" },
  { name: "requests", icon: "knock", title: "Follow requests" },
  { name: "privacy", icon: "shield", title: "Blocked and muted" },
];
const TALK_TABS = ["talks", "requests"];
const MINUTE_MS = 60_000;
const MAX_LEFT = 5; // pages that are kept as they were left, for Back
const POST_KEYS = /** @type {Record<string, string>} */ ({ l: ".act-heart", r: ".act-reply", s: ".act-star", c: ".act-comment" });

/** Draw the page that the address names. @param {Page} page @param {string[]} path */
function draw(page, path) {
  const [name = "home", argument = "", more] = path;
  if (name.startsWith("@")) return profile(page, name.slice(1), path[1]);
  if (name === "status" && argument) return conversation(page, argument);
  if (name === "tag" && argument) return tagPage(page, argument);
  if (name === "lists") return argument ? listPage(page, argument, more) : lists(page);
  if (name === "groups") return argument ? groupPage(page, argument, more) : groups(page);
  if (name === "talks") return argument && !TALK_TABS.includes(argument) ? talkPage(page, argument) : talks(page, argument || undefined);
  if (name === "requests") return requests(page, argument || undefined);
  if (name === "privacy") return privacy(page, argument || undefined);
  const plain = /** @type {Record<string, (page: Page) => any>} */ ({ home, notifications, mentions, kept, subscriptions });
  return Object.hasOwn(plain, name) ? plain[name](page) : lost(page, path.join("/"));
}

/** @param {Page} page @param {string} name */
function lost(page, name) {
  const user = /** @type {[string, string][]} */ (/^\w{1,20}$/.test(name) ? [[userHref(name), `The user @${name}`]] : []);
  showLost(page.show("No such page").root, "page", name, [["#/people", "Home"], ...user]);
}

class People {
  /** @param {HTMLElement} root @param {any} app */
  constructor(root, app) {
    this.app = app;
    this.root = root;
    this.site = new Site(app);
    this.live = new Live(app, root);
    /** @type {Page | null} */ this.page = null;
    /** @type {string[]} */ this.path = [];
    this.entry = "";
    /** @type {Map<string, {page: Page, goBack: () => void}>} pages that were left, by the entries of the history, the last one at the end */
    this.left = new Map();
    this.content = h("div", { class: "people-content" });
    this.nav = h("nav", { class: "people-nav", "aria-label": "People" });
    this.site.onCounts = () => this.drawNav();
    this.site.reload = () => this.reload();
    this.trends = h("section", { class: "trends", "aria-labelledby": "trends-title", hidden: true });
    this.timer = setInterval(() => this.everyMinute(), MINUTE_MS);
    root.classList.add("people");
    fill(root, h("div", { class: "people-side" }, this.search(), this.nav, this.trends), this.content);
    this.listen();
    this.navigate(app.path, false);
    void this.loadCounts();
    void this.loadTrends();
  }

  everyMinute() {
    refreshTimes(this.root);
    if (!document.hidden && this.root.isConnected) void this.loadTrends();
  }

  /** Ask for the tags that more people use than an hour ago. Without an answer the last one stays, since nobody waits for it. */
  async loadTrends() {
    const answer = await this.site.get("/v1/trends", { count: 8 }).catch(() => null);
    if (!answer) return;
    this.trends.hidden = answer.trends.length === 0;
    fill(this.trends, h("h2", { id: "trends-title" }, "Trending now"), h("ol", { class: "trends-list" }, answer.trends.map((/** @type {any} */ { text, count }) =>
      h("li", {}, h("a", { href: tagHref(text) }, isolate(`#${text}`)), h("span", { class: "muted" }, counted(count, "person", "people"))))));
  }

  /** Keep the cards and the counts right, whatever page is shown. */
  listen() {
    const { live, site } = this;
    for (const kind of ["like", "unlike", "comment", "uncomment"]) live.on(kind, ({ status }) => { if (status?.likes !== undefined) site.renew(status.id, status); });
    live.on("like", ({ source, status }) => { if (source.id === site.me.id) site.setMark("likes", status.id, true); });
    live.on("unlike", ({ source, status }) => { if (source.id === site.me.id) site.setMark("likes", status.id, false); });
    live.on("post", ({ status }) => { if (status.original) site.renew(status.original.id, status.original); });
    live.on("edit", ({ status, left }) => { if (status) site.renew(status.id, status); else this.app.undo.take(`status-${left.id}`); });
    live.on("delete", ({ status }) => this.app.undo.take(`status-${status.id}`));
    live.on("block", ({ target }) => { if (target) this.app.undo.take(`user-${target.id}`); });
    live.on("notification", () => site.setCount("notifications", site.counts.notifications + 1));
    live.on("request", () => site.setCount("requests", site.counts.requests + 1));
    live.on("unrequest", () => site.setCount("requests", site.counts.requests - 1));
    live.on("message", ({ message }) => { if (message.uid !== site.me.id) site.setCount("talks", site.counts.talks + 1); });
    live.on("gap", () => {
      this.app.say("The server could not tell everything that happened meanwhile. The page was loaded again.", "warn");
      for (const { page } of this.left.values()) page.reload();
      site.reload();
      void this.loadCounts();
    });
    site.onTalkRead = () => void this.loadTalks();
  }

  async loadCounts() {
    const { site } = this;
    const asked = [
      site.loadMarks(),
      site.get("/v1/notifications", { count: 1 }).then((answer) => site.setCount("notifications", answer.unread)),
      site.get("/v1/users/me/requests", { count: 200 }).then((answer) => site.setCount("requests", answer.users.length)),
      this.loadTalks(),
    ];
    await Promise.allSettled(asked);
  }

  async loadTalks() {
    const { talks: found } = await this.site.get("/v1/talks", { count: 200 });
    this.site.setCount("talks", found.reduce((/** @type {number} */ sum, talk) => sum + talk.unread, 0));
  }

  /** Show what the address names; after Back, the page as it was left. @param {string[]} path @param {boolean} [focus]  put the focus on the title, as a new page would */
  navigate(path, focus = true) {
    this.leave();
    const left = this.left.get(this.app.entry);
    this.left.delete(this.app.entry);
    const isKept = left && !left.page.ended;
    this.path = path;
    this.entry = this.app.entry;
    this.page = this.site.page = isKept ? left.page : new Page(this.site, this.live);
    fill(this.content, this.page.root);
    this.drawNav();
    this.root.scrollTop = 0;
    if (isKept) {
      refreshTimes(this.page.root);
      this.app.title(this.page.title);
      return left.goBack();
    }
    void draw(this.page, path);
    if (focus) this.page.root.querySelector("h1")?.focus({ preventScroll: true });
  }

  /** Keep the page on show for Back; a talk begins at its end, so it is drawn anew. */
  leave() {
    const { page, entry } = this;
    if (!page || page.ended) return;
    if (page.root.matches(".page-talk")) return page.end();
    this.left.set(entry, { page, goBack: placeOf(page.root, this.root) });
    shelf.append(page.root);
    if (this.left.size <= MAX_LEFT) return;
    const [[oldest, first]] = this.left;
    this.left.delete(oldest);
    first.page.end();
  }

  reload() {
    this.page?.end();
    if (this.root.isConnected) this.navigate(this.path, false);
  }

  resume() {
    this.live.resume();
    if (this.entry !== this.app.entry || this.page?.ended) this.navigate(this.app.path);
    else this.app.title(this.page?.title);
  }

  drawNav() {
    const current = this.path?.[0] ?? "home";
    const { counts, me } = this.site;
    const link = (/** @type {string} */ name, /** @type {string} */ href, /** @type {any} */ sign, /** @type {string} */ title) =>
      h("a", { href, "aria-current": current === name ? "page" : null }, sign, h("span", {}, title),
        counts[name] ? h("span", { class: "badge" }, counts[name] > 99 ? "99+" : counts[name], h("span", { class: "visually-hidden" }, name === "requests" ? " open" : " unread")) : null);
    const [first, ...others] = NAVIGATION.map(({ name, icon: sign, title }) => link(name, name === "home" ? "#/people" : `#/people/${name}`, icon(sign), title));
    fill(this.nav, first, ...others.slice(0, 2), link(`@${me.login}`, userHref(me.login), icon("user"), "Profile"), ...others.slice(2));
    const shown = /** @type {HTMLElement | null} */ (this.nav.querySelector("[aria-current]"));
    if (shown) this.nav.scrollLeft = shown.offsetLeft - this.nav.offsetLeft - 12;
  }

  /** The field that finds a user by login, or a tag. */
  search() {
    const input = h("input", { type: "search", "aria-label": "Find a user or a #tag", placeholder: "username or #tag", autocapitalize: "none", autocomplete: "off", spellcheck: "false", class: "people-search" });
    const onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      const text = input.value.trim();
      if (text) this.app.go(text.startsWith("#") ? tagHref(text.slice(1)) : userHref(text.replace(/^@/, "")));
    };
    return h("form", { role: "search", class: "people-find", onsubmit }, input, h("button", { class: "quiet", "aria-label": "Find" }, icon("search")));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "/") {
      /** @type {HTMLElement | null} */ (this.root.querySelector(".people-search"))?.focus();
      return true;
    }
    if (event.key === ".") return this.newest();
    if (event.key === "j" || event.key === "k") {
      neighbour(this.root.querySelectorAll("article.status, article.notice"), event.key === "j" ? 1 : -1)?.focus();
      return true;
    }
    if (!Object.hasOwn(POST_KEYS, event.key)) return false;
    const button = document.activeElement?.closest("article.status")?.querySelector(POST_KEYS[event.key]);
    if (button instanceof HTMLElement) button.click();
    else this.app.say("Choose a post first, by j or k.", "warn");
    return true;
  }

  newest() {
    /** @type {HTMLElement | null} */ (this.root.querySelector(".feed-new:not([hidden])"))?.click();
    this.root.scrollTop = 0;
    return true;
  }

  unmount() {
    clearInterval(this.timer);
    for (const { page } of [this, ...this.left.values()]) page?.end();
    this.live.stop();
  }
}

/** @param {HTMLElement} root @param {any} app */
export const mount = (root, app) => new People(root, app);
