// @ts-check
// A column's place and width: its head is dragged to another place, or moved by the arrow keys on its handle.

import { h, icon } from "../dom.js";

const WIDTHS = ["narrow", "normal", "wide"];
const START_PX = 8; // a shorter way is a click

/** @param {import("../column.js").Column} column @param {number} place */
function moveTo(column, place) {
  const { board, element, rows, app, title } = column;
  const focused = document.activeElement;
  const top = rows.scroller.scrollTop;
  board.move(column, place - board.columns.indexOf(column));
  rows.scroller.scrollTop = top; // an element that is put elsewhere begins at its top, without the focus
  if (element.contains(focused)) /** @type {HTMLElement} */ (focused).focus();
  app.say(`${title} is column ${board.columns.indexOf(column) + 1} of ${board.columns.length}`);
}

/** The part of the head by which keys move the column. @param {import("../column.js").Column} column */
export function handle(column) {
  const key = (/** @type {KeyboardEvent} */ event) => {
    const step = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowRight: 1 })[event.key];
    if (!step) return;
    event.preventDefault();
    moveTo(column, column.board.columns.indexOf(column) + step);
  };
  return h("button", { class: "quiet grip", title: "Move: drag, or arrow keys", "aria-label": `Move ${column.title}: arrow keys`, onkeydown: key }, icon("grip"));
}

/** Lets the pointer drag the column by its head. @param {import("../column.js").Column} column @param {HTMLElement} head */
export function makeMovable(column, head) {
  let start = NaN;
  const target = (/** @type {PointerEvent} */ event) => {
    const middles = column.board.columns.map(({ element }) => element.getBoundingClientRect()).map(({ left, width }) => left + width / 2);
    const place = column.board.columns.indexOf(column);
    return middles.filter((middle, index) => index !== place && middle < event.clientX).length;
  };
  const end = () => { start = NaN; column.element.classList.remove("dragged"); };
  head.addEventListener("pointerdown", (event) => {
    const isOther = /** @type {Element} */ (event.target).closest("button:not(.grip), .menu");
    if (event.button || event.pointerType === "touch" || isOther) return;
    start = event.clientX;
    head.setPointerCapture(event.pointerId);
  });
  head.addEventListener("pointermove", (event) => { if (Math.abs(event.clientX - start) > START_PX) column.element.classList.add("dragged"); });
  head.addEventListener("pointerup", (event) => {
    const isDragged = column.element.classList.contains("dragged");
    end();
    if (isDragged && target(event) !== column.board.columns.indexOf(column)) moveTo(column, target(event));
  });
  head.addEventListener("pointercancel", end);
}

/** @param {import("../column.js").Column} column @param {number} step */
export function widen(column, step) {
  const at = Math.max(0, WIDTHS.indexOf(column.kept.width ?? "normal"));
  const width = WIDTHS[Math.max(0, Math.min(WIDTHS.length - 1, at + step))];
  column.kept = { ...column.kept, width: width === "normal" ? undefined : width };
  showWidth(column);
  column.board.actions.changed();
  column.app.say(`${column.title}: ${width}`);
}

/** @param {import("../column.js").Column} column */
export function showWidth(column) {
  column.element.dataset.width = WIDTHS.includes(column.kept.width) ? column.kept.width : "normal";
}
