// @ts-check
/** Talks: the list of one's conversations, requests of strangers, the form that opens a talk; and one talk: its messages, the newest at the bottom, live, the field that writes, and the read mark. */

import { h, isolate, number } from "../dom.js";
import { draftPlace, form, problemBox } from "../forms.js";
import { isComposing } from "../keys.js";
import { tabbed } from "./page.js";
import { face, timeAgo, userLink } from "./text.js";
import { offer } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */
/** @typedef {import("./site.js").Site} Site */

const MAX_CHARACTERS = 2000;  // of the wire, see docs/api.md
const MAX_SHOWN = 400;

/** @param {Page} page @param {string} [tab] */
export function talks(page, tab) {
  const { site } = page;
  const heed = (/** @type {any} */ answer) => site.usersById(answer.talks.flatMap((talk) => talk.people));
  /** @param {string} path @param {string} label @param {string} empty @param {(site: Site, talk: any) => Element} render */
  function list(path, label, empty, render) {
    const feed = page.feed(path, "talks", { label, empty, heed }, (talk) => render(site, talk));
    page.on("message", () => feed.restart());
    return feed.root;
  }
  page.show("Messages", openForm(site), tabbed("#/people/talks", tab, {
    talks: ["Conversations", () => list("/v1/talks", "Conversations", "No conversations yet. Write the username of somebody above.", talkEntry)],
    requests: ["Requests", () => list("/v1/talks/requests", "Message requests", "No message requests.", requestEntry)],
  }));
}

/** Return the name of a talk: its own, or the other users. @param {Site} site @param {any} talk @returns {string} */
function talkName(site, talk) {
  const others = talk.people.filter((/** @type {string} */ id) => id !== site.me.id).map((/** @type {string} */ id) => site.users.get(id)?.name ?? "somebody");
  return talk.name ?? others.join(", ");
}

/** @param {Site} site @param {any} talk */
function talkEntry(site, talk) {
  const other = site.users.get(talk.people.find((/** @type {string} */ id) => id !== site.me.id)) ?? { login: "?" };
  return h("a", { class: ["entry", "talk-entry", talk.unread > 0 && "entry-unread"], href: `#/people/talks/${talk.id}` }, face(other), ...summary(site, talk),
    talk.unread ? h("span", { class: "badge" }, number(talk.unread), h("span", { class: "visually-hidden" }, " unread")) : null);
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
  const href = `#/people/talks/${talk.id}`;
  return offer(site, [summary(site, talk), h("a", { href }, "Read")], "Accept", { text: "You declined the messages", path: `/v1/talks/${talk.id}/acceptance`, href });
}

/** The form that opens a talk with one or more users by login. @param {Site} site */
function openForm(site) {
  const input = h("input", { "aria-label": "Usernames, separated by spaces", placeholder: "To … (usernames, separated by spaces)", autocapitalize: "none", autocomplete: "off", spellcheck: "false" });
  const name = h("input", { "aria-label": "Name of the conversation", placeholder: "Name of the conversation", maxlength: "50", hidden: true, dir: "auto" });
  const logins = () => [...new Set(input.value.split(/[\s,]+/).map((/** @type {string} */ login) => login.replace(/^@/, "")).filter(Boolean))];
  input.addEventListener("input", () => { name.hidden = logins().length < 2; });
  return form({ class: "login-form" }, [input, name, h("button", {}, "Open"), problemBox()], async (_, key) => {
    if (!logins().length) return;
    const people = [];
    for (const login of logins()) people.push(await site.userByLogin(/** @type {string} */ (login)));
    const body = { people: people.map((user) => user.id), ...(people.length > 1 && name.value.trim() ? { name: name.value.trim() } : {}) };
    const talk = await site.write("POST", "/v1/talks", body, key.of(body));
    site.app.go(`#/people/talks/${talk.id}`);
  });
}

/** @param {Page} page @param {string} id */
export async function talkPage(page, id) {
  const { site } = page;
  page.show("Conversation");
  const talk = await page.attempt(() => site.get(`/v1/talks/${encodeURIComponent(id)}`));
  if (!talk) return;
  const people = await page.attempt(() => site.usersById(talk.people)) ?? [];
  if (page.ended) return;
  const log = messageLog(page, talk);
  page.show(talkName(site, talk), h("p", { class: "muted talk-people" }, people.map((user) => [userLink(user.login), " "])), log.root, messageForm(site, talk, log.add));
  page.root.classList.add("page-talk");
  await log.load();
}

/** The messages of a talk, live: a page of older ones on demand, and what is on show is told as read. @param {Page} page @param {any} talk */
function messageLog(page, talk) {
  const { site } = page;
  const path = `/v1/talks/${talk.id}`;
  const shown = new Set();
  let next = /** @type {string | null} */ (null);
  let read = 0;
  const older = h("button", { type: "button", hidden: true, onclick: load }, "Older messages");
  const list = h("div", { class: "messages", role: "log", "aria-label": "Messages" });
  const root = h("div", { class: "messages-box", tabindex: "0", role: "region", "aria-label": "The messages, to scroll" }, older, list);
  const toEnd = () => { root.scrollTop = root.scrollHeight; };
  const isNew = (/** @type {any} */ { id }) => !shown.has(id) && shown.add(id);
  const row = (/** @type {any} */ message) => {
    const own = message.uid === site.me.id;
    return h("div", { class: ["message", own && "message-own"], dataset: { id: message.id } },
      h("span", { class: "message-who" }, own ? "you" : isolate(`@${message.login}`), " ", timeAgo(message.posted)),
      h("p", { class: "message-text", dir: "auto" }, message.message));
  };

  async function load() {
    const isFirst = shown.size === 0;
    await page.attempt(async () => {
      const answer = await site.get(`${path}/messages`, { before: next });
      next = answer.next;
      older.hidden = next === null || shown.size >= MAX_SHOWN;
      list.prepend(...answer.messages.filter(isNew).map(row).reverse());
    });
    if (isFirst) toEnd();
    await markRead();
  }

  /** @param {any} message */
  function add(message) {
    if (!isNew(message)) return;
    const atEnd = root.scrollHeight - root.scrollTop - root.clientHeight < 80;
    list.append(row(message));
    while (list.childElementCount > MAX_SHOWN) list.firstElementChild?.remove();
    if (atEnd || message.uid === site.me.id) toEnd();
    void markRead();
  }

  /** Tell the server what was read: the newest message on show, while the page can be seen. */
  async function markRead() {
    const last = Number(list.lastElementChild?.dataset.id ?? 0);
    if (document.hidden || last <= read) return;
    read = last;
    await site.write("PUT", `${path}/read`, { id: String(last) }).then(() => void site.loadTalks(), (error) => { if (error.isTemporary) read = 0; });
  }

  page.on("message", ({ message }) => { if (message.talk === talk.id) add(message); });
  document.addEventListener("visibilitychange", markRead, { signal: page.leaving.signal });
  return { root, load, add };
}

/** @param {Site} site @param {any} talk @param {(message: any) => void} add */
function messageForm(site, talk, add) {
  const onkeydown = (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
    event.preventDefault();
    made.requestSubmit();
  };
  const input = h("textarea", { name: "message", rows: "2", maxlength: String(MAX_CHARACTERS), "aria-label": "Message", placeholder: "Message", dir: "auto", onkeydown });
  const made = form({ class: "talk-form" }, [input, h("button", { class: "primary" }, "Send"), problemBox()], async (_, key) => {
    const text = input.value;
    if (!text.trim()) return;
    add(await site.write("POST", `/v1/talks/${talk.id}/messages`, { message: text }, key.of(text)));
    if (input.value === text) made.reset();
  }, { after: " Your text is kept.", draft: draftPlace(site.app, "talk", talk.id) });
  return made;
}
