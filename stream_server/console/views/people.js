// @ts-check
/** The view People: a small social site on the server's API. See the contract of views in app.js. */

import { fill, h, icon, isolate, neighbour, shelf, showLost } from "../dom.js";
import { account } from "../people/account.js";
import { groupPage, groups, listPage, lists } from "../people/collections.js";
import { peopleSearch } from "../people/find.js";
import { conversation, home, kept, mentions, tagPage } from "../people/home.js";
import { moderation } from "../people/moderation.js";
import { notifications } from "../people/notifications.js";
import { Live, Page } from "../people/page.js";
import { profile } from "../people/profile.js";
import { privacy, requests } from "../people/requests.js";
import { rules } from "../people/rules.js";
import { Site } from "../people/site.js";
import { subscriptions } from "../people/subscriptions.js";
import { talkPage, talks } from "../people/talks.js";
import { counted, refreshTimes, tagHref, userHref } from "../people/text.js";
import { placeOf } from "../place.js";

/** @type {[string, import("../dom.js").IconName, string][]} names in the address, "@" for the user's own, with drawings and titles */
const NAVIGATION = [
  ["home", "home", "Home"],
  ["notifications", "bell", "Notifications"],
  ["talks", "mail", "Messages"],
  ["@", "user", "Profile"],
  ["mentions", "reply", "Mentions"],
  ["lists", "list", "Lists"],
  ["groups", "group", "Groups"],
  ["kept", "star", "Bookmarks"],
  ["rules", "edit", "Saved rules"],
  ["subscriptions", "feed", "Subscriptions"],
  ["requests", "knock", "Follow requests"],
  ["privacy", "shield", "Blocked and muted"],
];
const OF_IDS = ["status", "lists", "groups", "talks"]; // pages that have an id in the address
const TALK_TABS = ["talks", "requests"];
const MINUTE_MS = 60_000;
const MAX_LEFT = 5; // pages that are kept as they were left, for Back
const POST_KEYS = /** @type {Record<string, string>} */ ({ l: "heart", r: "reply", s: "star", c: "comment" });

/** The pages by their names in the address, each with what the address has behind the name. @type {Record<string, (page: Page, argument?: string, more?: string) => any>} */
const PAGES = {
  home, notifications, mentions, kept, rules, subscriptions, requests, privacy, account, moderation,
  status: (page, id) => (id ? conversation(page, id) : lost(page, "status")),
  tag: (page, tag) => (tag ? tagPage(page, tag) : lost(page, "tag")),
  lists: (page, id, tab) => (id ? listPage(page, id, tab) : lists(page)),
  groups: (page, id, tab) => (id ? groupPage(page, id, tab) : groups(page)),
  talks: (page, part) => (part && !TALK_TABS.includes(part) ? talkPage(page, part) : talks(page, part)),
};

/** Draw the page that the address names. @param {Page} page @param {string[]} path */
function draw(page, [name = "home", ...others]) {
  const [argument, more] = others.map((part) => part || undefined);
  if (name.startsWith("@")) return profile(page, name.slice(1), argument);
  const isRight = Object.hasOwn(PAGES, name) && (!argument || !OF_IDS.includes(name) || TALK_TABS.includes(argument) || /^\d{1,20}$/.test(argument));
  return isRight ? PAGES[name](page, argument, more) : lost(page, [name, ...others].join("/"));
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
    this.site = new Site(app, this);
    this.live = new Live(app, root);
    /** @type {Page | null} */ this.page = null;
    /** @type {string[]} */ this.path = [];
    this.entry = "";
    /** @type {Map<string, {page: Page, goBack: () => void}>} pages that were left, by the entries of the history, the last one at the end */
    this.left = new Map();
    this.content = h("div", { class: "people-content" });
    this.trendsAt = 0;
    this.nav = h("nav", { class: "people-nav", "aria-label": "People" });
    this.trends = h("section", { class: "trends", "aria-labelledby": "trends-title" });
    root.classList.add("people");
    fill(root, h("div", { class: "people-side" }, peopleSearch(this.site), this.nav, this.trends), this.content);
    this.listen();
    this.navigate(app.path, false);
    void this.site.loadCounts();
    this.tick();
  }

  /** Ask for the tags that more people use than an hour ago. Without an answer the last one stays, since nobody waits for it. */
  async loadTrends() {
    this.trendsAt = Date.now();
    const answer = await this.site.get("/v1/trends", { count: 8 }).catch(() => null);
    if (!answer) return;
    fill(this.trends, h("h2", { id: "trends-title" }, "Trending now"), h("ol", { class: "trends-list" }, answer.trends.map((/** @type {any} */ { text, count }) =>
      h("li", {}, h("a", { href: tagHref(text) }, isolate(`#${text}`)), h("span", { class: "muted" }, counted(count, "person", "people"))))));
  }

  /** Keep the cards and the counts right, whatever page is shown. */
  listen() {
    const { live, site } = this;
    for (const kind of ["like", "unlike", "comment", "uncomment"]) live.on(kind, ({ status }) => { if (status?.likes !== undefined) site.renew(status.id, status); });
    for (const kind of ["like", "unlike"]) live.on(kind, ({ source, status }) => { if (source.id === site.me.id) site.setMark("likes", status.id, kind === "like"); });
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
      this.reload();
      void site.loadCounts();
    });
  }

  /** Show what the address names; after Back, the page as it was left. @param {string[]} path @param {boolean} [focus]  put the focus on the title, as a new page would */
  navigate(path, focus = true) {
    this.leave();
    const left = this.left.get(this.app.entry);
    this.left.delete(this.app.entry);
    const isKept = left && !left.page.ended;
    this.path = path;
    this.entry = this.app.entry;
    this.page = isKept ? left.page : new Page(this.site, this.live);
    fill(this.content, this.live.end, this.page.root);
    this.drawNav();
    this.root.scrollTop = 0;
    if (isKept) {
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
    const hadFocus = this.content.contains(document.activeElement);
    this.page?.end();
    if (this.root.isConnected) this.navigate(this.path, hadFocus);
  }

  resume() {
    this.live.resume();
    if (this.entry !== this.app.entry || this.page?.ended) this.navigate(this.app.path);
    else this.app.title(this.page?.title);
  }

  tick() {
    this.live.show();
    refreshTimes(this.root);
    if (Date.now() - this.trendsAt > MINUTE_MS) void this.loadTrends();
  }

  drawNav() {
    const current = this.path[0] ?? "home";
    const { counts, me } = this.site;
    fill(this.nav, NAVIGATION.map(([entry, sign, title]) => {
      const name = entry === "@" ? `@${me.login}` : entry;
      const badge = counts[name] > 0 && h("span", { class: "badge" }, counts[name] > 99 ? "99+" : counts[name], h("span", { class: "visually-hidden" }, name === "requests" ? " open" : " unread"));
      return h("a", { href: name === "home" ? "#/people" : `#/people/${name}`, "aria-current": current === name ? "page" : null }, icon(sign), h("span", {}, title), badge);
    }));
    const shown = /** @type {HTMLElement | null} */ (this.nav.querySelector("[aria-current]"));
    if (shown) this.nav.scrollLeft = shown.offsetLeft - this.nav.offsetLeft - 12;
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether it means something here */
  key({ key }) {
    const find = (/** @type {string} */ selector) => /** @type {HTMLElement | null} */ (this.root.querySelector(selector));
    const act = Object.hasOwn(POST_KEYS, key) && POST_KEYS[key];
    const button = act && document.activeElement?.closest("article.status")?.querySelector(`[data-act=${act}]`);
    if (key === "/") find(".people-search")?.focus();
    else if (key === ".") {
      find(".feed-new:not(:empty)")?.click();
      this.root.scrollTop = 0;
    } else if (key === "j" || key === "k") neighbour(this.root.querySelectorAll("article.status, article.notice"), key === "j" ? 1 : -1)?.focus();
    else if (!act) return false;
    else if (button instanceof HTMLElement) button.click();
    else this.app.say("Choose a post first, by j or k.", "warn");
    return true;
  }

  unmount() {
    for (const { page } of [this, ...this.left.values()]) page?.end();
    this.live.stream.close();
  }
}

/** @param {HTMLElement} root @param {any} app */
export const mount = (root, app) => new People(root, app);
