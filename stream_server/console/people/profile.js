// @ts-check
/** The page of a user: who it is, how the two stand, and what the user wrote, likes and whom the user knows. */

import { entry, fill, h, icon, isolate, menu, number, outside } from "../dom.js";
import { draftPlace, form, formEnd, opener, problemBox } from "../forms.js";
import { Composer } from "./composer.js";
import { listLink } from "./collections.js";
import { tabbed } from "./page.js";
import { counted, face, userHref } from "./text.js";
import { deed, lock, report, userRow } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */

const FIELDS = [
  { name: "name", label: "Name", more: { maxlength: "50", required: true } },
  { name: "bio", label: "About you", more: { maxlength: "500" }, tag: "textarea" },
  { name: "place", label: "Place", more: { maxlength: "100" } },
  { name: "url", label: "Web address", more: { maxlength: "2048", placeholder: "https://", inputmode: "url" } },
  { name: "lang", label: "Language", more: { maxlength: "35", placeholder: "en" } },
];

/** @param {Page} page @param {string} login @param {string} [tab] */
export async function profile(page, login, tab) {
  page.show(`@${login}`);
  const user = await page.attempt(() => page.site.userByLogin(login));
  if (!user || page.ended) return;
  new Profile(page, user, tab);
}

class Profile {
  /** @param {Page} page @param {any} user @param {string} [tab] */
  constructor(page, user, tab) {
    this.page = page;
    this.site = page.site;
    this.user = user;
    this.own = user.id === page.site.me.id;
    this.card = h("section", { class: "profile", "aria-label": "Profile" });
    this.buttons = h("div", { class: "row profile-buttons" });
    this.slot = h("div", {});
    page.show(user.name, this.card, this.slot, this.content(tab));
    this.draw();
    if (this.own) {
      const remove = entry("Delete account …", () => page.site.app.go("#/people/account/end"), "danger");
      fill(this.buttons, h("button", { type: "button", onclick: opener(this.slot, draftPlace(page.site.app, "profile"), (place) => this.editor(place)) }, "Edit profile"), menu("More", [remove]));
    } else {
      void this.relate();
      page.on("user_update", ({ user: changed }) => { if (changed.id === user.id) { this.user = changed; this.draw(); } });
    }
  }

  draw() {
    const { user } = this;
    fill(this.card, face(user), h("div", { class: "profile-main" },
      h("p", { class: "profile-name" }, h("strong", {}, isolate(user.name)), user.protected ? lock() : null, h("span", { class: "muted" }, isolate(`@${user.login}`))),
      user.bio ? h("p", { class: "profile-bio", dir: "auto" }, user.bio) : null,
      h("p", { class: "profile-facts muted" },
        user.place ? h("span", {}, icon("pin"), isolate(user.place)) : null,
        user.url ? h("span", {}, icon("link"), outside(user.url, user.url.replace(/^https?:\/\//, ""))) : null,
        h("span", {}, `joined ${new Date(user.signup).toLocaleDateString([], { month: "long", year: "numeric" })}`)),
      h("p", { class: "profile-counts" },
        h("span", {}, counted(user.posts, "post")),
        h("a", { href: `${userHref(user.login)}/following` }, `${number(user.following)} following`),
        h("a", { href: `${userHref(user.login)}/followers` }, counted(user.followers, "follower"))),
      this.buttons));
  }

  /** @param {string} place of its draft */
  editor(place) {
    const { site, user } = this;
    const close = () => fill(this.slot);
    const fields = FIELDS.map(({ name, label, more, tag }) => h("label", {}, label, h(tag ?? "input", { name, value: user[name] ?? "", dir: "auto", ...more })));
    const hidden = h("label", { class: "check" }, h("input", { type: "checkbox", name: "protected", checked: user.protected }), "Protected: only followers whom you approve read your posts");
    return form({ class: "card stack", "aria-label": "Edit profile" }, [fields, hidden, problemBox(), formEnd("Save", close)], async (made) => {
      this.user = site.remember(await site.write("PATCH", "/v1/users/me", changes(made, user)));
      made.reset();
      close();
      this.draw();
    }, { draft: place });
  }

  /** @param {string} [tab] */
  content(tab) {
    const { page, user } = this;
    const path = `/v1/users/${user.id}`;
    const users = (/** @type {string} */ relation, /** @type {string} */ label, /** @type {string} */ empty) => page.users(`${path}/${relation}`, { label, empty }, (each) => userRow(each)).root;
    return tabbed(userHref(user.login), tab, {
      posts: ["Posts", () => this.posts()],
      likes: ["Likes", () => page.statuses(`${path}/likes`, { label: "Liked posts", empty: "No likes yet." }).root],
      followers: ["Followers", () => users("followers", "Followers", "Nobody follows this user yet.")],
      following: ["Following", () => users("following", "Following", "This user follows nobody yet.")],
      lists: ["Lists", () => page.feed(`${path}/lists`, "lists", { label: "Lists", empty: "No lists that you may see." }, listLink).root],
    }, "Of this user");
  }

  posts() {
    const { page, user, own } = this;
    const hidden = user.protected && !own ? "No posts, or you may not see them: this account is protected." : "No posts yet.";
    const feed = page.statuses(`/v1/users/${user.id}/statuses`, { label: `Posts of @${user.login}`, empty: hidden }, (status) => status.uid === user.id && !status.group);
    return h("div", {}, own && new Composer(this.site.app, {}, { onPosted: (status) => feed.announce(status, true) }).root, feed.root);
  }

  /** Ask how the two users stand, and draw the buttons. */
  async relate() {
    const { site, user } = this;
    const state = await this.page.attempt(() => site.get(`/v1/users/${site.me.id}/relationship/${user.id}`));
    if (!state || this.page.ended) return;
    this.assume(state);
    fill(this.buttons, state.blocking ? deed("Unblock", this.change("DELETE", "blocks", "is not blocked any more")) : this.follow(state), state.blocking ? null : this.talk(), this.menu(state),
      state.followed_by ? h("span", { class: "pill" }, "follows you") : null, state.muting ? h("span", { class: "pill" }, "muted") : null);
  }

  /** Put what waits to be sent into how the two stand. @param {any} state */
  assume(state) {
    const waits = (/** @type {string} */ method, /** @type {string} */ relation) => this.site.app.undo.has(method, `/v1/users/me/${relation}/${this.user.id}`);
    if (waits("DELETE", "following") || waits("PUT", "blocks")) state.following = state.requested = false;
    for (const [relation, name] of [["blocks", "blocking"], ["mutes", "muting"]]) state[name] = (state[name] || waits("PUT", relation)) && !waits("DELETE", relation);
  }

  /** Return what changes how the two stand, so that it can be undone. @param {string} method @param {string} relation @param {string} told */
  change(method, relation, told) {
    const { site, user, page } = this;
    const again = () => void (page.ended || page.attempt(() => this.reload()));
    const hides = method === "PUT" && relation === "blocks" ? `user-${user.id}` : undefined;
    return () => {
      site.app.undo.later({ text: `@${user.login} ${told}`, method, path: `/v1/users/me/${relation}/${user.id}`, hides, done: again, undone: again });
      return this.relate();
    };
  }

  async reload() {
    this.user = await this.site.userByLogin(this.user.login);
    this.draw();
    await this.relate();
  }

  follow(state) {
    if (state.following) return deed("Unfollow", this.change("DELETE", "following", "is not followed any more"));
    if (state.requested) return deed("Cancel request", this.change("DELETE", "following", "no longer has your request"));
    return deed(this.user.protected ? "Ask to follow" : "Follow", () => this.site.write("PUT", `/v1/users/me/following/${this.user.id}`).then(() => this.reload()), "primary");
  }

  talk() {
    return deed("Message", async () => {
      const talk = await this.site.write("POST", "/v1/talks", { people: [this.user.id] });
      this.site.app.go(`#/people/talks/${talk.id}`);
    });
  }

  menu(state) {
    return menu("More", [
      state.muting ? entry("Unmute", this.change("DELETE", "mutes", "is not muted any more")) : entry("Mute", this.change("PUT", "mutes", "is muted")),
      state.blocking ? entry("Unblock", this.change("DELETE", "blocks", "is not blocked any more")) : entry("Block", this.change("PUT", "blocks", "is blocked"), "danger"),
      entry("Report …", () => report(this.site.app, { user: this.user.id })),
    ]);
  }
}

/** Return the members that differ; an emptied member is null. @param {any} form @param {any} user */
function changes(form, user) {
  const value = (/** @type {string} */ name) => form.elements.namedItem(name).value.trim();
  const texts = FIELDS.map(({ name }) => [name, value(name) || (name === "name" ? "" : null)]);
  const given = [...texts, ["protected", form.elements.namedItem("protected").checked]];
  return Object.fromEntries(given.filter(([name, now]) => (now ?? "") !== (user[name] ?? "")));
}
