// @ts-check
/** What the pages of the people view share: requests, the signed-in user, names of users, counts, and the cards on show. */

/** @typedef {{uids: Set<string>, update: (status: any) => void, remove: () => void, mark: () => void}} Card */

const MAX_USERS = 1000;
const MAX_MARKS = 2000;
const MARKS_PAGE = 200;

export class Site {
  /** @param {any} app  see app.js */
  constructor(app) {
    this.app = app;
    this.me = app.user;
    /** @type {Map<string, any>} */
    this.users = new Map([[this.me.id, this.me]]);
    /** @type {Map<string, Set<Card>>} cards on show by status id */
    this.cards = new Map();
    /** @type {Record<"likes" | "favorites", Set<string>>} ids of statuses that the user marked */
    this.marks = { likes: new Set(), favorites: new Set() };
    /** @type {Record<string, number>} unread items by page */
    this.counts = { notifications: 0, talks: 0, requests: 0 };
    this.onCounts = () => {};
    /** What the view does when a page has to be drawn anew. */
    this.reload = () => {};
    /** What the page does with a status that the user has just posted. @type {(status: any) => void} */
    this.onPosted = () => {};
    /** What the view does when a talk was read. */
    this.onTalkRead = () => {};
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
    for (let at = 0; at < unknown.length; at += MARKS_PAGE) {
      const answer = await this.get("/v1/users", { ids: unknown.slice(at, at + MARKS_PAGE).join(",") });
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

  /** Learn what the user liked and kept of late, so that the hearts and stars on show are right. */
  async loadMarks() {
    const pages = await Promise.all([
      this.get(`/v1/users/${this.me.id}/likes`, { count: MARKS_PAGE }), this.get("/v1/users/me/favorites", { count: MARKS_PAGE })]);
    pages[0].statuses.forEach((status) => this.marks.likes.add(status.id));
    pages[1].statuses.forEach((status) => this.marks.favorites.add(status.id));
  }

  /** @param {"likes" | "favorites"} kind @param {string} id @param {boolean} on */
  setMark(kind, id, on) {
    if (on) this.marks[kind].add(id);
    else this.marks[kind].delete(id);
    trim(this.marks[kind], MAX_MARKS);
    this.cards.get(id)?.forEach((card) => card.mark());
  }

  /** @param {string} page @param {number} count */
  setCount(page, count) {
    this.counts[page] = Math.max(0, count);
    this.onCounts();
  }

  /** @param {string} id @param {Card} card */
  addCard(id, card) {
    const cards = this.cards.get(id) ?? new Set();
    this.cards.set(id, cards.add(card));
  }

  /** @param {string} id @param {Card} card */
  dropCard(id, card) {
    const cards = this.cards.get(id);
    cards?.delete(card);
    if (cards?.size === 0) this.cards.delete(id);
  }

  /** Forget the page that is left: its cards and what it wanted to hear. */
  leavePage() {
    this.cards.clear();
    this.onPosted = () => {};
  }

  /** Take all posts of a user off the page, after a block or a mute. @param {string} uid */
  hideUser(uid) {
    for (const cards of [...this.cards.values()]) [...cards].filter((card) => card.uids.has(uid)).forEach((card) => card.remove());
  }

  /** Show the newest counters of a status on all its cards. @param {any} status */
  updateCards(status) {
    this.cards.get(status.id)?.forEach((card) => card.update(status));
  }

  /** @param {string} id of a status that is deleted */
  removeCards(id) {
    [...(this.cards.get(id) ?? [])].forEach((card) => card.remove());
  }
}

/** Drop the oldest entries. @param {Map<any, any> | Set<any>} kept @param {number} most */
function trim(kept, most) {
  for (const key of kept.keys()) {
    if (kept.size <= most) return;
    kept.delete(key);
  }
}

/** The key of a write that may have to be repeated: the same content keeps its key, so that it takes effect once. */
export class RetryKey {
  constructor() {
    this.text = "";
    this.key = "";
  }

  /** @param {unknown} content @returns {string} */
  of(content) {
    const text = JSON.stringify(content);
    if (this.text !== text) Object.assign(this, { text, key: newKey() });
    return this.key;
  }

  /** Forget the content: the next write is a new one, even with the same content. */
  done() {
    this.text = "";
    this.key = "";
  }
}

/** Return a new idempotency key. `crypto.randomUUID` is missing on plain HTTP of another host. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
