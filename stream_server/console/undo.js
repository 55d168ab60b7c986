// @ts-check
// What a person can take back. The page shows a deed as done at once, and the server hears of it some seconds later: no
// request restores a deleted post, or the follows that a block ends. What waits is sent at once when the page is left.

import { ApiError } from "./client.js";
import { everywhere, h, icon } from "./dom.js";

const SECONDS = 8; // while the note is neither pointed at nor focused
const MAX_NOTES = 3; // at one time; with one more, the oldest deed is sent

/**
 * @typedef {{text: string, method?: string, path?: string, body?: any, hides?: string, item?: any, done?: (answer: any) => void, undone?: () => void}} Deed
 *   `text` tells what was done; `method` and `path` are of its write, and a deed of this page alone has none; `hides` is
 *   the sign of the elements that it takes away, see `tie`; `item` is what it adds to a list. One of `done` and `undone` is called once.
 */

/** Does some work after a while: attributes of a note, which stays while a pointer that moved there is on it, or the focus. @param {() => any} work @param {number} ms */
export function unhurried(work, ms) {
  let timer = setTimeout(work, ms);
  const hold = () => clearTimeout(timer);
  const wait = () => (hold(), (timer = setTimeout(work, ms)));
  return { onpointermove: hold, onfocusin: hold, onpointerleave: wait, onfocusout: wait };
}

export class Undo {
  /** @param {import("./client.js").Client} client @param {HTMLElement} notes a live region, where a note tells of each deed @param {(error: unknown) => void} fail called with the error of a write; its deed is undone then */
  constructor(client, notes, fail) {
    this.client = client;
    this.notes = notes;
    this.fail = fail;
    /** @type {Map<string | symbol, any>} what waits, by the path of its write, the latest at the end */ this.waiting = new Map();
    addEventListener("pagehide", () => void this.finish());
  }

  /** Whether a write waits that will do this. @param {string} method @param {string} path */
  has(method, path) {
    return this.waiting.get(path)?.method === method;
  }

  /** What waits and adds something to the list at a path. @param {string} path @returns {any[]} */
  adding(path) {
    return [...this.waiting.values()].filter((deed) => deed.method !== "DELETE" && deed.path?.startsWith(`${path}/`));
  }

  /** Hides an element while a deed waits that takes one of the signs away. @template {HTMLElement} T @param {T} element @param {...string} signs without blanks @returns {T} */
  tie(element, ...signs) {
    element.dataset.goes = signs.join(" ");
    element.hidden = this.isGone(element);
    return element;
  }

  /** Takes away for good what is tied to a sign. @param {string} sign */
  take(sign) {
    everywhere(`[data-goes~="${CSS.escape(sign)}"]`).forEach((element) => (focusBeside(element), element.remove()));
  }

  /** @param {HTMLElement} element */
  isGone(element) {
    const signs = element.dataset.goes?.split(" ") ?? [];
    return [...this.waiting.values()].some((deed) => signs.includes(deed.hides));
  }

  /** Shows and hides what is tied. */
  refresh() {
    for (const element of everywhere("[data-goes]")) {
      const isGone = this.isGone(element);
      if (isGone) focusBeside(element);
      element.hidden = isGone;
    }
  }

  /** Does something that can be taken back. If the opposite waits, that is taken back instead. @param {Deed} given */
  later(given) {
    const key = given.path?.split("?")[0] ?? Symbol(given.text);
    const before = this.waiting.get(key);
    if (this.takeBack(key) && before.method !== given.method) return;
    const deed = { ...given, key, uid: this.client.user?.id, isSent: false, note: /** @type {any} */ (null) };
    deed.note = h("div", { class: "note row nowrap", ...unhurried(() => this.send(deed), SECONDS * 1000) }, h("span", { class: "grow" }, deed.text),
      h("button", { title: "Undo (z)", onclick: () => this.takeBack(key) }, "Undo"),
      h("button", { class: "quiet", "aria-label": "Dismiss", onclick: () => this.send(deed) }, icon("close")));
    this.waiting.set(key, deed);
    this.notes.append(deed.note);
    this.refresh();
    const open = [...this.waiting.values()].filter((other) => !other.isSent);
    if (open.length > MAX_NOTES) void this.send(open[0]);
  }

  /** Undoes what waits. @param {string | symbol} key the path of its write @returns {boolean} whether something waited */
  takeBack(key) {
    const deed = this.waiting.get(key);
    if (!deed || deed.isSent) return false;
    this.undo(deed);
    return true;
  }

  /** Undoes the latest that waits. @returns {boolean} whether something waited */
  takeBackLast() {
    return this.takeBack([...this.waiting.values()].findLast((deed) => !deed.isSent)?.key ?? "");
  }

  undo(deed) {
    deed.note.remove();
    this.waiting.delete(deed.key);
    deed.undone?.();
    this.refresh();
  }

  /** The request outlives the page: the person may leave it before the answer. @param {any} deed */
  async send(deed) {
    const { method, path, body, hides } = deed;
    if (deed.isSent || this.waiting.get(deed.key) !== deed) return;
    deed.isSent = true;
    deed.note.remove();
    try {
      if (path && this.client.user?.id !== deed.uid) throw new ApiError(401, { code: "signed_out", message: `this was not done before your session ended: ${deed.text}` });
      const answer = path ? await this.client.request(method, path, { body, keepalive: true }).catch((/** @type {any} */ error) => {
        if (error.status !== 404 || method !== "DELETE") throw error;
        return null; // what is not there any more needs no delete
      }) : null;
      this.waiting.delete(deed.key);
      deed.done?.(answer);
      if (hides) this.take(hides);
    } catch (error) {
      this.undo(deed);
      this.fail(error);
    }
  }

  /** Sends what waits now. */
  async finish() {
    await Promise.all([...this.waiting.values()].map((deed) => this.send(deed)));
  }
}

/** Passes the focus on, if an element that goes has it. @param {HTMLElement} element */
function focusBeside(element) {
  if (!element.contains(document.activeElement)) return;
  const places = [element.nextElementSibling, element.previousElementSibling, element.closest("main")];
  const next = places.find((place) => place instanceof HTMLElement && !place.hidden && place.hasAttribute("tabindex"));
  if (next instanceof HTMLElement) next.focus({ preventScroll: true });
}
