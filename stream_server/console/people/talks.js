// @ts-check
/** Talks: the list of one's conversations, requests of strangers, and the form that opens a talk. */

import { h, isolate } from "../dom.js";
import { form, problemBox } from "../forms.js";
import { Feed } from "./feed.js";
import { tabs } from "./collections.js";
import { RetryKey } from "./site.js";
import { face, timeAgo } from "./text.js";
import { deed } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */
/** @typedef {import("./site.js").Site} Site */

/** @param {Page} page @param {string} [tab] */
export function talks(page, tab = "talks") {
  const { site } = page;
  const feed = talkFeed(page, tab === "requests");
  page.on("message", () => feed.restart());
  page.show("Messages", openForm(site), tabs("#/people/talks", tab, [["talks", "Conversations"], ["requests", "Requests"]]), feed.root);
}

/** @param {Page} page @param {boolean} strangers */
function talkFeed(page, strangers) {
  const { site } = page;
  return new Feed({
    label: strangers ? "Message requests" : "Conversations",
    empty: strangers ? "No message requests." : "No conversations yet. Write the username of somebody above.",
    load: async (before) => {
      const answer = await site.get(strangers ? "/v1/talks/requests" : "/v1/talks", { before });
      await site.usersById(answer.talks.flatMap((talk) => talk.people));
      return { items: answer.talks, next: answer.next };
    },
    render: (talk) => (strangers ? requestEntry(site, talk) : talkEntry(site, talk)),
  }).start();
}

/** Return the name of a talk: its own, or the other users. @param {Site} site @param {any} talk @returns {string} */
export function talkName(site, talk) {
  const others = talk.people.filter((/** @type {string} */ id) => id !== site.me.id).map((/** @type {string} */ id) => site.users.get(id)?.name ?? "somebody");
  return talk.name ?? others.join(", ");
}

/** @param {Site} site @param {any} talk */
function talkEntry(site, talk) {
  const other = site.users.get(talk.people.find((/** @type {string} */ id) => id !== site.me.id)) ?? { login: "?" };
  return h("a", { class: ["entry", "talk-entry", talk.unread > 0 && "entry-unread"], href: `#/people/talks/${talk.id}` }, face(other), ...summary(site, talk),
    talk.unread ? h("span", { class: "badge" }, talk.unread, h("span", { class: "visually-hidden" }, " unread")) : null);
}

/** @param {Site} site @param {any} talk */
function summary(site, talk) {
  const last = talk.last_message;
  return [h("strong", {}, isolate(talkName(site, talk))),
    h("span", { class: "muted entry-about" }, last ? [isolate(`@${last.login}`), ": ", isolate(last.message)] : "no messages yet"),
    last ? h("span", { class: "muted" }, timeAgo(last.posted)) : null];
}

/** @param {Site} site @param {any} talk */
function requestEntry(site, talk) {
  const path = `/v1/talks/${talk.id}/acceptance`;
  const accept = async () => {
    await site.write("PUT", path);
    site.app.go(`#/people/talks/${talk.id}`);
  };
  const decline = async () => site.app.undo.later({ text: "You declined the messages", method: "DELETE", path, hides: `talk-${talk.id}` });
  return site.app.undo.tie(h("div", { class: "entry" }, ...summary(site, talk), h("a", { href: `#/people/talks/${talk.id}` }, "Read"),
    deed("Accept", accept, "primary"), deed("Decline", decline)), `talk-${talk.id}`);
}

/** The form that opens a talk with one or more users by login. @param {Site} site */
function openForm(site) {
  const key = new RetryKey();
  const input = h("input", { "aria-label": "Usernames, separated by spaces", placeholder: "To … (usernames, separated by spaces)", autocapitalize: "none", autocomplete: "off", spellcheck: "false" });
  const name = h("input", { "aria-label": "Name of the conversation", placeholder: "Name of the conversation", maxlength: "50", hidden: true, dir: "auto" });
  const logins = () => [...new Set(input.value.split(/[\s,]+/).map((/** @type {string} */ login) => login.replace(/^@/, "")).filter(Boolean))];
  input.addEventListener("input", () => { name.hidden = logins().length < 2; });
  return form({ class: "login-form" }, [input, name, h("button", {}, "Open"), problemBox()], async () => {
    if (!logins().length) return;
    const people = [];
    for (const login of logins()) people.push(await site.userByLogin(/** @type {string} */ (login)));
    const body = { people: people.map((user) => user.id), ...(people.length > 1 && name.value.trim() ? { name: name.value.trim() } : {}) };
    const talk = await site.write("POST", "/v1/talks", body, key.of(body));
    site.app.go(`#/people/talks/${talk.id}`);
  });
}
