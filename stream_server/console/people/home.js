// @ts-check
/** The pages that are timelines: home, mentions, bookmarks, tags, and one conversation. */

import { fill, h } from "../dom.js";
import { choice } from "../forms.js";
import { Composer } from "./composer.js";
import { peopleToFollow } from "./find.js";
import { PostCard } from "./post.js";

/** @typedef {import("./page.js").Page} Page */

const MAX_SHOWN = 600; // posts of one conversation

/** The home timeline, live. @param {Page} page */
export function home(page) {
  const suggested = h("section", { class: "to-follow", "aria-label": "People to follow" });
  const query = { order: "time" };
  const feed = page.statuses("/v1/timelines/home", { label: "Home timeline", query, empty: "Nothing here yet. Follow somebody, or write a post. You can undo a follow for some seconds; then the posts come." }, (status) => !status.group);
  const composer = new Composer(page.site.app, {}, { onPosted: (status) => feed.announce(status, true) });
  const order = choice({ class: "segments", "aria-label": "Order" }, { time: "Latest", importance: "Top" }, (chosen) => {
    query.order = chosen;
    void feed.restart();
  });
  page.show("Home", composer.root, suggested, order, feed.root);
  void peopleToFollow(page, suggested, () => page.ended || feed.restart()).catch(() => {}); // nobody waits for it
}

/** @param {Page} page */
export function mentions(page) {
  page.show("Mentions", page.statuses("/v1/users/me/mentions", { label: "Mentions", empty: "Nobody has mentioned you yet." },
    (status) => status.entities.mentions.some((mention) => mention.id === page.site.me.id)).root);
}

/** @param {Page} page */
export function kept(page) {
  page.show("Bookmarks", h("p", { class: "muted" }, "Posts that you marked with a star. Only you see this."),
    page.statuses("/v1/users/me/favorites", { label: "Bookmarks", empty: "You have no bookmarks yet." }).root);
}

/** @param {Page} page @param {string} tag */
export function tagPage(page, tag) {
  page.show(`#${tag}`, page.statuses(`/v1/tags/${encodeURIComponent(tag)}/statuses`, { label: `Posts with #${tag}`, empty: "No post has this tag." },
    (status) => status.entities.hashtags.some(({ text }) => text.toLowerCase() === tag.toLowerCase())).root);
}

/** One status in its conversation, the oldest first, and live. @param {Page} page @param {string} id */
export async function conversation(page, id) {
  const { site } = page;
  const place = h("div", { class: "thread" });
  const reply = h("div", {});
  page.show("Conversation", place, reply);
  const status = await page.attempt(() => site.get(`/v1/statuses/${encodeURIComponent(id)}`));
  if (!status || page.ended) return;
  await Promise.allSettled([ // without them the marks of the latest pages stand
    site.get(`/v1/users/me/likes/${status.id}`).then(({ liked }) => site.setMark("likes", status.id, liked)),
    site.get(`/v1/users/me/favorites/${status.id}`).then(({ favorite }) => site.setMark("favorites", status.id, favorite)),
  ]);
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
