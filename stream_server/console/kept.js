// @ts-check
// The columns that a user keeps in this browser, which all tabs share. Each has an id, a place among the others (`at`), and a
// count of its changes (`v`), so that tabs which change something at the same moment come to the same columns: both keep what
// they added, and of one column the later change stays. Ids of closed columns are remembered, so that no tab brings one back.

import { fromHash, short } from "./filter.js";
import { newKey } from "./forms.js";
import { BASE } from "./session.js";
import { store, stored } from "./stored.js";

export const KEPT = `stream-server.columns${BASE}`;
const MAX_GONE = 200;

/**
 * @typedef {{id: string, v?: number, at?: number, [member: string]: any}} Kept  with the parts of a filter; members that nobody here knows stay
 * @typedef {{columns: Kept[], gone: string[], isOld?: boolean}} State
 */

/** What is kept, or null. Earlier versions kept a list of filters, and an open tab may still do. @param {string} [text] @returns {State | null} */
export function load(text = stored("localStorage", KEPT)) {
  try {
    const { columns, gone } = JSON.parse(text);
    return { columns: columns.filter((/** @type {any} */ one) => typeof one?.id === "string"), gone: gone.map(String) };
  } catch {
    const columns = fromHash(text)?.map((filter, at) => ({ ...short(filter), id: `old-${at}`, at }));
    return columns ? { columns, gone: [], isOld: true } : null;
  }
}

/** The column that another view has added, until it is brought into sight. */
export const added = { id: "" };

/** Keeps one more column, which the view Streams then shows. @param {Partial<import("./filter.js").Filter>} filter */
export function keepColumn(filter) {
  const { columns, gone } = load() ?? { columns: [], gone: [] };
  const kept = { ...filter, id: (added.id = newKey()), at: Math.max(0, ...columns.map(({ at }) => at ?? 0)) + 1 };
  store("localStorage", KEPT, JSON.stringify({ columns: [...columns, kept], gone }));
}

/** The same for both orders of the two. @param {State} one @param {State | null} other @returns {State} */
function merge(one, other) {
  if (!other || other.isOld) return one;
  const gone = [...new Set([...one.gone, ...other.gone])].slice(-MAX_GONE);
  /** @type {Map<string, Kept>} */ const latest = new Map();
  for (const kept of [...one.columns, ...other.columns]) {
    const known = latest.get(kept.id);
    const changes = (kept.v ?? 0) - (known?.v ?? 0);
    if (!known || changes > 0 || (!changes && textOf(kept) > textOf(known))) latest.set(kept.id, kept);
  }
  for (const id of gone) latest.delete(id);
  return { columns: [...latest.values()].sort((a, b) => (a.at ?? 0) - (b.at ?? 0) || (a.id < b.id ? -1 : 1)), gone };
}

/** A column as a text, whatever order its members have. @param {Kept} kept */
const textOf = ({ v, ...rest }) => JSON.stringify(Object.entries(rest).sort());

/** @param {Kept[]} one @param {Kept[]} other */
export const areSame = (one, other) => one.map(textOf).join() === other.map(textOf).join();

/** What a tab knows of the columns that are kept. */
export class Keeper {
  state = load() ?? /** @type {State} */ ({ columns: [], gone: [] });

  /**
   * Keeps the columns on show, and what other tabs kept meanwhile. Those that are not on show any more are gone.
   * @param {import("./column.js").Column[]} columns @param {string} heard what another tab has just kept, which may not be in the storage yet @returns {Kept[]} all columns
   */
  save(columns, heard) {
    const before = new Map(this.state.columns.map((one) => [one.id, one]));
    const shown = columns.map((column) => (column.kept = keptOf(column)));
    setPlaces(shown);
    for (const kept of shown) {
      const known = before.get(kept.id);
      if (!known || textOf(known) !== textOf(kept)) kept.v = (known?.v ?? 0) + 1;
      before.delete(kept.id);
    }
    const [mine, stands] = [{ columns: shown, gone: [...this.state.gone, ...before.keys()] }, load()];
    this.state = merge(merge(mine, load(heard)), stands);
    const isKept = stands && areSame(this.state.columns, stands.columns) && this.state.gone.every((id) => stands.gone.includes(id));
    if (!isKept) store("localStorage", KEPT, JSON.stringify(this.state));
    return this.state.columns;
  }
}

/** @param {import("./column.js").Column} column @returns {Kept} */
const keptOf = ({ kept, filter }) => ({ id: kept.id, ...Object.fromEntries(Object.entries(kept).filter(([name]) => !(name in filter))), ...short(filter) });

/** Lets the places grow from the first column to the last; only those that have to get a new one. @param {Kept[]} all */
function setPlaces(all) {
  const before = (/** @type {number} */ index) => all[index - 1]?.at ?? 0;
  all.forEach((kept, index) => (kept.at ??= (before(index) + (all[index + 1]?.at ?? before(index) + 2)) / 2));
  if (all.some(({ at = 0 }, index) => at <= before(index))) all.forEach((kept, index) => (kept.at = index + 1));
}
