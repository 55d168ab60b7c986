// @ts-check
// A list of rows that is one stop of Tab, as the pattern "feed" of ARIA has it: the arrows, Page, Home and End go from row to
// row, left and right to what can be pressed in a row.

const CONTROLS = "a, button, summary";
const STEPS = /** @type {Record<string, number>} */ ({ ArrowDown: 1, PageDown: 1, ArrowUp: -1, PageUp: -1, Home: -Infinity, End: Infinity });

/** Takes what can be pressed in a row out of the order of Tab. @template {Element} T @param {T} row @returns {T} */
export function quieten(row) {
  for (const control of row.querySelectorAll(CONTROLS)) control.setAttribute("tabindex", "-1");
  return row;
}

/** @param {HTMLElement} list whose children are the rows, each with a tabindex @returns {() => void} to be called when there are others */
export function rove(list) {
  let stop = /** @type {Element | null} */ (null);
  const choose = (/** @type {Element | null} */ row) => {
    if (row === stop) return;
    stop?.setAttribute("tabindex", "-1");
    row?.setAttribute("tabindex", "0");
    stop = row;
  };
  const rowOf = (/** @type {any} */ node) => [...list.children].find((row) => row.contains(node)) ?? null;
  const rows = () => [...list.children].filter((row) => row.hasAttribute("tabindex") && row.checkVisibility());
  list.addEventListener("focusin", (event) => choose(rowOf(event.target)));
  list.addEventListener("keydown", (event) => {
    const target = /** @type {Element} */ (event.target);
    const row = rowOf(target);
    if (!row || event.ctrlKey || event.metaKey || event.altKey || target.matches("input, textarea, select")) return;
    const side = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    const menu = target.closest("details[open]");
    const within = side || menu ? [row, ...row.querySelectorAll(CONTROLS)].filter((one) => one.checkVisibility() && !one.ariaHidden) : rows();
    const step = side || STEPS[event.key];
    if (!step) return;
    event.preventDefault();
    const at = within.indexOf(side || menu ? target : row) + step;
    /** @type {HTMLElement} */ (within[Math.max(0, Math.min(within.length - 1, at))]).focus();
  });
  return () => choose(list.contains(document.activeElement) ? stop : list.firstElementChild);
}
