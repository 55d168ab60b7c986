// @ts-check
/** What the pages of the people view share: requests, the signed-in user, names of users, counts, and marks. */

import { everywhere } from "../dom.js";
import { newKey } from "../forms.js";

const MAX_USERS = 1000;
const MAX_MARKS = 2000;
const LONGEST_PAGE = 200;

export class Site {
  /** @param {any} app see app.js @param {{page: import("./page.js").Page | null, reload: () => void, drawNav: () => void}} view whose page is on show, and may have to be drawn anew */
  constructor(app, view) {
    this.app = app;
    this.view = view;
    this.me = app.user;
    /** @type {Map<string, any>} */
    this.users = new Map([[this.me.id, this.me]]);
    /** @type {Record<"likes" | "favorites", Set<string>>} ids of statuses that the user marked */
    this.marks = { likes: new Set(), favorites: new Set() };
    /** @type {Record<string, number>} unread items by page */
    this.counts = { notifications: 0, talks: 0, requests: 0 };
  }

  /** @param {string} path @param {Record<string, string | number | null | undefined>} [query] @returns {Promise<any>} */
  get(path, query = {}) {
    return this.app.client.request("GET", path, { query });
  }

  /** Whether the user likes or kept a status; what is being undone counts no more. @param {"likes" | "favorites"} kind @param {string} id */
  isMarked(kind, id) {
    return this.marks[kind].has(id) && !this.app.undo.has("DELETE", `/v1/users/me/${kind}/${id}`);
  }

  /** Send a write. The same key makes a repetition safe. If its opposite still waits, that is undone instead. @param {string} method @param {string} path @param {any} [body] @param {string} [key] @returns {Promise<any>} */
  async write(method, path, body, key = newKey()) {
    if (this.app.undo.takeBack(path)) return null;
    return this.app.client.request(method, path, { body, headers: { "Idempotency-Key": key } });
  }

  /** Return users in the order of the ids; those who are not visible are left out. @param {string[]} ids @returns {Promise<any[]>} */
  async usersById(ids) {
    const unknown = [...new Set(ids)].filter((id) => !this.users.has(id));
    for (let at = 0; at < unknown.length; at += LONGEST_PAGE) {
      const answer = await this.get("/v1/users", { ids: unknown.slice(at, at + LONGEST_PAGE).join(",") });
      answer.users.forEach((user) => this.remember(user));
    }
    return ids.map((id) => this.users.get(id)).filter((user) => user !== undefined);
  }

  remember(user) {
    this.users.set(user.id, user);
    trim(this.users, MAX_USERS);
    return user;
  }

  /** @param {string} login @returns {Promise<any>} */
  async userByLogin(login) {
    return this.remember(await this.get(`/v1/users/by-login/${encodeURIComponent(login)}`));
  }

  /** Learn what waits to be read or answered, and of late marks, so that the hearts and stars on show are right. What fails stays as it was. */
  async loadCounts() {
    const learn = async (/** @type {"likes" | "favorites"} */ kind, /** @type {string} */ path) => {
      for (const { id } of (await this.get(path, { count: LONGEST_PAGE })).statuses) this.setMark(kind, id, true);
    };
    await Promise.allSettled([
      learn("likes", `/v1/users/${this.me.id}/likes`), learn("favorites", "/v1/users/me/favorites"),
      this.get("/v1/notifications", { count: 1 }).then((answer) => this.setCount("notifications", answer.unread)),
      this.get("/v1/users/me/requests", { count: LONGEST_PAGE }).then((answer) => this.setCount("requests", answer.users.length)),
      this.loadTalks(),
    ]);
  }

  async loadTalks() {
    const { talks } = await this.get("/v1/talks", { count: LONGEST_PAGE });
    this.setCount("talks", talks.reduce((/** @type {number} */ sum, talk) => sum + talk.unread, 0));
  }

  /** @param {"likes" | "favorites"} kind @param {string} id @param {boolean} on */
  setMark(kind, id, on) {
    this.marks[kind][on ? "add" : "delete"](id);
    trim(this.marks[kind], MAX_MARKS);
    this.renew(id);
  }

  /** Yield all that a path answers with in its member `noun`, page by page. @param {string} path @param {string} noun */
  async *all(path, noun) {
    for (let before = null, more = true; more; more = before !== null) {
      const page = await this.get(path, { count: LONGEST_PAGE, before });
      yield* page[noun];
      before = page.next;
    }
  }

  /** @param {string} page @param {number} count */
  setCount(page, count) {
    this.counts[page] = Math.max(0, count);
    this.view.drawNav();
  }

  /** Let the cards of a status show its marks anew, and newer counts if they are given. @param {string} id @param {any} [status] */
  renew(id, status) {
    for (const card of everywhere(`[data-goes~="status-${id}"]`)) card.dispatchEvent(new CustomEvent("renew", { detail: status }));
  }
}

/** Drop the oldest entry, if the last one is too many. @param {Map<any, any> | Set<any>} kept @param {number} most */
const trim = (kept, most) => kept.size > most && kept.delete(kept.keys().next().value);
