// @ts-check
/** One talk: its messages, the newest at the bottom, live; the field that writes; and the read mark. */

import { h, isolate } from "../dom.js";
import { ApiError } from "../client.js";
import { form, problemBox } from "../forms.js";
import { RetryKey } from "./site.js";
import { talkName } from "./talks.js";
import { timeAgo, userLink } from "./text.js";

/** @typedef {import("./page.js").Page} Page */

const MAX_CHARACTERS = 2000;  // of the wire, see docs/api.md
const MAX_SHOWN = 400;

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
    this.problem = h("div", {});
  }

  start() {
    const { page, talk, site } = this;
    page.show(talkName(site, talk),
      h("p", { class: "muted talk-people" }, ...talk.people.flatMap((/** @type {string} */ id) => { const user = site.users.get(id); return user ? [userLink(user.login), " "] : []; })),
      this.scroller, this.problem, this.form());
    page.root.classList.add("page-talk");
    page.on("message", ({ message }) => { if (message.talk === talk.id) this.add(message); });
    const look = () => { if (!document.hidden) void this.markRead(); };
    document.addEventListener("visibilitychange", look);
    page.cleanups.push(() => document.removeEventListener("visibilitychange", look));
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
      this.site.onTalkRead();
    } catch (error) {
      if (error instanceof ApiError && error.isTemporary) this.read = 0;
    }
  }

  form() {
    const key = new RetryKey();
    const input = h("textarea", { rows: "2", maxlength: String(MAX_CHARACTERS), "aria-label": "Message", placeholder: "Message", dir: "auto" });
    const made = form({ class: "talk-form" }, [input, h("button", { class: "primary" }, "Send"), problemBox()], async () => {
      const text = input.value;
      if (!text.trim()) return;
      this.add(await this.site.write("POST", `${this.path}/messages`, { message: text }, key.of(text)));
      key.done();
      if (input.value === text) input.value = "";
    }, " Your text is kept.");
    input.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      made.requestSubmit();
    });
    return made;
  }
}
