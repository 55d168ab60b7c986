// @ts-check
/** One status as a card: who, what, where, and what one can do with it. */

import { fill, h, icon, isolate, outside } from "../dom.js";
import { entry, menu } from "../menu.js";
import { problemBox, told } from "../forms.js";
import { Composer } from "./composer.js";
import { Comments } from "./comments.js";
import { report } from "./report.js";
import { counted, face, richText, timeAgo, userHref, userLink } from "./text.js";

/** @typedef {import("./site.js").Site} Site */

export class PostCard {
  /** @param {Site} site @param {any} status @param {{detail?: boolean}} [options] */
  constructor(site, status, options = {}) {
    const isRepost = status.origin !== null && !status.message;
    this.site = site;
    this.outer = status;
    /** What the card shows: a repost shows its original. @type {any} */
    this.status = isRepost ? (status.original ?? null) : status;
    this.isRepost = isRepost;
    this.problem = problemBox();
    this.slot = h("div", { class: "post-slot" });
    this.root = h("article", { class: ["status", options.detail && "post-detail"], tabindex: "-1", dataset: { status: status.id },
      "aria-label": `Post by @${(this.status ?? status).login}` }, isRepost ? this.repostLine() : null);
    if (this.status) this.draw(this.status, options.detail ?? false);
    else this.root.append(h("p", { class: "muted" }, "The reposted status is deleted, or you may not see it."));
    this.uids = new Set([status.uid, this.status?.uid ?? status.uid]);
    for (const id of this.ids()) site.addCard(id, this);
    site.app.undo.tie(this.root, ...[...this.ids()].map((id) => `status-${id}`), ...[...this.uids].map((uid) => `user-${uid}`));
  }

  ids() {
    return new Set([this.outer.id, this.status?.id ?? this.outer.id]);
  }

  repostLine() {
    const own = this.outer.uid === this.site.me.id;
    const undo = own ? h("button", { type: "button", class: "link", onclick: () => this.removePost(this.outer.id, "Repost removed") }, "Undo repost") : null;
    return h("p", { class: "post-context" }, icon("repost"), userLink(this.outer.login), " reposted", undo);
  }

  /** @param {any} status @param {boolean} detail */
  draw(status, detail) {
    this.root.append(
      h("div", { class: "status-body" },
        h("a", { href: userHref(status.login), class: "post-face", tabindex: "-1", "aria-hidden": "true" }, face(status)),
        h("div", { class: "post-main" },
          header(status), context(status), richText(status.message, status.entities), media(status), place(status),
          quote(status), this.actions(status), this.problem, this.slot)));
    if (detail) this.showComments(false);
  }

  actions(status) {
    this.buttons = {
      reply: action("reply", "Reply", () => this.openComposer({ in_reply_to: status.id })),
      comments: action("comment", "Comment", () => this.showComments()),
      repost: action("repost", "Repost", () => this.repost()),
      quote: action("quote", "Quote", () => this.openComposer({ origin: status.id })),
      likes: action("heart", "Like", () => this.toggle("likes")),
      favorites: action("star", "Bookmark", () => this.toggle("favorites")),
    };
    this.showCounts(status);
    this.mark();
    return h("div", { class: "post-actions", role: "group", "aria-label": "Actions" },
      ...Object.values(this.buttons).map((button) => button.root), this.menu(status));
  }

  menu(status) {
    const { site } = this;
    const { uid, login } = status;
    const hide = (/** @type {string} */ relation, /** @type {string} */ text) => () =>
      site.app.undo.later({ text, method: "PUT", path: `/v1/users/me/${relation}/${uid}`, hides: `user-${uid}`, done: () => site.hideUser(uid) });
    const others = [
      entry(`Mute @${login}`, hide("mutes", `@${login} is muted`)),
      entry(`Block @${login}`, hide("blocks", `@${login} is blocked`)),
      entry("Report …", () => report(site, { status: status.id }, this.slot)),
    ];
    return menu("More", [
      entry("Open the conversation", () => site.app.go(`#/people/status/${status.id}`)),
      ...(uid === site.me.id ? [entry("Delete", () => this.removePost(status.id, "Post deleted"), "danger")] : others),
    ], "post-action");
  }

  showCounts(status) {
    this.buttons?.comments.count(status.comments, "comment");
    this.buttons?.repost.count(status.reposts, "repost");
    this.buttons?.likes.count(status.likes, "like");
  }

  /** Show newer counters. @param {any} status */
  update(status) {
    if (!this.status || status.id !== this.status.id) return;
    const { likes, comments, reposts } = status;
    Object.assign(this.status, { likes, comments, reposts });
    this.showCounts(this.status);
  }

  /** Show whether the user likes and keeps the status. */
  mark() {
    if (!this.status) return;
    this.buttons?.likes.press(this.site.isMarked("likes", this.status.id));
    this.buttons?.favorites.press(this.site.isMarked("favorites", this.status.id));
  }

  /** @param {"likes" | "favorites"} kind */
  async toggle(kind) {
    const { status, site } = this;
    if (!status) return;
    const path = `/v1/users/me/${kind}/${status.id}`;
    const show = (/** @type {boolean} */ on, answer) => {
      site.setMark(kind, status.id, on);
      if (answer?.likes !== undefined) site.updateCards({ ...status, likes: answer.likes });
    };
    if (site.isMarked(kind, status.id)) {
      const text = kind === "likes" ? "Like removed" : "Bookmark removed";
      site.app.undo.later({ text, method: "DELETE", path, done: (answer) => show(false, answer), undone: () => show(true, null) });
      return show(true, null); // whose hearts and stars are drawn without what waits
    }
    show(true, null);
    if (await told(this.problem, async () => show(true, await site.write("PUT", path)))) show(false, null);
  }

  async repost() {
    const { status, site } = this;
    if (!status) return;
    await told(this.problem, async () => {
      const made = await site.write("POST", "/v1/statuses", { origin: status.id, group: status.group ?? undefined });
      if (made.original) site.updateCards(made.original);
      site.onPosted(made);
      site.app.say("Reposted");
    });
  }

  openComposer(draft) {
    const close = () => {
      if (!composer.root.isConnected) return; // the answer came late, and another form is open now
      fill(this.slot);
      this.root.focus();
    };
    const { group } = this.status ?? {}; // what answers a post of a group stays in it
    const composer = new Composer(this.site.app, group ? { ...draft, group } : draft, {
      onPosted: (made) => { close(); this.site.onPosted(made); this.site.app.say(draft.origin ? "Quoted" : "Replied"); },
      onCancel: close,
      hint: draft.origin ? `Quote @${this.status?.login}` : `Reply to @${this.status?.login}`,
    });
    fill(this.slot, composer.root);
    composer.focus();
  }

  showComments(focus = true) {
    if (!this.status) return;
    if (this.comments?.root.isConnected && focus) return this.comments.focus();
    this.comments = new Comments(this.site, this.status);
    fill(this.slot, this.comments.root);
    void this.comments.load();
    if (focus) this.comments.focus();
  }

  /** Delete a status of the user. @param {string} id @param {string} text */
  removePost(id, text) {
    const { site } = this;
    site.app.undo.later({ text, method: "DELETE", path: `/v1/statuses/${id}`, hides: `status-${id}`, done: () => site.removeCards(id) });
  }

  remove() {
    for (const id of this.ids()) this.site.dropCard(id, this);
    this.root.remove();
  }
}

function header(status) {
  return h("header", { class: "post-header" }, userLink(status.login, { class: "post-author" }),
    h("a", { class: "post-time", href: `#/people/status/${status.id}` }, timeAgo(status.posted)),
    status.group ? h("a", { class: "pill", href: `#/people/groups/${status.group}` }, icon("group"), "group") : null,
    status.lang && status.lang !== "und" ? h("span", { class: "post-lang", title: "language" }, status.lang) : null);
}

function context(status) {
  if (!status.in_reply_to) return null;
  return h("p", { class: "post-context" }, icon("reply"), h("a", { href: `#/people/status/${status.id}` }, "a reply in a conversation"));
}

function media(status) {
  if (!status.media?.length) return null;
  return h("ul", { class: "post-media" }, ...status.media.map((item) => h("li", {}, icon("link"), outside(item.url, item.type))));
}

/** Where a status was posted, or null. */
export function place(status) {
  if (!status.place && !status.location) return null;
  const point = status.location ? `${status.location.lat.toFixed(2)}, ${status.location.lon.toFixed(2)}` : "";
  return h("p", { class: "post-place", title: point }, icon("pin"), isolate(status.place?.name ?? point));
}

/** The quoted status, as a small card without actions, or null. @param {any} status @param {(iso: string) => Node} [when] how its time is written */
export function quote(status, when = timeAgo) {
  if (!status.origin || !status.message) return null;
  const original = status.original;
  if (!original) return h("p", { class: "post-quote muted" }, "The quoted status is deleted, or you may not see it.");
  return h("div", { class: "post-quote" },
    h("header", { class: "post-header" }, userLink(original.login, { class: "post-author" }),
      h("a", { class: "post-time", href: `#/people/status/${original.id}` }, when(original.posted))),
    richText(original.message, original.entities));
}

/** A button with a drawing, a count and a pressed state. @param {import("../dom.js").IconName} name @param {string} label @param {() => void} onclick */
function action(name, label, onclick) {
  const number = h("span", { class: "post-count" });
  const root = h("button", { type: "button", class: ["post-action", `act-${name}`], "aria-label": label, title: label, onclick }, icon(name), number);
  return {
    root,
    /** @param {number} count @param {string} noun */
    count(count, noun) {
      number.textContent = count ? String(count) : "";
      root.setAttribute("aria-label", count ? `${label}, ${counted(count, noun)}` : label);
    },
    /** @param {boolean} on */
    press: (on) => root.setAttribute("aria-pressed", String(on)),
  };
}
