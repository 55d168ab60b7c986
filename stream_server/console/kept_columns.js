// @ts-check
// The columns that a user keeps in this browser. An address may name others: those are shown, and replace nothing.

import { fromHash, toHash } from "./filter.js";

const KEPT = "stream-server.columns";

/** @typedef {import("./filter.js").Filter} Filter */

/** @param {Filter[]} filters */
export function keep(filters) {
  for (const storage of ["localStorage", "sessionStorage"]) write(storage, toHash(filters));
}

/** @returns {Filter[] | null} null if nothing was kept */
export const kept = () => fromHash(read("localStorage"));

/** Whether columns replace nothing of the user: they are kept, or were in this tab before another one kept others. @param {Filter[]} filters */
export function areOwn(filters) {
  const known = [read("localStorage"), read("sessionStorage")];
  return !known[0] || known.includes(toHash(filters));
}

/** The columns that an address names, or null. @param {string} hash */
export const named = (hash) => fromHash(hash.split("/")[2] ?? "");

/** @param {string} storage @param {string} columns */
function write(storage, columns) {
  try {
    /** @type {any} */ (globalThis)[storage].setItem(KEPT, columns);
  } catch {
    // The columns are then in the address alone.
  }
}

/** @param {string} storage @returns {string} */
function read(storage) {
  try {
    return /** @type {any} */ (globalThis)[storage].getItem(KEPT) ?? "";
  } catch {
    return "";
  }
}
