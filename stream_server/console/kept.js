// @ts-check
// The columns that a user keeps in this browser, which all tabs share. Each has an id, a place among the others, and a
// version, so that tabs which change something at the same moment come to the same columns: both keep what they added, and
// of one column the later change stays. What was closed is remembered, so that no other tab brings it back.

import { fromHash, newFilter, short } from "./filter.js";
import { store, stored } from "./session.js";

export const KEPT = "stream-server.columns";
const MAX_GONE = 200; // ids of closed columns

/**
 * @typedef {{id: string, v?: number, at?: number, [member: string]: any}} Kept
 *   The parts of a filter, and further members, which stay whatever they are: `column.kept` has them. `v` counts the
 *   changes, and a column with a lower `at` stands before one with a higher.
 * @typedef {{columns: Kept[], gone: string[]}} State
 */

/** What is kept, or null. Earlier versions kept a list of filters. @param {string} [text] @returns {State | null} */
export function load(text = stored("localStorage", KEPT)) {
  try {
    const { columns, gone } = JSON.parse(text);
    return { columns: columns.filter((/** @type {any} */ one) => typeof one?.id === "string"), gone: gone.map(String) };
  } catch {
    return fromHash(text)?.reduce((/** @type {State} */ all, filter, at) => (all.columns.push({ ...short(filter), id: `old-${at}`, at }), all), { columns: [], gone: [] }) ?? null;
  }
}

/** The same for both orders of the two. @param {State} one @param {State} other @returns {State} */
export function merge(one, other) {
  const gone = [...new Set([...one.gone, ...other.gone])].slice(-MAX_GONE);
  /** @type {Map<string, Kept>} */ const latest = new Map();
  for (const kept of [...one.columns, ...other.columns]) {
    const known = latest.get(kept.id);
    if (!known || isLater(kept, known)) latest.set(kept.id, kept);
  }
  for (const id of gone) latest.delete(id);
  return { columns: [...latest.values()].sort((a, b) => (a.at ?? 0) - (b.at ?? 0) || (a.id < b.id ? -1 : 1)), gone };
}

/** @param {Kept} one @param {Kept} other */
function isLater(one, other) {
  const changes = (one.v ?? 0) - (other.v ?? 0);
  return changes ? changes > 0 : textOf(one) > textOf(other);
}

/** A column as a text, whatever order its members have. @param {Kept} kept */
const textOf = ({ v, ...rest }) => JSON.stringify(Object.entries(rest).sort());

/** @param {Kept[]} one @param {Kept[]} other */
export const areSame = (one, other) => one.map(textOf).join() === other.map(textOf).join();

/** What one tab knows of the columns that are kept. */
export class Keeper {
  /** Begins with what is kept now. */
  constructor() {
    this.state = load() ?? { columns: [], gone: [] };
  }

  /**
   * Keeps the columns on show, and what other tabs kept meanwhile. Those that are not on show any more are gone.
   * @param {import("./column.js").Column[]} columns @param {string} heard what the browser says that another tab has just kept @returns {Kept[]} all columns, in order
   */
  save(columns, heard) {
    for (const column of columns) column.kept = keptOf(column);
    setPlaces(columns.map(({ kept }) => kept));
    const before = new Map(this.state.columns.map((one) => [one.id, one]));
    for (const { kept } of columns) {
      const known = before.get(kept.id);
      if (!known || textOf(known) !== textOf(kept)) kept.v = (known?.v ?? 0) + 1;
      before.delete(kept.id);
    }
    const mine = { columns: columns.map(({ kept }) => kept), gone: [...this.state.gone, ...before.keys()] };
    const stands = load() ?? { columns: [], gone: [] };
    this.state = [load(heard), stands].reduce((all, other) => merge(all, /** @type {State} */ (other ?? all)), /** @type {State} */ (mine));
    const isKept = areSame(this.state.columns, stands.columns) && this.state.gone.every((id) => stands.gone.includes(id));
    if (!isKept) store("localStorage", KEPT, JSON.stringify(this.state));
    return this.state.columns;
  }
}

/** @param {import("./column.js").Column} column @returns {Kept} */
function keptOf({ kept, filter }) {
  const parts = newFilter();
  const others = Object.entries(kept).filter(([name]) => !(name in parts));
  return /** @type {Kept} */ ({ ...Object.fromEntries(others), ...short(filter) });
}

/** Lets the places grow from the first column to the last; only those that have to get a new one. @param {Kept[]} all */
function setPlaces(all) {
  all.forEach((kept, index) => {
    const before = all[index - 1]?.at ?? 0;
    kept.at ??= (before + (all[index + 1]?.at ?? before + 2)) / 2;
  });
  if (all.some((kept, index) => index && Number(kept.at) <= Number(all[index - 1].at))) all.forEach((kept, index) => (kept.at = index + 1));
}
