// @ts-check
// A column of the view Streams: its head with the rate, its state in words, and its rows.

import { entry, fill, h, icon, menu, number } from "./dom.js";
import { aloneParameters, atOwnPlace, ownStart, titleOf, toRule } from "./filter.js";
import { RatePlot, showAge, showRate } from "./plot.js";
import { postRow, reasonsOf } from "./post.js";
import { saveRule } from "./rule_form.js";
import { Rows } from "./rows.js";
import { forPeople, newKey } from "./forms.js";
import { Alerts } from "./streams/alerts.js";
import { dragging, handle, shift, showWidth, widen } from "./streams/arrange.js";
import { exportRows } from "./streams/export.js";
import { LookBack } from "./streams/look_back.js";
import { describe } from "./voice.js";

const GAPS = /** @type {Record<string, string>} */ ({
  trimmed: "the log no longer reaches back so far",
  rolled_back: "Redis lost the end of the log",
  unknown_position: "the position is not on this log",
  rules_forgotten: "the saved rules of then are forgotten",
});

export class Column {
  /** @param {any} board @param {import("./filter.js").Filter} filter @param {string} tag names the column's rule on the shared stream @param {import("./kept.js").Kept} kept its id, and what else the browser keeps of it */
  constructor(board, filter, tag, kept) {
    this.kept = kept;
    this.board = board;
    this.app = board.app;
    this.filter = filter;
    this.tag = tag;
    this.title = titleOf(filter);
    this.rule = toRule(filter);
    this.plot = new RatePlot();
    this.rows = new Rows(`Posts: ${this.title}`);
    this.rows.read = (at, limit) => this.readFrom(at, limit);
    /** @type {import("./client.js").Stream | null} */ this.own = null;
    /** @type {Error | null} */ this.refusal = null; // what the server says of its rule, if it does not take it
    this.isAlone = false; // whether its rule has a stream to itself, see board.js
    this.pausedAt = ""; // the cursor of the pause, while there is one
    this.pausedTime = NaN; // of that cursor, in ms by the server's clock
    this.missed = 0;
    this.look = new LookBack(this);
    this.alerts = new Alerts(this);
    this.element = this.draw();
    this.alerts.observer.observe(this.element);
  }

  get stream() {
    return this.own ?? (this.refusal ? null : this.board.shared);
  }

  draw() {
    this.rate = h("span", { class: "rate" }, "quiet");
    this.age = h("span", { class: "muted small", title: "age of the events when they arrived here: median and 99th percentile" });
    this.words = h("span", {});
    this.deeds = h("span", { class: "row" });
    this.state = h("div", { class: "state" }, this.words, this.deeds);
    this.voice = h("p", { class: "visually-hidden", role: "status" }); // tells the kinds of state that are the column's own, and no numbers that change
    this.pauseButton = h("button", { class: "quiet", onclick: () => this.togglePause() });
    this.showPause();
    return h("section", { class: "column", "aria-label": this.title, tabindex: "-1", dataset: { tag: this.tag } },
      h("header", { class: "column-head", ...dragging(this) },
        handle(this), this.heading(), this.alerts.badges[0], this.alerts.sign,
        this.pauseButton,
        this.menu()),
      h("div", { class: "column-meter" }, this.plot.root, this.rate, this.age),
      this.state, this.voice,
      h("div", { class: "newer-place" }, this.rows.newer),
      this.look.panel,
      this.rows.scroller);
  }

  heading() {
    return h("h2", { title: this.rule || this.title }, h("bdi", {}, this.title));
  }

  /** Takes a filter that asks for the same posts: rows, connection and place stay. @param {import("./filter.js").Filter} filter */
  rename(filter) {
    this.filter = filter;
    this.title = titleOf(filter);
    const { element, rows } = this;
    element.querySelector("h2").replaceWith(this.heading());
    element.querySelector(".column-head .menu").replaceWith(this.menu());
    element.ariaLabel = this.title;
    rows.label = rows.scroller.ariaLabel = `Posts: ${this.title}`;
    rows.showRole();
    this.showPause();
    return this;
  }

  menu() {
    const { board } = this;
    return menu(`More about ${this.title}`, [
      entry("Edit filter", () => board.actions.edit(this)),
      entry("Copy as code", () => board.actions.copy(this)),
      this.rule && entry("Save as rule", () => saveRule(this.app, this.rule, this.filter.title)),
      !this.look.isForward && entry("Look back", () => this.look.toggle()),
      entry("Alert me", () => this.alerts.choose()),
      entry("Export as JSON lines", () => exportRows(this, "jsonl")),
      entry("Export as CSV", () => exportRows(this, "csv")),
      entry("Clear", () => this.clear()),
      entry("Move left", () => shift(this, -1)),
      entry("Move right", () => shift(this, 1)),
      entry("Wider", () => widen(this, 1)),
      entry("Narrower", () => widen(this, -1)),
      entry("Close column", () => board.remove(this)),
    ]);
  }

  /** @param {any} message of any kind @param {any[]} matched its matches that concern this column */
  receive(message, matched) {
    const { kind, left, status } = message;
    if (kind === "gap") this.note("gap", tellGap(message));
    else if (kind === "warning") this.note("warn", tellWarning(message));
    else if (kind === "delete") this.rows.remove(status.id);
    else if (left || (kind === "edit" && (!this.own || this.filter.saved) && !matched.length)) this.rows.remove((left ?? status).id, "its new text does not match");
    else if (kind === "post" || kind === "edit") this.take(message, matched);
  }

  /** @param {any} message a `post` or an `edit` that is for this column @param {any[]} matched */
  take(message, matched) {
    const { clockOffset = 0, helloAt = 0 } = this.stream ?? {};
    const happened = Date.parse(message.at) + clockOffset;
    const sign = `${message.status.id} ${message.at}`;
    if (!this.board.counted.has(sign)) this.board.plot.add(happened, NaN); // once, in however many columns it is
    this.board.counted.add(sign);
    this.plot.add(happened, helloAt && happened >= helloAt ? Date.now() - happened : NaN); // the age of what happened before the connection tells nothing of the delivery
    if (message.kind === "post") this.alerts.arrived();
    const isNew = !this.rows.byId.has(message.status.id);
    if (isNew && this.look.range) return; // the column shows another time
    if (isNew && this.pausedAt) this.missed += 1;
    else if (message.kind === "edit") this.rows.replace(this.item(message, matched));
    else this.rows.add(this.item(message, matched));
    if (this.pausedAt) this.showState();
  }

  /** @returns {[string, string]} a kind of state and its words */
  describe() {
    if (this.refusal) return ["refused", `refused: ${forPeople(atOwnPlace(this.refusal.message, ownStart(this.filter)))}`];
    if (this.look.range) return this.look.describe();
    if (!this.pausedAt) return this.board.isFinding && this.stream === this.board.shared ? ["wait", "asking which rule the server refuses"] : describe(this.stream);
    const warning = this.board.floor.warn(this.pausedTime, Date.now() - (this.stream?.clockOffset ?? 0));
    const text = `paused, ${number(this.missed)} waiting`;
    return warning ? ["fading", `${text}. ${warning}`] : ["paused", text];
  }

  /** Of the matches of a message those that concern a column with a stream to itself. @param {any[]} [matched] */
  ofTag(matched = []) {
    const { saved } = this.filter;
    return saved.startsWith("tag:") ? matched.filter(({ tag }) => tag === saved.slice(4)) : matched;
  }

  /** Whether an event with a `status` is none of another tag of saved rules. @param {any} event */
  wants(event) {
    return !this.filter.saved || this.ofTag(event.matched).length > 0;
  }

  /** @param {any} message with a `status` @param {any[]} matched @returns {import("./rows.js").Item} */
  item(message, matched) {
    const { status, cursor } = message;
    const rules = this.filter.saved ? matched.map(({ tag, id }) => ({ filter: "your rule", term: tag || id })) : []; // and below each, what matched
    return { id: status.id, event: message, at: cursor ?? status.posted, make: () => postRow(status, [...rules, ...reasonsOf(matched)], this.app, { rule: this.rule, why: this.whyAll() }, message) };
  }

  whyAll() {
    if (this.filter.following) return "It is by somebody whom you follow, or to or about one of them.";
    const { sample } = this.filter;
    return sample > 0 && sample < 100 ? `It is in the ${sample} % sample, which is the same for everybody.` : "The column shows everything that is public.";
  }

  /** Takes all rows away; it can be undone for a while. */
  clear() {
    const held = this.look.clear();
    [this.missed, this.plot.ages] = [0, []];
    this.plot.counts.fill(0);
    this.alerts.show(0);
    this.showState();
    this.app.undo.later({ text: `The column ${this.title} is empty`, undone: () => this.rows.addOlder(held) });
  }

  /** @param {string} kind "gap", "warn", "since" or "info" @param {any} content */
  note(kind, content) {
    if ((this.pausedAt || this.look.range) && kind !== "info") return; // a pause reads on from its cursor, and meets the gap there
    this.rows.add(noteItem(kind, content));
  }

  /** Notes the place of a pause, or goes on with what is live: what came meanwhile is read into a row that stands for it. */
  togglePause() {
    if (this.look.range) return void this.look.show(null);
    if (this.pausedAt) this.rows.add(this.rows.leftOut(this.missed, this.pausedAt, true));
    this.missed = 0;
    this.pausedTime = this.stream?.cursorTime ?? NaN;
    this.pausedAt = this.pausedAt ? "" : this.stream?.cursor ?? "";
    this.showPause();
    this.showState();
  }

  /** Reads what came behind a place: of a post that was edited since, its last version. @param {string} at @param {number} limit */
  async readFrom(at, limit) {
    const body = { ...aloneParameters(this.filter), kinds: "post,edit", since: at, wait: "0", limit: String(limit) };
    const answer = await this.app.attempt(() => this.app.client.request("POST", "/v1/events", { body }));
    if (!answer) return null;
    const items = answer.events.flatMap((event) => {
      if (event.kind === "gap") return noteItem("gap", tellGap(event));
      return event.left || !this.wants(event) ? [] : this.item(event, this.ofTag(event.matched));
    });
    return { items, at: answer.cursor, more: answer.more };
  }

  showPause() {
    this.pauseButton.hidden = Boolean(this.look.range);
    const label = this.pausedAt ? "Resume" : "Pause";
    this.pauseButton.setAttribute("aria-label", `${label}: ${this.title}`);
    this.pauseButton.title = `${label} (space)`;
    fill(this.pauseButton, icon(this.pausedAt ? "play" : "pause"));
  }

  showState() {
    const [kind, text] = this.describe();
    const isEmpty = kind === "live" && !this.rows.total && !this.rows.items.length;
    const shown = isEmpty ? "live; nothing has matched yet" : text;
    showWidth(this);
    this.alerts.sign.hidden = !this.kept.alerts;
    if (this.words.textContent !== shown) this.words.textContent = shown;
    const told = ["paused", "fading", "refused", "range"].includes(kind) ? `${this.title}: ${shown}` : "";
    const isNew = this.state.dataset.state !== kind || (kind === "range" && !this.look.isBusy && !this.look.copied); // of a time, what was found is told too
    if (isNew && this.voice.textContent !== told) this.voice.textContent = told;
    if (this.state.dataset.state === kind) return; // buttons stay while one aims at them
    this.state.dataset.state = kind;
    const button = (/** @type {string} */ label, /** @type {() => void} */ onclick) => h("button", { class: "quiet", onclick }, label);
    fill(this.deeds, kind === "range" && button("Back to live", () => this.look.show(null)), kind === "bad" && button("Now", () => this.stream?.retryNow()),
      kind === "refused" && [button("Retry", () => this.board.retry(this)), button("Edit filter", () => this.board.actions.edit(this))]);
  }

  /** Once a second, while the page is visible. */
  tick() {
    this.plot.draw();
    fill(this.rate, showRate(this.plot.rate()));
    fill(this.age, this.plot.ages.length ? `${showAge(this.plot.age(0.5))} · p99 ${showAge(this.plot.age(0.99))}` : "");
    this.showState();
  }

  close() {
    this.own?.close();
    this.element.remove();
    this.alerts.close();
  }
}

/** @param {string} kind @param {any} content @returns {import("./rows.js").Item} */
const noteItem = (kind, content) => ({ id: kind === "since" ? kind : newKey(), count: Number(kind !== "since"), make: () => h("article", { class: ["row-note", kind] }, icon(kind === "gap" ? "gap" : kind === "since" ? "bell" : "warn"), h("span", {}, content)) });

/** @param {any} gap a message or an event */
const tellGap = (gap) => `Gap: ${gap.count === null || gap.count === undefined ? "An unknown number of" : number(gap.count)} entries of the log are missing here: ${GAPS[gap.reason] ?? gap.reason}.`;

/** @param {any} warning */
function tellWarning({ code, percent, filter, rule }) {
  if (code === "falling_behind") return `This page reads too slowly: ${percent} % of its buffer are in use.`;
  return `Warning ${code}${filter ? ` (${filter})` : ""}${rule ? ` ${rule}` : ""}`;
}
