// @ts-check
// Tells of posts that came while nobody saw their column: in the title of the tab, at the column, by a sound and by a
// notification of the browser. The user's own choice, kept with the column, and never a part of an address.

import { fill, h } from "../dom.js";

const SHOW_MS = 300; // at 200 posts a second the title changes only so often
const SOUND_MS = 3000;
const NOTICE_MS = 10_000;
let audio = /** @type {AudioContext | null} */ (null);
let soundAt = 0;

/** Plays a short tone, if the user has ever touched the page: else the browser would not. */
function sound() {
  if (Date.now() - soundAt < SOUND_MS || !navigator.userActivation?.hasBeenActive) return;
  soundAt = Date.now();
  audio ??= new AudioContext();
  const [tone, volume, now] = [audio.createOscillator(), audio.createGain(), audio.currentTime];
  volume.gain.setValueAtTime(0.1, now);
  volume.gain.exponentialRampToValueAtTime(0.001, now + 0.3);
  tone.frequency.value = 660;
  tone.connect(volume).connect(audio.destination);
  tone.start();
  tone.stop(now + 0.3);
}

export class Alerts {
  /** @param {import("../column.js").Column} column */
  constructor(column) {
    this.column = column;
    this.unread = this.noticed = this.noticedAt = this.timer = 0;
    this.isInView = true;
    this.badges = [0, 1].map(() => h("span", { class: "unread", hidden: true })); // in the column's head, and in its tab on a phone
    this.look = () => { if (this.isSeen && this.unread) this.reset(); };
    this.observer = new IntersectionObserver((entries) => { this.isInView = entries.some((entry) => entry.isIntersecting); this.look(); }, { threshold: 0.5 });
    document.addEventListener("visibilitychange", this.look);
  }

  /** @returns {{sound?: boolean, notice?: boolean} | undefined} what the user has chosen; undefined for no alerts */
  get chosen() {
    return this.column.kept.alerts;
  }

  get isSeen() {
    return !document.hidden && this.isInView && this.column.element.isConnected;
  }

  /** A post came. */
  arrived() {
    if (!this.chosen || this.isSeen) return;
    this.unread += 1;
    this.timer ||= setTimeout(() => this.tell(), SHOW_MS);
  }

  tell() {
    this.timer = 0;
    this.show();
    if (!this.unread || !this.chosen) return;
    if (this.chosen.sound) sound();
    if (!this.chosen.notice || this.noticed === this.unread || globalThis.Notification?.permission !== "granted") return;
    if (Date.now() - this.noticedAt < NOTICE_MS) return void (this.timer = setTimeout(() => this.tell(), 1000));
    [this.noticed, this.noticedAt] = [this.unread, Date.now()];
    const notice = new Notification(this.column.title, { body: `${this.unread} new ${this.unread === 1 ? "post" : "posts"}`, tag: this.column.tag, silent: true });
    notice.onclick = () => (window.focus(), this.column.element.scrollIntoView(), notice.close());
  }

  reset() {
    this.unread = this.noticed = 0;
    this.show();
  }

  show() {
    for (const badge of this.badges) {
      badge.hidden = !this.unread;
      fill(badge, this.unread > 0 && [this.unread, h("span", { class: "visually-hidden" }, " unread")]);
    }
    const sum = this.column.board.columns.reduce((all, { alerts }) => all + alerts.unread, 0);
    document.title = `${sum ? `(${sum}) ` : ""}${document.title.replace(/^\(\d+\) /, "")}`;
  }

  /** Lets the user choose. */
  choose() {
    const { column } = this;
    const problem = h("p", { class: "problem", role: "alert" });
    const save = () => {
      column.kept = { ...column.kept, alerts: boxes[0].checked ? { sound: boxes[1].checked, notice: boxes[2].checked } : undefined };
      if (!this.chosen) this.reset();
      column.board.actions.changed();
    };
    const box = (/** @type {boolean | undefined} */ checked, /** @type {() => any} */ change) => h("input", { type: "checkbox", checked: Boolean(checked), onchange: () => (change(), save()) });
    const also = (/** @type {number} */ index) => boxes[index].checked && (boxes[0].checked = true);
    const ask = async () => {
      also(2);
      const answer = boxes[2].checked && (await globalThis.Notification?.requestPermission());
      if (!boxes[2].checked || answer === "granted") return fill(problem);
      boxes[2].checked = false;
      fill(problem, "The browser does not let this page show notifications. Its settings for this page can allow them.");
      save();
    };
    const boxes = [box(Boolean(this.chosen), () => boxes[0].checked || boxes.forEach((one) => (one.checked = false))), box(this.chosen?.sound, () => also(1)), box(this.chosen?.notice, ask)];
    const labels = ["Count posts that come unseen, in the title of the tab", "With a sound, at most every three seconds", "With a notification of the browser, at most every ten seconds"];
    column.app.dialog(["Alert me: ", h("bdi", {}, column.title)], h("div", { class: "stack" }, boxes.map((one, index) => h("label", { class: "check" }, one, labels[index])), problem));
  }

  close() {
    document.removeEventListener("visibilitychange", this.look);
    this.observer.disconnect();
    clearTimeout(this.timer);
    this.unread = 0;
    this.show();
  }
}
