// @ts-check
// A map of the world on which boxes are drawn: by mouse, by keys, as four numbers, and by a finger while "Draw a box" is checked,
// since fingers scroll past it. It is SVG in degrees and no canvas, so that the style sheet colours and stretches it.

import { fill, h, icon, svg, tool } from "./dom.js";

const LEAST_DEGREES = 0.05; // a smaller drag is a click
const NAMES = ["West", "South", "East", "North"];

/** @typedef {number[]} Box west, south, east, north; with west above east it crosses the date line */

const clampLatitude = (/** @type {number} */ lat) => Math.min(90, Math.max(-90, lat));
const wrapLongitude = (/** @type {number} */ lon) => (lon >= -180 && lon <= 180 ? lon : ((((lon + 180) % 360) + 360) % 360) - 180);
const round = (/** @type {number} */ degrees) => Math.round(degrees * 100) / 100;

/** @param {Box} box in degrees that may go beyond the date line @returns {Box} */
function normal([west, south, east, north]) {
  const lats = [clampLatitude(Math.min(south, north)), clampLatitude(Math.max(south, north))];
  const [from, to] = [Math.min(west, east), Math.max(west, east)];
  if (to - from >= 360) return [-180, lats[0], 180, lats[1]].map(round);
  return [wrapLongitude(from), lats[0], wrapLongitude(to), lats[1]].map(round);
}

/** The east of a box, beyond the date line if the box crosses it. @param {Box} box */
const right = ([west, , east]) => (east < west ? east + 360 : east);

/** The parts of a box as the map shows it: two if it crosses the date line. @param {Box} box @returns {Box[]} */
const halves = ([west, south, east, north]) => west <= east ? [[west, south, east, north]] : [[west, south, 180, north], [-180, south, east, north]];

/** The land, and the same once more beyond the date line on both sides: a ring that crosses the line ends there. */
function land() {
  const parts = [-360, 0, 360].map((turn) => svg("path", { class: "land", transform: `translate(${turn}) scale(0.2)` }));
  fetch(new URL("coast.json", import.meta.url)).then((answer) => answer.json()).then(
    ({ rings }) => parts.forEach((part) => part.setAttribute("d", rings.join(""))), () => {}); // without the land, boxes can be drawn too
  return parts;
}

function grid() {
  const meridians = Array.from({ length: 13 }, (_, index) => `M${30 * index - 180} -90V90`);
  const parallels = Array.from({ length: 7 }, (_, index) => `M-180 ${30 * index - 90}H180`);
  return svg("path", { d: [...meridians, ...parallels].join("") });
}

/** Draws in degrees, with the south below: the second number of a place is its latitude times -1. */
export class WorldMap {
  /** @param {Box[]} boxes @param {() => void} onChange */
  constructor(boxes, onChange) {
    this.boxes = boxes.map((box) => [...box]);
    this.selected = this.boxes.length - 1;
    this.onChange = onChange;
    this.zoom = 1;
    this.center = [0, 10];
    /** @type {any} */ this.drag = null;
    this.areas = svg("g", {});
    this.map = svg("svg", {
      class: "map", tabindex: "0", role: "application",
      "aria-label": "World map. Drag to draw a box. Enter adds a box, arrows move it, Shift and arrows resize it, Delete removes it.",
      onpointerdown: (/** @type {PointerEvent} */ event) => this.down(event),
      onpointermove: (/** @type {PointerEvent} */ event) => this.move(event),
      onlostpointercapture: () => this.up(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    }, grid(), land(), this.areas);
    this.list = h("div", { class: "chips" });
    this.numbers = h("div", { class: "numbers" });
    this.drawing = h("input", { type: "checkbox" }); // whether a finger or a pen draws, and does not scroll
    this.element = h("div", { class: "map-box" },
      h("div", { class: "map-frame" }, this.map, h("div", { class: "map-tools" }, tool(icon("plus"), "Zoom in", () => this.zoomBy(1)), tool("–", "Zoom out", () => this.zoomBy(-1)))),
      h("label", { class: "check map-draw" }, this.drawing, "Draw a box"), this.list, this.numbers);
    this.show();
  }

  /** @param {PointerEvent} event @returns {number[]} longitude and latitude */
  place(event) {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.map.getScreenCTM().inverse());
    return [x, -y];
  }

  /** @param {number} step */
  zoomBy(step) {
    this.zoom = Math.min(16, Math.max(1, this.zoom * 2 ** step));
    const box = this.boxes[this.selected];
    if (box) this.center = [(box[0] + right(box)) / 2, (box[1] + box[3]) / 2];
    this.draw();
  }

  /** @param {PointerEvent} event */
  down(event) {
    const [lon, lat] = this.place(event);
    const found = this.boxes.findIndex((box) => halves(box).some(([w, s, e, n]) => lon >= w && lon <= e && lat >= s && lat <= n));
    if (found >= 0) this.selected = found;
    if (event.pointerType === "mouse" || this.drawing.checked) {
      this.map.setPointerCapture(event.pointerId);
      this.drag = { from: [lon, lat], moves: found >= 0 ? [...this.boxes[found]] : null, isNew: found < 0 };
    }
    this.show();
  }

  up() {
    if (this.drag && !this.drag.isNew) this.drawing.checked = false; // a finger scrolls again
    this.drag = null;
  }

  /** @param {PointerEvent} event */
  move(event) {
    if (!this.drag) return;
    const [lon, lat] = this.place(event);
    const [fromLon, fromLat] = this.drag.from;
    if (this.drag.moves) return this.shift(this.drag.moves, lon - fromLon, lat - fromLat);
    if (Math.abs(lon - fromLon) < LEAST_DEGREES || Math.abs(lat - fromLat) < LEAST_DEGREES) return;
    if (this.drag.isNew) this.selected = this.boxes.length;
    this.drag.isNew = false;
    this.put([fromLon, fromLat, lon, lat]);
  }

  /** @param {Box} box @param {number} east @param {number} north */
  shift(box, east, north) {
    const up = Math.min(90 - box[3], Math.max(-90 - box[1], north));
    this.put([box[0] + east, box[1] + up, right(box) + east, box[3] + up]);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = (event.altKey ? 0.1 : 2) / this.zoom;
    const [east, north] = /** @type {Record<string, number[]>} */ ({ ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] })[event.key] ?? [0, 0];
    const box = this.boxes[this.selected];
    if (event.key === "Enter") this.addBox();
    else if (event.key === "+" || event.key === "-") this.zoomBy(event.key === "+" ? 1 : -1);
    else if (box && (event.key === "Delete" || event.key === "Backspace")) this.removeBox(this.selected);
    else if (box && (east || north)) this[event.shiftKey ? "resize" : "shift"](box, east, north);
    else return;
    event.preventDefault();
  }

  /** @param {Box} box @param {number} moreEast @param {number} moreNorth */
  resize(box, moreEast, moreNorth) {
    const [west, south, east, north] = [box[0], box[1], right(box) + moreEast, box[3] + moreNorth];
    if (east - west >= LEAST_DEGREES && north - south >= LEAST_DEGREES) this.put([west, south, east, north]);
  }

  addBox() {
    const [lon, lat] = this.center;
    const half = 10 / this.zoom;
    this.selected = this.boxes.length;
    this.put([lon - half, lat - half / 2, lon + half, lat + half / 2]);
  }

  /** @param {number} index */
  removeBox(index) {
    this.boxes.splice(index, 1);
    this.selected = this.boxes.length - 1;
    this.show();
    this.onChange();
  }

  /** Puts a box, in degrees that may go beyond the date line, in the place of the selected one. @param {Box} box */
  put(box) {
    this.boxes[this.selected] = normal(box);
    this.show();
    this.onChange();
  }

  /** Shows the boxes on the map and as chips, and the selected one as four numbers. */
  show() {
    this.draw();
    const box = this.boxes[this.selected];
    fill(this.numbers, box ? box.map((value, side) => h("label", {}, NAMES[side], h("input", {
      type: "number", step: "0.01", min: side % 2 ? -90 : -180, max: side % 2 ? 90 : 180, value,
      onchange: (/** @type {Event} */ event) => this.setSide(side, /** @type {HTMLInputElement} */ (event.target)),
    }))) : h("p", { class: "muted small" }, "Drag on the map, or add a box and move it by arrow keys."));
  }

  /** Takes a number that was typed. The fields stay, since one of them has the focus. @param {number} side @param {HTMLInputElement} input */
  setSide(side, input) {
    if (!input.checkValidity() || input.value === "") return input.reportValidity();
    this.boxes[this.selected][side] = round(Number(input.value));
    this.draw();
    this.onChange();
  }

  draw() {
    const span = 360 / this.zoom;
    const west = Math.min(180 - span, Math.max(-180, this.center[0] - span / 2));
    const north = Math.max(-90 + span / 2, Math.min(90, this.center[1] + span / 4));
    this.map.setAttribute("viewBox", `${west} ${-north} ${span} ${span / 2}`);
    fill(this.areas, this.boxes.map((box, index) => halves(box).map(([from, south, to, top]) =>
      svg("rect", { class: index === this.selected && "on", x: from, y: -top, width: to - from, height: top - south }))));
    fill(this.list, this.boxes.map((box, index) => h("span", { class: ["chip", index === this.selected && "on"] },
      h("button", { type: "button", class: "chip-text", onclick: () => ((this.selected = index), this.show()) }, box.join(", ")),
      h("button", { type: "button", class: "chip-x", "aria-label": `Remove the box ${box.join(", ")}`, onclick: () => this.removeBox(index) }, icon("close")))),
      h("button", { type: "button", class: "chip add", onclick: () => this.addBox() }, icon("plus"), "Box"));
  }
}
