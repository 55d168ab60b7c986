// @ts-check
// A column's place and width: its head is dragged to another place, or moved by the arrow keys on its handle.

import { h, icon } from "../dom.js";

/** @typedef {import("../column.js").Column} Column */

const WIDTHS = ["narrow", "normal", "wide"];
const START_PX = 8; // a shorter way is a click
const placeOf = (/** @type {Column} */ column) => column.board.columns.indexOf(column);

/** @param {Column} column @param {number} step */
export function shift(column, step) {
  const { board, app, title } = column;
  board.move(column, placeOf(column) + step);
  board.changed();
  app.say(`${title} is column ${placeOf(column) + 1} of ${board.columns.length}`);
}

/** The part of the head by which the pointer and the keys move the column. @param {Column} column */
export function handle(column) {
  const key = (/** @type {KeyboardEvent} */ event) => {
    const step = Number(event.key === "ArrowRight") - Number(event.key === "ArrowLeft");
    if (step) (event.preventDefault(), shift(column, step));
  };
  return h("button", { class: "quiet grip", title: "Move: drag, or arrow keys", "aria-label": "Move the column: arrow keys", onkeydown: key }, icon("grip"));
}

/** How the pointer drags a column by its head: attributes of that. @param {Column} column */
export function dragging(column) {
  let start = NaN;
  const stop = () => {
    column.element.classList.remove("dragged");
    start = NaN;
    removeEventListener("keydown", cancel);
  };
  const cancel = (/** @type {KeyboardEvent} */ event) => { if (event.key === "Escape") stop(); };
  const end = (/** @type {PointerEvent} */ { type, clientX }) => {
    const place = column.board.columns.filter(({ element }) => element !== column.element && element.getBoundingClientRect().left + element.offsetWidth / 2 < clientX).length;
    const isDrop = column.element.classList.contains("dragged") && type === "pointerup" && place !== placeOf(column);
    stop();
    if (isDrop) shift(column, place - placeOf(column));
  };
  const begin = (/** @type {any} */ event) => {
    if (event.button || event.pointerType === "touch" || event.target.closest("button:not(.grip), .menu")) return;
    start = event.clientX;
    addEventListener("keydown", cancel);
    event.currentTarget.setPointerCapture(event.pointerId);
  };
  const move = (/** @type {PointerEvent} */ event) => { if (Math.abs(event.clientX - start) > START_PX) column.element.classList.add("dragged"); };
  return { onpointerdown: begin, onpointermove: move, onpointerup: end, onpointercancel: end };
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
