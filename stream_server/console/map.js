// @ts-check
// A map of the world on which boxes are drawn: by mouse or touch, by keys, and as four numbers.

import { coastlines } from "./coast.js";
import { colour, fill, h, icon } from "./dom.js";

const LEAST_DEGREES = 0.05; // a smaller drag is a click
const ZOOMS = [1, 2, 4, 8, 16];
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

/** The parts of a box as the map shows it: two if it crosses the date line. @param {Box} box @returns {Box[]} */
function halves([west, south, east, north]) {
  return west <= east ? [[west, south, east, north]] : [[west, south, 180, north], [-180, south, east, north]];
}

export class WorldMap {
  /** @param {Box[]} boxes @param {() => void} onChange */
  constructor(boxes, onChange) {
    this.boxes = boxes.map((box) => [...box]);
    this.selected = this.boxes.length - 1;
    this.onChange = onChange;
    this.zoom = 1;
    this.center = [0, 10];
    /** @type {any} */ this.drag = null;
    this.land = coastlines();
    this.canvas = h("canvas", {
      class: "map", tabindex: "0", role: "application",
      "aria-label": "World map. Drag to draw a box. Enter adds a box, arrows move it, Shift and arrows resize it, Delete removes it.",
      onpointerdown: (/** @type {PointerEvent} */ event) => this.down(event),
      onpointermove: (/** @type {PointerEvent} */ event) => this.move(event),
      onpointerup: () => this.up(),
      onpointercancel: () => this.up(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
    });
    this.list = h("div", { class: "chips" });
    this.numbers = h("div", { class: "numbers" });
    const tool = (/** @type {any} */ name, /** @type {string} */ label, /** @type {() => void} */ work) =>
      h("button", { type: "button", class: "quiet", "aria-label": label, title: label, onclick: work }, name);
    this.element = h("div", { class: "map-box" },
      h("div", { class: "map-frame" }, this.canvas, h("div", { class: "map-tools" }, tool(icon("plus"), "Zoom in", () => this.zoomBy(1)), tool("–", "Zoom out", () => this.zoomBy(-1)))),
      this.list, this.numbers);
    this.watcher = new ResizeObserver(() => this.draw());
    this.watcher.observe(this.canvas);
    this.showBoxes();
  }

  close() {
    this.watcher.disconnect();
  }

  /** Degrees of the map that fit its width. */
  get span() {
    return 360 / this.zoom;
  }

  /** @param {PointerEvent} event @returns {number[]} longitude and latitude */
  place(event) {
    const frame = this.canvas.getBoundingClientRect();
    const perPixel = this.span / frame.width;
    return [this.west + (event.clientX - frame.left) * perPixel, this.north - (event.clientY - frame.top) * perPixel];
  }

  get west() {
    return Math.min(180 - this.span, Math.max(-180, this.center[0] - this.span / 2));
  }

  get north() {
    const tall = (this.span * (this.canvas.clientHeight || 1)) / (this.canvas.clientWidth || 2);
    return Math.max(-90 + tall, Math.min(90, this.center[1] + tall / 2));
  }

  /** @param {number} step */
  zoomBy(step) {
    const index = Math.min(ZOOMS.length - 1, Math.max(0, ZOOMS.indexOf(this.zoom) + step));
    this.zoom = ZOOMS[index];
    const box = this.boxes[this.selected];
    if (box) this.center = [(box[0] + (box[2] < box[0] ? box[2] + 360 : box[2])) / 2, (box[1] + box[3]) / 2];
    this.draw();
  }

  /** @param {PointerEvent} event */
  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    const [lon, lat] = this.place(event);
    const found = this.boxes.findIndex((box) => halves(box).some(([w, s, e, n]) => lon >= w && lon <= e && lat >= s && lat <= n));
    this.drag = { from: [lon, lat], moves: found >= 0 ? [...this.boxes[found]] : null, isNew: found < 0 };
    if (found >= 0) this.selected = found;
    this.draw();
  }

  /** @param {PointerEvent} event */
  move(event) {
    if (!this.drag) return;
    const [lon, lat] = this.place(event);
    const [fromLon, fromLat] = this.drag.from;
    if (this.drag.moves) return this.shift(this.drag.moves, lon - fromLon, lat - fromLat);
    if (Math.abs(lon - fromLon) < LEAST_DEGREES || Math.abs(lat - fromLat) < LEAST_DEGREES) return;
    if (this.drag.isNew) this.selected = this.boxes.push([]) - 1;
    this.drag.isNew = false;
    this.boxes[this.selected] = normal([fromLon, fromLat, lon, lat]);
    this.changed();
  }

  up() {
    this.drag = null;
    this.showBoxes();
  }

  /** @param {Box} box @param {number} east @param {number} north */
  shift(box, east, north) {
    const right = box[2] < box[0] ? box[2] + 360 : box[2];
    const up = Math.min(90 - box[3], Math.max(-90 - box[1], north));
    this.boxes[this.selected] = normal([box[0] + east, box[1] + up, right + east, box[3] + up]);
    this.changed();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const step = (event.altKey ? 0.1 : 2) / this.zoom;
    const [east, north] = /** @type {Record<string, number[]>} */ ({ ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] })[event.key] ?? [0, 0];
    const box = this.boxes[this.selected];
    if (event.key === "Enter") this.addBox();
    else if (event.key === "+" || event.key === "-") this.zoomBy(event.key === "+" ? 1 : -1);
    else if (!box || !(east || north || ["Delete", "Backspace"].includes(event.key))) return;
    else if (event.key === "Delete" || event.key === "Backspace") this.removeBox(this.selected);
    else if (event.shiftKey) this.resize(box, east, north);
    else this.shift(box, east, north);
    event.preventDefault();
    this.showBoxes();
  }

  /** @param {Box} box @param {number} moreEast @param {number} moreNorth */
  resize([west, south, east, north], moreEast, moreNorth) {
    const right = (east < west ? east + 360 : east) + moreEast;
    if (right - west < LEAST_DEGREES || north + moreNorth - south < LEAST_DEGREES) return;
    this.boxes[this.selected] = normal([west, south, right, north + moreNorth]);
    this.changed();
  }

  addBox() {
    const [lon, lat] = this.center;
    const half = 10 / this.zoom;
    this.selected = this.boxes.push(normal([lon - half, lat - half / 2, lon + half, lat + half / 2])) - 1;
    this.changed();
    this.showBoxes();
  }

  /** @param {number} index */
  removeBox(index) {
    this.boxes.splice(index, 1);
    this.selected = this.boxes.length - 1;
    this.changed();
    this.showBoxes();
  }

  changed() {
    this.draw();
    this.onChange();
  }

  /** Shows the boxes as chips, and the selected one as four numbers. */
  showBoxes() {
    this.draw();
    fill(this.list, this.boxes.map((box, index) => h("span", { class: ["chip", index === this.selected && "on"] },
      h("button", { type: "button", class: "chip-text", onclick: () => ((this.selected = index), this.showBoxes()) }, box.join(", ")),
      h("button", { type: "button", class: "chip-x", "aria-label": `Remove the box ${box.join(", ")}`, onclick: () => this.removeBox(index) }, icon("close")))),
      h("button", { type: "button", class: "chip add", onclick: () => this.addBox() }, icon("plus"), "Box"));
    const box = this.boxes[this.selected];
    fill(this.numbers, box ? box.map((value, side) => h("label", {}, NAMES[side], h("input", {
      type: "number", step: "0.01", min: side % 2 ? -90 : -180, max: side % 2 ? 90 : 180, value,
      onchange: (/** @type {Event} */ event) => this.setSide(side, /** @type {HTMLInputElement} */ (event.target)),
    }))) : h("p", { class: "muted small" }, "Drag on the map, or add a box and move it by arrow keys."));
  }

  /** @param {number} side @param {HTMLInputElement} input */
  setSide(side, input) {
    if (!input.checkValidity() || input.value === "") return input.reportValidity();
    this.boxes[this.selected][side] = round(Number(input.value));
    this.changed();
    this.draw();
  }

  draw() {
    const { canvas } = this;
    const [width, height, scale] = [canvas.clientWidth, canvas.clientHeight, devicePixelRatio || 1];
    if (!width || !height) return;
    canvas.width = width * scale;
    canvas.height = height * scale;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.scale(scale, scale);
    const perDegree = width / this.span;
    const at = (/** @type {number} */ lon, /** @type {number} */ lat) => /** @type {[number, number]} */ ([(lon - this.west) * perDegree, (this.north - lat) * perDegree]);
    this.drawGrid(context, at);
    context.fillStyle = colour("line");
    context.strokeStyle = colour("muted");
    context.lineWidth = 0.6;
    for (const ring of this.land) for (const turn of [-360, 0, 360]) drawRing(context, ring, turn, at);
    this.boxes.forEach((box, index) => this.drawBox(context, at, box, index === this.selected));
  }

  /** @param {CanvasRenderingContext2D} context @param {(lon: number, lat: number) => [number, number]} at */
  drawGrid(context, at) {
    context.strokeStyle = colour("line");
    context.lineWidth = 0.5;
    context.beginPath();
    for (let lon = -180; lon <= 180; lon += 30) context.moveTo(...at(lon, 90)), context.lineTo(...at(lon, -90));
    for (let lat = -90; lat <= 90; lat += 30) context.moveTo(...at(-180, lat)), context.lineTo(...at(180, lat));
    context.stroke();
  }

  /** @param {CanvasRenderingContext2D} context @param {(lon: number, lat: number) => [number, number]} at @param {Box} box @param {boolean} isSelected */
  drawBox(context, at, box, isSelected) {
    for (const [west, south, east, north] of halves(box)) {
      const [x, y] = at(west, north);
      const [right, bottom] = at(east, south);
      context.globalAlpha = 0.22;
      context.fillStyle = colour("accent");
      context.fillRect(x, y, right - x, bottom - y);
      context.globalAlpha = 1;
      context.strokeStyle = colour(isSelected ? "accent" : "muted");
      context.lineWidth = isSelected ? 2 : 1.2;
      context.strokeRect(x, y, right - x, bottom - y);
    }
  }
}

/** @param {CanvasRenderingContext2D} context @param {number[]} ring @param {number} turn degrees to the east, for what lies beyond the date line @param {(lon: number, lat: number) => [number, number]} at */
function drawRing(context, ring, turn, at) {
  const isBeyond = ring.every((degrees, index) => index % 2 || Math.abs(degrees + turn) > 180);
  if (isBeyond) return;
  context.beginPath();
  for (let i = 0; i < ring.length; i += 2) context.lineTo(...at(ring[i] + turn, ring[i + 1]));
  context.closePath();
  context.fill();
  context.stroke();
}
