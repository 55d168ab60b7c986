// @ts-check
/** The pages that are timelines: home, mentions, bookmarks, tags, and one conversation. */

import { fill, h } from "../dom.js";
import { choice } from "../forms.js";
import { Composer } from "./composer.js";
import { PostCard } from "./post.js";

/** @typedef {import("./page.js").Page} Page */

const MAX_SHOWN = 600; // posts of one conversation

/** The home timeline, live. @param {Page} page */
export function home(page) {
  const { site } = page;
  const place = h("div", {});
  /** @type {import("./feed.js").Feed} */
  let feed;
  const draw = (/** @type {string} */ order) => {
    feed = page.statuses("/v1/timelines/home", { label: "Home timeline", query: { order }, empty: "Nothing here yet. Follow somebody, or write a post." });
    fill(place, feed.root);
  };
  page.onPosted = (status) => feed.announce(status, true);
  page.on("post", ({ status }) => { if (!status.group) feed.announce(status, status.uid === site.me.id); });
  page.on("edit", ({ status, left }) => (status ? feed.renew(status) : feed.drop(left.id)));
  page.on("delete", ({ status }) => feed.drop(status.id));
  draw("time");
  const order = choice({ class: "segments", "aria-label": "Order" }, { time: "Latest", importance: "Top" }, draw);
  page.show("Home", new Composer(site.app, {}, { onPosted: page.onPosted }).root, order, place);
}

/** @param {Page} page */
export function mentions(page) {
  const feed = page.statuses("/v1/users/me/mentions", { label: "Mentions", empty: "Nobody has mentioned you yet." });
  page.on("post", ({ status }) => { if (status.entities.mentions.some((mention) => mention.id === page.site.me.id)) feed.announce(status); });
  page.show("Mentions", feed.root);
}

/** @param {Page} page */
export function kept(page) {
  page.show("Bookmarks", h("p", { class: "muted" }, "Posts that you marked with a star. Only you see this."),
    page.statuses("/v1/users/me/favorites", { label: "Bookmarks", empty: "You have no bookmarks yet." }).root);
}

/** @param {Page} page @param {string} tag */
export function tagPage(page, tag) {
  const feed = page.statuses(`/v1/tags/${encodeURIComponent(tag)}/statuses`, { label: `Posts with #${tag}`, empty: "No post has this tag." });
  page.on("post", ({ status }) => { if (status.entities.hashtags.some(({ text }) => text.toLowerCase() === tag.toLowerCase())) feed.announce(status); });
  page.show(`#${tag}`, feed.root);
}

/** One status in its conversation, the oldest first, and live. @param {Page} page @param {string} id */
export async function conversation(page, id) {
  const { site } = page;
  const place = h("div", { class: "thread" });
  const reply = h("div", {});
  page.show("Conversation", place, reply);
  const status = await page.attempt(() => site.get(`/v1/statuses/${encodeURIComponent(id)}`));
  if (!status || page.ended) return;
  await markExactly(site, status);
  const shown = new Map();
  const add = (each) => {
    if (shown.has(each.id)) return;
    const card = new PostCard(site, each, { detail: each.id === id });
    shown.set(each.id, card);
    place.append(card.root);
  };
  await page.attempt(async () => {
    for await (const each of site.all(`/v1/statuses/${encodeURIComponent(id)}/conversation`, "statuses")) {
      add(each);
      if (shown.size >= MAX_SHOWN) break;
    }
    add(status);
  });
  if (page.ended) return;
  shown.get(id)?.root.scrollIntoView({ block: "nearest" });
  page.onPosted = (made) => { if (made.conversation === status.conversation) add(made); };
  page.on("post", ({ status: made }) => page.onPosted(made));
  fill(reply, new Composer(site.app, { in_reply_to: id }, { onPosted: page.onPosted, hint: `Reply to @${status.login}` }).root);
}

/** Learn whether the user likes and keeps this one status. @param {import("./site.js").Site} site @param {any} status */
async function markExactly(site, status) {
  try {
    const [like, favorite] = await Promise.all([site.get(`/v1/users/me/likes/${status.id}`), site.get(`/v1/users/me/favorites/${status.id}`)]);
    site.setMark("likes", status.id, like.liked);
    site.setMark("favorites", status.id, favorite.favorite);
  } catch {
    // The marks of the latest pages stand; the buttons work all the same.
  }
}
