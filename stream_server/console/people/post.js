// @ts-check
/** One status as a card: who, what, where, what one can do with it, and its comments. */

import { entry, fill, h, icon, isolate, menu, number, outside } from "../dom.js";
import { draftPlace, form, formEnd, problemBox, told } from "../forms.js";
import { postEntries } from "../row_menu.js";
import { Composer, MAX_UNITS } from "./composer.js";
import { counted, face, richText, timeAgo, userHref, userLink, when } from "./text.js";

/** @typedef {import("./site.js").Site} Site */

export class PostCard {
  /** @param {Site} site @param {any} status @param {{detail?: boolean}} [options] */
  constructor(site, status, options = {}) {
    const isRepost = status.origin !== null && !status.message;
    this.site = site;
    /** What the card shows: a repost shows its original. @type {any} */
    this.status = isRepost ? (status.original ?? null) : status;
    this.write = options.detail ? when : timeAgo;
    this.problem = problemBox();
    this.slot = h("div", { class: "post-slot" });
    this.root = h("article", { class: ["status", options.detail && "post-detail"], tabindex: "-1", dataset: { status: status.id },
      "aria-label": `Post by @${(this.status ?? status).login}`, onrenew: (/** @type {CustomEvent} */ event) => this.renew(event.detail) }, isRepost && this.repostLine(status),
    this.status ? this.body(this.status) : h("p", { class: "muted" }, "The reposted status is deleted, or you may not see it."));
    if (this.status && options.detail) this.showComments(false);
    site.app.undo.tie(this.root, ...[status, this.status ?? status].flatMap(({ id, uid }) => [`status-${id}`, `user-${uid}`]));
  }

  /** @param {any} repost */
  repostLine({ id, uid, login }) {
    const undo = uid === this.site.me.id && h("button", { type: "button", class: "link", onclick: () => this.removePost(id, "Repost removed") }, "Undo repost");
    return h("p", { class: "post-context" }, icon("repost"), userLink(login), " reposted", undo);
  }

  /** @param {any} status */
  body(status) {
    this.content = content(status, this.write);
    return h("div", { class: "status-body" },
      h("a", { href: userHref(status.login), class: "post-face", tabindex: "-1", "aria-hidden": "true" }, face(status)),
      h("div", { class: "post-main" }, this.content, this.actions(status), this.problem, this.slot));
  }

  actions(status) {
    this.buttons = {
      reply: action("reply", "Reply", () => this.openComposer({ in_reply_to: status.id })),
      comments: action("comment", "Comment", () => this.showComments()),
      repost: action("repost", "Repost", () => this.repost()),
      quote: action("quote", "Quote", () => this.openComposer({ origin: status.id })),
      likes: action("heart", "Like", (event) => this.toggle("likes", event)),
      favorites: action("star", "Bookmark", (event) => this.toggle("favorites", event)),
    };
    this.renew(status);
    return h("div", { class: "post-actions", role: "group", "aria-label": "Actions" },
      ...Object.values(this.buttons).map((button) => button.root), this.menu(status));
  }

  menu(status) {
    const { site } = this;
    return menu("More", [
      entry("Open the conversation", () => site.app.go(`#/people/status/${status.id}`)),
      ...(status.uid === site.me.id ? [entry("Edit", () => this.openEditor()), entry("Delete", () => this.removePost(status.id, "Post deleted"), "danger")] : []),
      ...postEntries(site.app, { status }),
    ], "post-action");
  }

  /** Show whether the user likes and keeps the status, and newer counts if they are given. @param {any} [status] */
  renew(status) {
    const { site, buttons } = this;
    if (!buttons) return;
    for (const kind of /** @type {("likes" | "favorites")[]} */ (["likes", "favorites"])) buttons[kind].press(site.isMarked(kind, this.status.id));
    if (status?.id !== this.status.id) return;
    if ((status.edits ?? 0) > (this.status.edits ?? 0)) this.showVersion(status);
    const { likes, comments, reposts } = status;
    Object.assign(this.status, { likes, comments, reposts });
    buttons.comments.count(comments, "comment");
    buttons.repost.count(reposts, "repost");
    buttons.likes.count(likes, "like");
  }

  /** @param {"likes" | "favorites"} kind @param {MouseEvent} event */
  toggle(kind, event) {
    const { status, site } = this;
    return told(this.problem, () => toggleMark(site.app, kind, status, site.isMarked(kind, status.id), event, (on, answer) => {
      site.setMark(kind, status.id, on);
      if (answer?.likes !== undefined) site.renew(status.id, { ...status, likes: answer.likes });
    }));
  }

  async repost() {
    const { status, site } = this;
    if (this.isReposting) return; // a second click before the answer makes no second repost
    this.isReposting = true;
    await told(this.problem, async () => {
      const made = await site.write("POST", "/v1/statuses", { origin: status.id, group: status.group ?? undefined });
      if (made.original) site.renew(made.original.id, made.original);
      site.view.page?.onPosted(made);
      site.app.say("Reposted");
    });
    this.isReposting = false;
  }

  openComposer(draft) {
    const close = () => composer.root.isConnected && this.close(); // else the answer came late, and another form is open now
    const { group, login } = this.status; // what answers a post of a group stays in it
    const composer = new Composer(this.site.app, group ? { ...draft, group } : draft, {
      onPosted: (made) => { close(); this.site.view.page?.onPosted(made); this.site.app.say(draft.origin ? "Quoted" : "Replied"); },
      onCancel: close,
      hint: draft.origin ? `Quote @${login}` : `Reply to @${login}`,
    });
    fill(this.slot, composer.root);
    composer.text.focus();
  }

  /** Take away what is open below the post. */
  close() {
    fill(this.slot);
    this.root.focus();
  }

  /** Show the text of an edit in the place of the earlier one. What is being written below it stays. @param {any} status */
  showVersion(status) {
    Object.assign(this.status, status);
    const made = content(this.status, this.write);
    this.content.replaceWith(made);
    this.content = made;
  }

  /** The form that edits a post of the user. */
  openEditor() {
    const { site, status } = this;
    const text = h("textarea", { name: "message", rows: "3", dir: "auto", maxlength: MAX_UNITS, "aria-label": "The new text" });
    text.value = status.message;
    fill(this.slot, form({ class: "composer", "aria-label": "Edit the post" }, [text, problemBox(), formEnd("Save", () => this.close())], async (made, key) => {
      const body = { message: text.value };
      const edited = await site.write("PATCH", `/v1/statuses/${status.id}`, body, key.of(body));
      made.reset();
      this.close();
      site.renew(status.id, edited);
      site.app.say("Edited");
    }, { draft: draftPlace(site.app, "edit", status.id) }));
    text.focus();
  }

  showComments(focus = true) {
    if (this.comments?.root.isConnected && focus) return this.comments.focus();
    this.comments = comments(this.site, this.status);
    fill(this.slot, this.comments.root);
    if (focus) this.comments.focus();
  }

  /** Delete a status of the user. @param {string} id @param {string} text */
  removePost(id, text) {
    this.site.app.undo.later({ text, method: "DELETE", path: `/v1/statuses/${id}`, hides: `status-${id}` });
  }
}

/**
 * Likes or bookmarks a status, or ends that. The end of it can be undone, and so can what a key may have done by mistake.
 * @param {any} app @param {"likes" | "favorites"} kind @param {any} status @param {boolean} isOn @param {MouseEvent} event
 * @param {(on: boolean, answer?: any) => void} show draws it before the answer and with it, or as it was if it is undone or fails
 */
export async function toggleMark({ undo, client }, kind, status, isOn, event, show) {
  const path = `/v1/users/me/${kind}/${status.id}`;
  if (!isOn && undo.takeBack(path)) return;
  show(!isOn);
  const deed = { path, done: (/** @type {any} */ answer) => show(!isOn, answer), undone: () => show(isOn) };
  if (isOn) {
    undo.later({ ...deed, text: kind === "likes" ? "Like removed" : "Bookmark removed", method: "DELETE" });
  } else if (!event.detail) { // a key
    undo.later({ ...deed, text: `You ${kind === "likes" ? "like" : "keep"} the post of @${status.login}`, method: "PUT" });
  } else {
    await client.request("PUT", path).then(deed.done, (/** @type {unknown} */ error) => {
      show(false);
      throw error;
    });
  }
}

/** The comments under a status, the oldest first, and the form that adds one. @param {Site} site @param {any} status */
function comments(site, status) {
  const path = `/v1/statuses/${status.id}/comments`;
  let next = /** @type {string | null} */ (null);
  const list = h("ul", { class: "comments-list" });
  const problem = problemBox();
  const load = () => told(problem, async () => {
    const page = await site.get(path, { before: next });
    for (const comment of page.comments) list.querySelector(`[data-goes=comment-${comment.id}]`)?.remove(); // one's own, which was added below
    list.append(...page.comments.map((comment) => commentRow(site, status, comment)));
    next = page.next;
    more.hidden = next === null;
  });
  const more = h("button", { type: "button", hidden: true, onclick: load }, "Show more comments");
  const input = h("input", { name: "message", "aria-label": "Your comment", placeholder: "Comment", autocomplete: "off", dir: "auto", maxlength: MAX_UNITS });
  const add = form({}, [problem, h("div", { class: "comments-form" }, input, h("button", {}, "Comment"))], async (made, key) => {
    const message = input.value;
    list.append(commentRow(site, status, await site.write("POST", path, { message }, key.of(message))));
    made.reset();
  }, { draft: draftPlace(site.app, "comment", status.id) });
  void load();
  return { root: h("section", { class: "comments", "aria-label": "Comments" }, list, more, h("p", { class: "muted small" }, "A comment stands only here, below the post. A reply is a post of your own."), add), focus: () => input.focus() };
}

/** @param {Site} site @param {any} status @param {any} comment */
function commentRow(site, status, comment) {
  const sign = `comment-${comment.id}`;
  const remove = () => site.app.undo.later({ text: "Comment deleted", method: "DELETE", path: `/v1/comments/${comment.id}`, hides: sign });
  return site.app.undo.tie(h("li", { class: "comment" },
    h("div", { class: "post-header" }, userLink(comment.login, { class: "post-author" }), h("span", { class: "post-time" }, timeAgo(comment.posted)),
      [comment.uid, status.uid].includes(site.me.id) && h("button", { type: "button", class: "quiet", "aria-label": "Delete this comment", onclick: remove }, icon("trash"))),
    richText(comment.message, comment.entities)), sign);
}

/** What shows the values of a status that an edit may change, and what stands between them. @param {any} status @param {(iso: string) => Node} write its time */
const content = (status, write) => h("div", { class: "post-content" }, header(status, write),
  status.in_reply_to && h("p", { class: "post-context" }, icon("reply"), h("a", { href: `#/people/status/${status.id}` }, "a reply in a conversation")),
  richText(status.message, status.entities),
  status.media?.length > 0 && h("ul", { class: "post-media" }, status.media.map((item) => h("li", {}, icon("link"), outside(item.url, item.type)))),
  place(status), quote(status));

function header(status, write) {
  return h("header", { class: "post-header" }, userLink(status.login, { class: "post-author" }),
    h("a", { class: "post-time", href: `#/people/status/${status.id}` }, write(status.posted)),
    status.edited ? h("span", { class: "post-lang", title: `edited at ${status.edited}` }, "edited") : null,
    status.group ? h("a", { class: "pill", href: `#/people/groups/${status.group}` }, icon("group"), "group") : null,
    status.lang && status.lang !== "und" ? h("span", { class: "post-lang", title: "language" }, status.lang) : null);
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

/** A button with a drawing, a count and a pressed state. @param {import("../dom.js").IconName} name @param {string} label @param {(event: MouseEvent) => void} onclick @param {string} [look] classes */
export function action(name, label, onclick, look = "post-action") {
  const root = h("button", { type: "button", class: look, "aria-label": label, title: label, dataset: { act: name }, onclick }, icon(name));
  return {
    root,
    /** @param {number} count @param {string} noun */
    count(count, noun) {
      fill(root, icon(name), count > 0 && h("span", { class: "post-count" }, number(count)));
      root.setAttribute("aria-label", count ? `${label}, ${counted(count, noun)}` : label);
    },
    /** @param {boolean} on */
    press: (on) => root.setAttribute("aria-pressed", String(on)),
  };
}
