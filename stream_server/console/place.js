// @ts-check
// Where a reader stands in a part of the page, so that Back leads there: what is scrolled, and what has the focus.

const ROWS = "article, .entry, .user-row, .docs-route";

/**
 * Notes the place in an element and in the scrolled elements within; its rows count, since newer ones may come above them.
 * @param {HTMLElement} root @param {HTMLElement | null} [outer] a scrolled element around it @returns {() => void} leads back there
 */
export function placeOf(root, outer = null) {
  const scrolled = [outer, root, ...root.querySelectorAll(/** @type {"div"} */ (".scroller, .board, .messages-box"))];
  const places = scrolled.flatMap((box) => (box?.scrollTop || box?.scrollLeft ? [{ box, top: box.scrollTop, left: box.scrollLeft, ...firstRow(box) }] : []));
  const focused = /** @type {HTMLElement | null} */ (root.contains(document.activeElement) ? document.activeElement : null);
  return () => {
    focused?.focus({ preventScroll: true });
    for (const { box, top, left, row, offset } of places) {
      box.scrollTo({ top, left, behavior: "instant" });
      if (row && box.contains(row)) box.scrollTop += offsetIn(box, row) - offset;
    }
  };
}

/** The first row that is in sight, and how far it is from the upper edge. @param {HTMLElement} box @returns {{row: Element | undefined, offset: number}} */
function firstRow(box) {
  const row = [...box.querySelectorAll(ROWS)].find((each) => each.clientHeight && offsetIn(box, each) >= 0);
  return { row, offset: row ? offsetIn(box, row) : 0 };
}

/** @param {Element} box @param {Element} row */
const offsetIn = (box, row) => row.getBoundingClientRect().top - box.getBoundingClientRect().top;
