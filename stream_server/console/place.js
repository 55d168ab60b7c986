// @ts-check
// Where a reader stands in a part of the page, so that Back leads there: what is scrolled, and what has the focus.

const ROWS = "article, .entry, .user-row";
const FRAMES = 3; // rows get their heights when they come into sight, and those above move the others

/**
 * Notes the place in an element and in the scrolled elements within, by the first row in sight.
 * @param {HTMLElement} root @param {HTMLElement} [outer] a scrolled element around it @returns {() => void} leads back there
 */
export function placeOf(root, outer = root) {
  const boxes = new Set([outer, ...root.querySelectorAll(/** @type {"div"} */ (".scroller, .board, .messages-box"))]);
  const places = [...boxes].filter((box) => box.scrollTop || box.scrollLeft).map((box) => {
    const row = [...box.querySelectorAll(ROWS)].find((each) => each.clientHeight && offset(box, each) >= 0);
    return { box, row, top: box.scrollTop, left: box.scrollLeft, from: row ? offset(box, row) : 0 };
  });
  const focused = root.contains(document.activeElement) && /** @type {HTMLElement} */ (document.activeElement);
  const hold = (/** @type {number} */ frames) => {
    for (const { box, row, from } of places) if (row && box.contains(row)) box.scrollTop += offset(box, row) - from;
    if (frames) requestAnimationFrame(() => hold(frames - 1));
  };
  return () => {
    if (focused) focused.focus({ preventScroll: true });
    for (const { box, top, left } of places) box.scrollTo(left, top);
    hold(FRAMES);
  };
}

/** How far a row is below the upper edge of a box. @param {Element} box @param {Element} row */
const offset = (box, row) => row.getBoundingClientRect().top - box.getBoundingClientRect().top;
