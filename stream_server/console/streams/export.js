// @ts-check
// The posts of a column as a file: of a time that it shows all of them, else those that it holds.

import { number } from "../dom.js";
import { counted } from "../people/text.js";

const MOST = 10_000; // posts of one file
const CELLS = ["id", "posted", "uid", "login", "lang", "message", "likes", "comments", "reposts", "in_reply_to", "origin", "lat", "lon", "cursor"];
const FORMULA = /^[=+\-@\t\r]/;
const GUARDED = " A cell that begins with = + - or @ has an apostrophe before it, so that no spreadsheet takes it for a formula.";

/** A cell as RFC 4180 has it. A text that a spreadsheet would take for a formula gets an apostrophe before it. @param {any} value */
function cell(value) {
  const text = typeof value === "number" ? String(value) : String(value ?? "").replace(FORMULA, "'$&");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @param {import("../column.js").Column} column @param {"jsonl" | "csv"} format */
export async function exportRows({ look, rows, app, title }, format) {
  const held = () => ({ events: rows.all().flatMap(({ event }) => event ?? []).reverse(), more: false });
  const found = await app.attempt(async () => (look.range ? look.readAll(MOST) : held()));
  if (!found) return;
  const lines = [CELLS, ...found.events.map(({ status, cursor }) => CELLS.map((name) => status[name] ?? status.location?.[name] ?? (name === "cursor" ? cursor : "")))];
  const text = format === "csv" ? lines.map((line) => `${line.map(cell).join(",")}\r\n`).join("") : found.events.map((event) => `${JSON.stringify(event)}\n`).join("");
  const href = URL.createObjectURL(new Blob([text], { type: format === "csv" ? "text/csv" : "application/jsonl" }));
  const times = (look.range ? [look.range.from, look.range.to] : [Date.now()]).map((ms) => new Date(ms).toISOString().slice(0, 19).replaceAll(":", "") + "Z");
  const download = `${title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40)}-${times.join("-to-")}.${format}`;
  Object.assign(document.createElement("a"), { href, download }).click();
  setTimeout(() => URL.revokeObjectURL(href), 60_000); // the browser reads it meanwhile
  const cut = found.more ? ` The time has more: these are its newest ${number(MOST)}, from ${found.events[0]?.status.posted} on. Export the time before that, too.` : "";
  app.say(`${download} has ${counted(found.events.length, "post")}.${cut}${format === "csv" && lines.flat().some((value) => typeof value === "string" && FORMULA.test(value)) ? GUARDED : ""}`, cut ? "warn" : "ok");
}
