// @ts-check
/** The comments under a status, the oldest first, and the form that adds one. */

import { fill, h, icon } from "../dom.js";
import { explain } from "../session.js";
import { RetryKey } from "./site.js";
import { richText, timeAgo, userLink } from "./text.js";

/** @typedef {Record<string, any>} Json */

export class Comments {
  /** @param {import("./site.js").Site} site @param {Json} status */
  constructor(site, status) {
    this.site = site;
    this.status = status;
    /** @type {string | null} */
    this.next = null;
    this.key = new RetryKey();
    this.list = h("ul", { class: "comments-list" });
    this.problem = h("p", { class: "problem", role: "alert" });
    this.more = h("button", { type: "button", hidden: true, onclick: () => this.load() }, "Show more comments");
    this.input = h("input", { name: "message", "aria-label": "Your comment", placeholder: "Comment", autocomplete: "off", dir: "auto" });
    this.form = h("form", { class: "comments-form" }, this.input, h("button", {}, "Comment"));
    this.form.addEventListener("submit", (/** @type {Event} */ event) => { event.preventDefault(); void this.post(); });
    this.root = h("section", { class: "comments", "aria-label": "Comments" }, this.list, this.more, this.problem, this.form);
  }

  start() {
    return this.load();
  }

  focus() {
    this.input.focus();
  }

  async load() {
    await this.attempt(async () => {
      const page = await this.site.get(`/v1/statuses/${this.status.id}/comments`, { before: this.next });
      this.list.append(...page.comments.map((/** @type {Json} */ comment) => this.row(comment)));
      this.next = page.next;
      this.more.hidden = page.next === null;
    });
  }

  async post() {
    const message = this.input.value;
    await this.attempt(async () => {
      const made = await this.site.write("POST", `/v1/statuses/${this.status.id}/comments`, { message }, this.key.of(message));
      this.key.done();
      this.input.value = "";
      this.list.append(this.row(made));
    });
  }

  /** @param {Json} comment */
  row(comment) {
    const mayDelete = [comment.uid, this.status.uid].includes(this.site.me.id);
    const row = h("li", { class: "comment" },
      h("div", { class: "post-header" }, userLink(comment.login, { class: "post-author" }), h("span", { class: "post-time" }, timeAgo(comment.posted)),
        mayDelete ? h("button", { type: "button", class: "quiet", "aria-label": "Delete this comment", onclick: () => this.remove(comment) }, icon("trash")) : null),
      richText(comment.message, comment.entities));
    return this.site.app.undo.tie(row, `comment-${comment.id}`);
  }

  /** @param {Json} comment */
  remove(comment) {
    this.site.app.undo.later({ text: "Comment deleted", method: "DELETE", path: `/v1/comments/${comment.id}`, hides: `comment-${comment.id}` });
  }

  /** @param {() => Promise<void>} work */
  async attempt(work) {
    fill(this.problem);
    try {
      await work();
    } catch (error) {
      fill(this.problem, explain(error));
    }
  }
}
