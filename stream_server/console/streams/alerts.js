// @ts-check
// Tells of posts that came while nobody saw their column: in the title of the tab, at the column, by a sound and by a
// notification of the browser. The user's own choice, kept with the column, and never a part of an address.

import { fill, h, icon, tool } from "../dom.js";
import { problemBox } from "../forms.js";
import { counted } from "../people/text.js";

const [SHOW_MS, SOUND_MS, NOTICE_MS] = [300, 3000, 10_000]; // at 200 posts a second the title changes only so often
const LABELS = ["Count posts that come unseen, in the title of the tab", "With a sound, at most every three seconds", "With a notification of the browser, at most every ten seconds"];
const DENIED = "The browser does not let this page show notifications. Its settings for this page can allow them.";
let [audio, soundAt] = [/** @type {AudioContext | null} */ (null), 0];

/** Plays a short tone, if the user has ever touched the page: else the browser would not. */
function sound() {
  if (Date.now() - soundAt < SOUND_MS || !navigator.userActivation?.hasBeenActive) return;
  [audio, soundAt] = [audio ?? new AudioContext(), Date.now()];
  const [tone, volume] = [new OscillatorNode(audio, { frequency: 660 }), new GainNode(audio, { gain: 0.08 })];
  tone.connect(volume).connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.2);
}

export class Alerts {
  /** @param {import("../column.js").Column} column */
  constructor(column) {
    this.column = column;
    this.unread = this.noticed = this.noticedAt = this.timer = 0;
    this.isInView = true;
    this.badges = [0, 1].map(() => h("span", { class: "unread", hidden: true })); // in the column's head, and in its tab on a phone
    this.sign = tool(icon("bell"), "Alerts are on", () => this.choose());
    this.tab = h("button", { class: "quiet", onclick: () => column.board.actions.focus(column) }); // of a phone
    this.look = () => { if (this.isSeen && this.unread) this.show(0); };
    this.observer = new IntersectionObserver((entries) => {
      this.isInView = entries[entries.length - 1].isIntersecting;
      this.tab.ariaCurrent = this.isInView ? "true" : null;
      if (this.isInView) this.tab.scrollIntoView({ inline: "nearest", block: "nearest" });
      this.look();
    }, { threshold: 0.5 });
    document.addEventListener("visibilitychange", this.look);
  }

  get isSeen() {
    return !document.hidden && this.isInView && this.column.element.isConnected;
  }

  /** A post came. */
  arrived() {
    const { column } = this;
    if (!column.kept.alerts || this.isSeen) return;
    if (!this.unread) (column.rows.remove("since", ""), column.note("since", "New since you left"));
    this.unread += 1;
    this.timer ||= setTimeout(() => this.tell(), SHOW_MS);
  }

  tell() {
    const { kept, title, tag, element } = this.column;
    this.timer = 0;
    this.show(this.unread);
    if (this.unread && kept.alerts?.sound) sound();
    if (this.noticed >= this.unread || !kept.alerts?.notice || globalThis.Notification?.permission !== "granted") return;
    if (Date.now() - this.noticedAt < NOTICE_MS) return void (this.timer = setTimeout(() => this.tell(), 1000));
    [this.noticed, this.noticedAt] = [this.unread, Date.now()];
    new Notification(title, { body: counted(this.unread, "new post"), tag, silent: true }).onclick = () => (window.focus(), element.scrollIntoView());
  }

  /** @param {number} unread */
  show(unread) {
    [this.unread, this.noticed] = [unread, Math.min(this.noticed, unread)];
    for (const badge of this.badges) fill(badge, unread > 0 && [unread, h("span", { class: "visually-hidden" }, " unread")]).toggleAttribute("hidden", !unread);
    const sum = this.column.board.columns.reduce((all, { alerts }) => all + alerts.unread, 0);
    document.title = (sum ? `(${sum}) ` : "") + document.title.replace(/^\(\d+\) /, "");
  }

  /** Lets the user choose. */
  choose() {
    const { column } = this;
    const { alerts } = column.kept;
    const problem = problemBox();
    const changed = async (/** @type {any} */ { target }) => {
      if (target === all && !all.checked) tone.checked = notice.checked = false;
      all.checked ||= tone.checked || notice.checked;
      const isDenied = target === notice && notice.checked && (await globalThis.Notification?.requestPermission()) !== "granted";
      if (isDenied) notice.checked = false;
      fill(problem, isDenied && DENIED);
      column.kept = { ...column.kept, alerts: all.checked ? { sound: tone.checked, notice: notice.checked } : undefined };
      if (!all.checked) this.show(0);
      column.board.changed();
    };
    const [all, tone, notice] = [alerts, alerts?.sound, alerts?.notice].map((checked) => h("input", { type: "checkbox", checked: Boolean(checked), onchange: changed }));
    column.app.dialog(["Alert me: ", h("bdi", {}, column.title)], h("div", { class: "stack" }, [all, tone, notice].map((box, index) => h("label", { class: "check" }, box, LABELS[index])), problem));
  }

  close() {
    document.removeEventListener("visibilitychange", this.look);
    this.observer.disconnect();
    clearTimeout(this.timer);
    this.show(0);
  }
}
