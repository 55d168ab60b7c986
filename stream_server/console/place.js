// @ts-check
// Where a reader stands in a part of the page, so that Back leads there: what is scrolled, and what has the focus.

import { shelf } from "./dom.js";

const FRAMES = 12; // rows get their heights when they come into sight, on a busy machine late, and those above move the others

/**
 * Notes the place in an element and in the scrolled elements within, by the first row in sight.
 * @param {HTMLElement} root @param {HTMLElement} [outer] a scrolled element around it @returns {() => void} leads back there
 */
export function placeOf(root, outer = root) {
  const boxes = [...new Set([outer, ...root.querySelectorAll(/** @type {"div"} */ (".scroller, .board, .messages-box, .ops-scroll"))])];
  const offset = (/** @type {Element} */ box, /** @type {Element} */ row) => row.getBoundingClientRect().top - box.getBoundingClientRect().top;
  const places = boxes.filter((box) => box.scrollTop || box.scrollLeft).map((box) => {
    const row = [...box.querySelectorAll("article, .entry, .user-row")].find((each) => each.clientHeight && offset(box, each) >= 0);
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

/** Views that were left and may be shown again. They hold what only their user may see: nobody else gets one. */
export class Parked {
  /** @type {Map<string, {mounted: any, userId: string, root: HTMLElement, goBack: () => void}>} */ views = new Map();

  /** @param {string} name @param {any} view */
  put(name, view) {
    this.views.set(name, view);
    shelf.append(view.root);
  }

  /** @param {string} name @param {string} userId */
  take(name, userId) {
    if ([...this.views.values()].some((view) => view.userId !== userId)) this.discard();
    const found = this.views.get(name);
    this.views.delete(name);
    return found;
  }

  discard() {
    for (const { mounted, root } of this.views.values()) {
      root.remove();
      mounted.unmount?.();
    }
    this.views.clear();
  }
}
