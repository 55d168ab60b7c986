// @ts-check
/** The comments under a status, the oldest first, and the form that adds one. */

import { h, icon } from "../dom.js";
import { form, problemBox, told } from "../forms.js";
import { RetryKey } from "./site.js";
import { richText, timeAgo, userLink } from "./text.js";

export class Comments {
  /** @param {import("./site.js").Site} site @param {any} status */
  constructor(site, status) {
    this.site = site;
    this.status = status;
    /** @type {string | null} */
    this.next = null;
    this.key = new RetryKey();
    this.list = h("ul", { class: "comments-list" });
    this.problem = problemBox();
    this.more = h("button", { type: "button", hidden: true, onclick: () => this.load() }, "Show more comments");
    this.input = h("input", { name: "message", "aria-label": "Your comment", placeholder: "Comment", autocomplete: "off", dir: "auto" });
    this.root = h("section", { class: "comments", "aria-label": "Comments" }, this.list, this.more,
      form({}, [this.problem, h("div", { class: "comments-form" }, this.input, h("button", {}, "Comment"))], () => this.post()));
  }

  focus() {
    this.input.focus();
  }

  async load() {
    await told(this.problem, async () => {
      const page = await this.site.get(`/v1/statuses/${this.status.id}/comments`, { before: this.next });
      this.list.append(...page.comments.map((comment) => this.row(comment)));
      this.next = page.next;
      this.more.hidden = page.next === null;
    });
  }

  async post() {
    const message = this.input.value;
    const made = await this.site.write("POST", `/v1/statuses/${this.status.id}/comments`, { message }, this.key.of(message));
    this.key.done();
    this.input.value = "";
    this.list.append(this.row(made));
  }

  row(comment) {
    const mayDelete = [comment.uid, this.status.uid].includes(this.site.me.id);
    const row = h("li", { class: "comment" },
      h("div", { class: "post-header" }, userLink(comment.login, { class: "post-author" }), h("span", { class: "post-time" }, timeAgo(comment.posted)),
        mayDelete ? h("button", { type: "button", class: "quiet", "aria-label": "Delete this comment", onclick: () => this.remove(comment) }, icon("trash")) : null),
      richText(comment.message, comment.entities));
    return this.site.app.undo.tie(row, `comment-${comment.id}`);
  }

  remove(comment) {
    this.site.app.undo.later({ text: "Comment deleted", method: "DELETE", path: `/v1/comments/${comment.id}`, hides: `comment-${comment.id}` });
  }
}
