// @ts-check
// The columns and their connections. All columns with rules share one stream: each has a tagged rule, and a message is
// routed by the tags of `matched`. A column that is a sample has a stream to itself, since a sample cannot stand beside
// rules on the wire. So has a column whose rule would make the address of the shared stream too long.

import { Column } from "./column.js";
import { aloneParameters, asksSame, readFilter, SHOWN_KINDS, toParameters } from "./filter.js";
import { LogFloor } from "./log_floor.js";
import { RatePlot, showAge, showRate } from "./plot.js";
import { explain, newKey } from "./forms.js";
import { refusalOf } from "./rule_field.js";
import { showWorst } from "./voice.js";

const OWN_SINCE = "-30s"; // how far back a column without a rule begins
const SAVED_SINCE = "-1h"; // and one of saved rules, which then reads with the rules of each moment

const MAX_COLUMNS = 40;
const MAX_COUNTED = 20_000; // events that are remembered, as another column may get them too
const MAX_SHARED_CHARS = 40_000; // of rules in the address of the shared stream; a server reads 64 KiB

export class Board {
  /** @param {any} app @param {HTMLElement} strip where columns stand @param {{edit: (column: Column) => void, copy: (column: Column) => void, focus: (column: Column) => void, changed: () => void}} actions */
  constructor(app, strip, actions) {
    this.app = app;
    this.strip = strip;
    this.actions = actions;
    /** @type {Column[]} */ this.columns = [];
    /** @type {import("./client.js").Stream | null} */ this.shared = null;
    this.tags = 0;
    this.isFinding = false; // which rules the server refuses
    this.floor = new LogFloor(app.client);
    this.plot = new RatePlot(); // of all columns together
    /** @type {Set<string>} */ this.counted = new Set(); // the events that it has
  }

  /** Shows these columns: those that are open keep their rows and their connection, and others are closed. @param {any[]} all filters, or columns that are kept */
  follow(all) {
    for (const column of [...this.columns]) if (!all.some(({ id }) => id === column.kept.id)) this.take(column);
    for (const [index, one] of all.slice(0, MAX_COLUMNS).entries()) {
      const known = this.columns.find(({ kept }) => kept.id === one.id);
      if (!known) this.place(one, index);
      else this.move(Object.assign(this.change(known, readFilter(one)), { kept: one }), index);
    }
    this.changed();
  }

  /** Gives a column another filter; another title alone loads nothing anew. @param {Column} column @param {import("./filter.js").Filter} filter */
  change(column, filter) {
    if (asksSame(column.filter, filter)) return column.rename(filter);
    const index = this.columns.indexOf(column);
    this.take(column);
    return this.place({ ...column.kept, ...filter }, index);
  }

  /** @param {any} given a filter, or one that is kept @param {Column | null} [replaced] @param {number} [index] its place, unless it replaces another */
  add(given, replaced, index = this.columns.length) {
    const column = replaced ? this.change(replaced, given) : this.place(given, index);
    this.changed();
    return column;
  }

  /** Makes a column at a place among the others. @param {any} given a filter, or one that is kept @param {number} index */
  place(given, index) {
    const column = new Column(this, given.id ? readFilter(given) : given, `c${++this.tags}`, given.id ? given : { id: newKey() });
    const shared = this.columns.filter((other) => !other.isAlone).reduce((sum, other) => sum + encodeURIComponent(other.rule).length, 0);
    column.isAlone = shared + encodeURIComponent(column.rule).length > MAX_SHARED_CHARS;
    this.strip.insertBefore(column.element, this.columns[index]?.element ?? this.strip.querySelector(".add-column"));
    this.columns.splice(index, 0, column);
    void this.loadHistory(column);
    return column;
  }

  /** @param {Column} column */
  take(column) {
    column.close();
    this.columns = this.columns.filter((one) => one !== column);
  }

  /** Closes a column; it can be undone for a while. @param {Column} column */
  remove(column) {
    const index = this.columns.indexOf(column);
    const undone = () => this.add({ ...column.kept, ...column.filter, id: newKey() }, null, Math.min(index, this.columns.length));
    this.take(column);
    this.changed();
    /** @type {any} */ (this.columns[Math.min(index, this.columns.length - 1)]?.element ?? this.strip.querySelector("button")).focus();
    this.app.undo.later({ text: `The column ${column.title} is closed`, undone });
  }

  /** Puts a column elsewhere among the others, if there is such a place. @param {Column} column @param {number} place */
  move(column, place) {
    if (!this.columns[place] || this.columns[place] === column) return;
    const [{ element, rows }, focused] = [column, document.activeElement];
    const { scrollTop } = rows.scroller;
    this.columns.splice(this.columns.indexOf(column), 1);
    this.columns.splice(place, 0, column);
    this.strip.insertBefore(element, this.columns[place + 1]?.element ?? this.strip.querySelector(".add-column"));
    rows.scroller.scrollTop = scrollTop; // an element that is put elsewhere begins at its top, without the focus
    if (element.contains(focused)) /** @type {HTMLElement} */ (focused).focus();
  }

  /** Follows the columns with the connections. */
  changed() {
    this.connectShared();
    for (const column of this.columns) if (!column.own) this.connectOwn(column);
    this.showStates();
    this.actions.changed();
  }

  /** The view is shown again, perhaps after a new sign-in. Open streams go on by themselves; ended ones begin at their cursor. */
  resume() {
    for (const column of this.columns) if (column.own?.isFinal) this.connectOwn(column);
    this.changed();
    for (const column of this.columns) column.rows.schedule();
  }

  /** Asks again for what the server refused, which may be allowed now. @param {Column} column */
  retry(column) {
    const wasRefused = column.refusal;
    column.refusal = null;
    if (column.own?.isFinal) this.connectOwn(column);
    this.changed();
    if (wasRefused) void this.loadHistory(column);
  }

  connectShared() {
    const parts = this.columns.filter((column) => !column.isAlone && !column.refusal).map((column) => toParameters(column.filter, column.tag).shared ?? {});
    const rules = parts.flatMap(({ rule }) => rule ?? []).sort(); // another order of the columns is no other filter
    const follow = parts.find((part) => part.follow)?.follow;
    if (!rules.length && !follow) {
      this.shared?.close();
      this.shared = null;
      return;
    }
    const parameters = { ...(rules.length && { rule: rules }), ...(follow && { follow }), kinds: SHOWN_KINDS, explain: "true" };
    const isOpen = this.shared && !this.shared.isFinal;
    if (isOpen && JSON.stringify(parameters) === JSON.stringify(this.shared?.parameters)) return;
    if (isOpen) return this.shared?.update(parameters);
    this.shared = this.app.client.stream(parameters, {
      since: placeOf(this.shared),
      onMessage: (message) => this.route(message),
      onState: (state) => (state.name === "refused" && this.findRefused(state.error), this.showStates()),
      onRefusedUpdate: (error) => this.findRefused(error),
    });
  }

  /**
   * The server refuses the rules together. A rule of an address was not checked before: asks for each, so that a column
   * whose rule is bad says so, and the others go on without it.
   * @param {import("./client.js").ApiError | undefined} error
   */
  async findRefused(error) {
    if (error?.status !== 400) return;
    const shared = this.columns.filter((column) => column.rule && !column.isAlone && !column.refusal);
    this.isFinding = true;
    const refusals = await Promise.all(shared.map(({ rule }) => refusalOf(this.app.client, rule)));
    this.isFinding = false;
    refusals.forEach((refusal, index) => { if (refusal?.status === 400) shared[index].refusal = refusal; });
    if (shared.some((column) => column.refusal)) this.changed();
    else if (!this.shared?.isFinal) this.app.say(`The filters were not changed: ${explain(error)}`, "danger");
  }

  /** @param {Column} column */
  connectOwn(column) {
    const { own } = column.isAlone ? { own: aloneParameters(column.filter) } : toParameters(column.filter, column.tag);
    if (!own) return;
    column.own = this.app.client.stream({ ...own, kinds: SHOWN_KINDS }, {
      since: placeOf(column.own) || (column.isAlone ? undefined : column.filter.saved ? SAVED_SINCE : OWN_SINCE),
      onMessage: (message) => {
        if (message.kind !== "post" || column.wants(message)) column.receive(message, column.ofTag(message.matched));
      },
      onState: () => this.showStates(),
    });
  }

  /** @param {any} message of the shared stream */
  route(message) {
    for (const column of this.columns.filter((one) => !one.own && !one.refusal)) {
      const matched = (message.matched ?? []).filter(({ filter, tag }) => (column.filter.following ? filter === "follow" : tag === column.tag));
      if (message.kind !== "post" || matched.length) column.receive(message, matched);
    }
  }

  /**
   * Loads what the past hour has of a column, as soon as its filter is in force: what happens before is then in the
   * history, and the rest comes live.
   * @param {Column} column
   */
  async loadHistory(column) {
    const isWanted = () => this.columns.includes(column) && !column.refusal && (column.rule || column.filter.following);
    for (let turn = 0; turn < 100 && isWanted() && !column.stream?.isSettled; turn++) await new Promise((resolve) => setTimeout(resolve, 50));
    if (isWanted()) await column.look.begin().catch((error) => error.column || column.note("info", `The past hour could not be read: ${explain(error)}`));
  }

  showStates() {
    for (const column of this.columns) column.showState();
    this.showTotal();
  }

  tick() {
    if (this.columns.some((column) => column.pausedAt)) this.floor.follow();
    for (const column of this.columns) column.tick();
    if (this.counted.size > MAX_COUNTED) this.counted.clear(); // few are on their way to another column just then
    this.showTotal();
  }

  showTotal() {
    if (!this.strip.isConnected) return;
    const ages = this.columns.map((column) => column.plot.age(0.99)).filter((age) => !Number.isNaN(age));
    const within = ages.length ? ` · 99 % within ${showAge(Math.max(...ages))}` : "";
    const streams = this.columns.filter(({ refusal }) => !refusal).map(({ stream }) => stream);
    showWorst(this.app, this.isFinding ? [null] : streams, ` · ${showRate(this.plot.rate())} in all columns${within}`);
  }

  close() {
    this.shared?.close();
    for (const column of this.columns) column.close();
  }
}

/** Where a stream that has ended was, for the next one. @param {import("./client.js").Stream | null} stream */
const placeOf = (stream) => (stream?.state.error?.code === "invalid_cursor" ? "" : stream?.cursor);
