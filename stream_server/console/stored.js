// @ts-check
// Texts that the browser keeps.

/** A text that the browser keeps, for this tab (`sessionStorage`) or for all. It may refuse both to a page. @param {"localStorage" | "sessionStorage"} where @param {string} key @returns {string} "" if nothing is kept */
export function stored(where, key) {
  try {
    return globalThis[where].getItem(key) ?? "";
  } catch {
    return "";
  }
}

/** @param {"localStorage" | "sessionStorage"} where @param {string} key @param {string} text "" forgets what was kept */
export function store(where, key, text) {
  try {
    if (text) globalThis[where].setItem(key, text);
    else globalThis[where].removeItem(key);
  } catch {
    // It is then known to this page alone.
  }
}
