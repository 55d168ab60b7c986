// @ts-check
/** Talks: the list of one's conversations, requests of strangers, the form that opens a talk; and one talk: its messages, the newest at the bottom, live, the field that writes, and the read mark. */

import { h, isolate, number } from "../dom.js";
import { ApiError } from "../client.js";
import { form, problemBox } from "../forms.js";
import { isComposing } from "../keys.js";
import { tabbed } from "./page.js";
import { face, timeAgo, userLink } from "./text.js";
import { deed } from "./user_row.js";

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
  await page.attempt(() => site.usersById(talk.people));
  if (!page.ended) new Talk(page, talk).start();
}

class Talk {
  /** @param {Page} page @param {any} talk */
  constructor(page, talk) {
    this.page = page;
    this.site = page.site;
    this.talk = talk;
    this.path = `/v1/talks/${talk.id}`;
    /** @type {string | null} */
    this.next = null;
    this.shown = new Set();
    this.read = 0;
    this.older = h("button", { type: "button", hidden: true, onclick: () => this.load() }, "Older messages");
    this.list = h("div", { class: "messages", role: "log", "aria-label": "Messages" });
    this.scroller = h("div", { class: "messages-box", tabindex: "0", role: "region", "aria-label": "The messages, to scroll" }, this.older, this.list);
    this.problem = problemBox();
  }

  start() {
    const { page, talk, site } = this;
    page.show(talkName(site, talk),
      h("p", { class: "muted talk-people" }, ...talk.people.flatMap((/** @type {string} */ id) => { const user = site.users.get(id); return user ? [userLink(user.login), " "] : []; })),
      this.scroller, this.problem, this.form());
    page.root.classList.add("page-talk");
    page.on("message", ({ message }) => { if (message.talk === talk.id) this.add(message); });
    document.addEventListener("visibilitychange", () => this.markRead(), { signal: page.leaving.signal });
    return this.load();
  }

  async load() {
    const first = this.shown.size === 0;
    await this.page.attempt(async () => {
      const answer = await this.site.get(`${this.path}/messages`, { before: this.next });
      this.next = answer.next;
      this.older.hidden = answer.next === null || this.shown.size >= MAX_SHOWN;
      for (const message of answer.messages) if (this.isNew(message)) this.list.prepend(this.row(message));
    }, this.problem);
    if (first) this.toEnd();
    await this.markRead();
  }

  isNew(message) {
    const isNew = !this.shown.has(message.id);
    this.shown.add(message.id);
    return isNew;
  }

  add(message) {
    if (!this.isNew(message)) return;
    const { scroller } = this;
    const atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 80;
    this.list.append(this.row(message));
    while (this.list.childElementCount > MAX_SHOWN) this.list.firstElementChild?.remove();
    if (atEnd || message.uid === this.site.me.id) this.toEnd();
    void this.markRead();
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  row(message) {
    const own = message.uid === this.site.me.id;
    return h("div", { class: ["message", own && "message-own"], dataset: { id: message.id } },
      h("span", { class: "message-who" }, own ? "you" : isolate(`@${message.login}`), " ", timeAgo(message.posted)),
      h("p", { class: "message-text", dir: "auto" }, message.message));
  }

  /** Tell the server what was read: the newest message on show, while the page can be seen. */
  async markRead() {
    const last = Number(this.list.lastElementChild?.dataset.id ?? 0);
    if (document.hidden || last <= this.read) return;
    this.read = last;
    try {
      await this.site.write("PUT", `${this.path}/read`, { id: String(last) });
      void this.site.loadTalks();
    } catch (error) {
      if (error instanceof ApiError && error.isTemporary) this.read = 0;
    }
  }

  form() {
    const input = h("textarea", { rows: "2", maxlength: String(MAX_CHARACTERS), "aria-label": "Message", placeholder: "Message", dir: "auto" });
    const made = form({ class: "talk-form" }, [input, h("button", { class: "primary" }, "Send"), problemBox()], async (_, key) => {
      const text = input.value;
      if (!text.trim()) return;
      this.add(await this.site.write("POST", `${this.path}/messages`, { message: text }, key.of(text)));
      if (input.value === text) input.value = "";
    }, " Your text is kept.");
    input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || event.shiftKey || isComposing(event)) return;
      event.preventDefault();
      made.requestSubmit();
    });
    return made;
  }
}
