// @ts-check
// The columns that a user keeps in this browser. An address may name others: those are shown, and replace nothing.

import { fromHash, toHash } from "./filter.js";
import { store, stored } from "./storage.js";

const KEPT = "stream-server.columns";

/** @typedef {import("./filter.js").Filter} Filter */

/** @param {Filter[]} filters */
export function keep(filters) {
  store("localStorage", KEPT, toHash(filters));
  store("sessionStorage", KEPT, toHash(filters));
}

/** @returns {Filter[] | null} null if nothing was kept */
export const kept = () => fromHash(stored("localStorage", KEPT));

/** Whether columns replace nothing of the user: they are kept, or were in this tab before another one kept others. @param {Filter[]} filters */
export function areOwn(filters) {
  const known = [stored("localStorage", KEPT), stored("sessionStorage", KEPT)];
  return !known[0] || known.includes(toHash(filters));
}

/** The columns that an address names, or null. @param {string} hash */
export const named = (hash) => fromHash(hash.split("/")[2] ?? "");
