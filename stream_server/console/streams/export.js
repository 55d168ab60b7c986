// @ts-check
// The posts of a column as a file: of a time that it shows all of them, else those that it holds.

const MOST = 10_000; // posts of one file
const KEEP_MS = 60_000; // for which the browser may read the file
const CELLS = ["id", "posted", "uid", "login", "lang", "message", "likes", "comments", "reposts", "in_reply_to", "origin"];

/** A cell as RFC 4180 has it. One that a spreadsheet would take for a formula gets an apostrophe before it. @param {any} value */
function cell(value) {
  const text = String(value ?? "").replace(/^[=+\-@\t\r]/, "'$&");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** @type {Record<string, {type: string, write: (events: any[]) => string, more: string}>} */
const FORMATS = {
  jsonl: { type: "application/jsonl", more: "", write: (events) => events.map((event) => `${JSON.stringify(event)}\n`).join("") },
  csv: {
    type: "text/csv", more: " A cell that begins with = + - or @ has an apostrophe before it, so that no spreadsheet takes it for a formula.",
    write: (events) => [CELLS, ...events.map(({ status }) => CELLS.map((name) => status[name]))].map((line) => `${line.map(cell).join(",")}\r\n`).join(""),
  },
};

/** @param {import("./../column.js").Column} column @param {"jsonl" | "csv"} format */
export async function exportRows(column, format) {
  const { look, rows, app, title } = column;
  const held = () => rows.all().flatMap(({ event }) => event ?? []).reverse();
  const found = await app.attempt(async () => (look.range ? look.readAll(MOST) : { events: held(), more: false }));
  if (!found) return;
  const { type, write, more } = FORMATS[format];
  const address = URL.createObjectURL(new Blob([write(found.events)], { type }));
  const name = `${title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40)}-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.${format}`;
  Object.assign(document.createElement("a"), { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), KEEP_MS);
  const count = `${found.events.length} ${found.events.length === 1 ? "post is" : "posts are"} in ${name}.`;
  const cut = ` The time has more: these are its newest ${MOST}, from ${found.events[0]?.status.posted} on. Export the time before that, too.`;
  app.say(count + (found.more ? cut : "") + more, found.more ? "warn" : "ok");
}
