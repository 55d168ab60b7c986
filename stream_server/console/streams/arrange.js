// @ts-check
// A column's place and width: its head is dragged to another place, or moved by the arrow keys on its handle.

import { h, icon } from "../dom.js";

/** @typedef {import("../column.js").Column} Column */

const WIDTHS = ["narrow", "normal", "wide"];
const START_PX = 8; // a shorter way is a click

/** @param {Column} column @param {number} place */
function moveTo({ board, element, rows, app, title }, place) {
  const [focused, top, before] = [document.activeElement, rows.scroller.scrollTop, board.columns.findIndex((one) => one.element === element)];
  board.move(board.columns[before], place - before);
  rows.scroller.scrollTop = top; // an element that is put elsewhere begins at its top, without the focus
  if (element.contains(focused)) /** @type {HTMLElement} */ (focused).focus();
  app.say(`${title} is column ${board.columns.findIndex((one) => one.element === element) + 1} of ${board.columns.length}`);
}

/** The part of the head by which the pointer and the keys move the column. @param {Column} column */
export function handle(column) {
  const key = (/** @type {KeyboardEvent} */ event) => {
    const step = /** @type {Record<string, number>} */ ({ ArrowLeft: -1, ArrowRight: 1 })[event.key];
    if (!step) return;
    event.preventDefault();
    moveTo(column, column.board.columns.indexOf(column) + step);
  };
  return h("button", { class: "quiet grip", title: "Move: drag, or arrow keys", "aria-label": "Move the column: arrow keys", onkeydown: key }, icon("grip"));
}

/** How the pointer drags a column by its head: attributes of that. @param {Column} column */
export function dragging(column) {
  let start = NaN;
  const end = (/** @type {PointerEvent | null} */ event) => {
    const others = column.board.columns.filter((one) => one !== column).map(({ element }) => element.getBoundingClientRect());
    const place = event && others.filter(({ left, width }) => left + width / 2 < event.clientX).length;
    if (column.element.classList.contains("dragged") && place !== null && place !== column.board.columns.indexOf(column)) moveTo(column, place);
    column.element.classList.remove("dragged");
    start = NaN;
  };
  const begin = (/** @type {any} */ event) => {
    if (event.button || event.pointerType === "touch" || event.target.closest("button:not(.grip), .menu")) return;
    start = event.clientX;
    event.currentTarget.setPointerCapture(event.pointerId);
  };
  const move = (/** @type {PointerEvent} */ event) => { if (Math.abs(event.clientX - start) > START_PX) column.element.classList.add("dragged"); };
  return { onpointerdown: begin, onpointermove: move, onpointerup: end, onpointercancel: () => end(null) };
}

/** @param {Column} column @param {number} step */
export function widen(column, step) {
  const width = WIDTHS[Math.max(0, Math.min(2, WIDTHS.indexOf(column.element.dataset.width) + step))];
  column.kept = { ...column.kept, width };
  column.board.changed();
  column.app.say(`${column.title}: ${width}`);
}

/** @param {Column} column */
export const showWidth = ({ element, kept }) => void (element.dataset.width = WIDTHS.includes(kept.width) ? kept.width : "normal");
