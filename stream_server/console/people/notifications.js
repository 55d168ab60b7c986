// @ts-check
/** Notifications: what others did, the unread ones marked, and live. */

import { h, icon, isolate } from "../dom.js";
import { problemBox } from "../forms.js";
import { face, richText, timeAgo, userLink } from "./text.js";

/** @typedef {import("./page.js").Page} Page */

/** @type {Record<string, {icon: import("../dom.js").IconName, words: string}>} */
const KINDS = {
  mention: { icon: "bell", words: "mentioned you" },
  reply: { icon: "reply", words: "replied to you" },
  like: { icon: "heart", words: "liked your post" },
  comment: { icon: "comment", words: "commented on your post" },
  repost: { icon: "repost", words: "reposted your post" },
  quote: { icon: "quote", words: "quoted your post" },
  follow: { icon: "user", words: "followed you" },
  request: { icon: "knock", words: "wants to follow you" },
  approve: { icon: "user", words: "accepted your follow request" },
};

/** @param {Page} page */
export function notifications(page) {
  const { site } = page;
  let newest = 0; // ids are decimal numbers below 2^53
  const heed = (/** @type {any} */ answer) => {
    site.setCount("notifications", answer.unread);
    newest = Math.max(newest, answer.notifications[0]?.id ?? 0);
  };
  const feed = page.feed("/v1/notifications", "notifications", { label: "Notifications", empty: "Nothing yet. Here you see what others do with your posts.", noun: "notification", heed }, notice);
  const problem = problemBox();
  const markAll = () => page.attempt(async () => {
    if (!newest) return;
    feed.insert();
    const answer = await site.write("PUT", "/v1/notifications/read", { id: String(newest) });
    site.setCount("notifications", answer.unread);
    feed.list.querySelectorAll(".notice-unread").forEach((/** @type {Element} */ each) => each.classList.remove("notice-unread"));
  }, problem);
  page.on("notification", ({ notification }) => {
    newest = Math.max(newest, notification.id);
    feed.announce(notification);
  });
  page.show("Notifications", h("div", { class: "row end" }, h("button", { type: "button", onclick: markAll }, "Mark all as read")), problem, feed.root);
}

function notice(notification) {
  const { source, status, comment, kind } = notification;
  const about = KINDS[kind] ?? { icon: "bell", words: kind };
  return h("article", { class: ["notice", `notice-${kind}`, !notification.read && "notice-unread"], tabindex: "-1" },
    h("span", { class: "notice-icon" }, icon(about.icon)),
    h("div", { class: "post-main" },
      h("div", { class: "notice-line" }, face(source), h("strong", {}, isolate(source.name)), userLink(source.login, { class: "muted" }), h("span", {}, about.words),
        h("span", { class: "post-time" }, timeAgo(notification.posted)), notification.read ? null : h("span", { class: "visually-hidden" }, "unread")),
      comment ? richText(comment.message, comment.entities) : null,
      status && h("div", { class: comment ? "post-quote" : "notice-subject" }, richText(status.message || status.original?.message || "", status.entities),
        h("a", { class: "notice-open", href: `#/people/status/${status.id}` }, "Open")),
      kind === "request" ? h("a", { href: "#/people/requests" }, "Answer the request") : null));
}
