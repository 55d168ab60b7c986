// @ts-check
/** The tables of the operations view, and numbers as an operator reads them. */

import { duration, h, isolate, number } from "../dom.js";
import { streamCount, sum, sums } from "./history.js";

/** Return a section with a table. @param {string} title @param {any[]} heads @param {any[][]} rows @param {string} empty @param {boolean} [isWide] */
function table(title, heads, rows, empty, isWide = true) {
  const id = `ops-${title.toLowerCase().replace(/\W+/g, "-")}`;
  const content = rows.length ? grid(id, heads, rows.map(line)) : h("p", { class: "muted" }, empty);
  return h("section", { class: ["card", "ops-section", isWide && "ops-full"] }, h("h2", { id }, title), content);
}

/** Return a row of a table. @param {any[]} cells */
export const line = (cells) => h("tr", {}, ...cells.map((cell) => h("td", {}, cell)));

/** Return a table that scrolls by itself where it is too wide. @param {string} id of its title @param {any[]} heads texts, or elements with attributes of their own @param {Element[]} lines */
export function grid(id, heads, lines) {
  return h("div", { class: "ops-scroll", tabindex: "0", role: "region", "aria-labelledby": id },
    h("table", {}, h("thead", {}, h("tr", {}, ...heads.map((head) => (head instanceof Node ? head : h("th", { scope: "col" }, head))))), h("tbody", {}, ...lines)));
}

/** @param {any} state @param {import("./history.js").History} history */
export function workers(state, history) {
  const heads = ["Worker", "State", "Version", "Up", "Streams", "Live", "Catching up", "Delivered", "Lag", "Longest hold", "Holds", "Memory", "CPU", "Requests"];
  const rows = state.workers.map((worker) => {
    const rates = history.rates.get(worker.worker) ?? {};
    if (worker.pid === null) return [worker.worker, ready(false, "does not answer"), ...heads.slice(2).map(() => "–")];
    return [
      `${worker.worker} (pid ${worker.pid})`, worker.ready ? ready(true, "ready") : ready(false, "not ready"), worker.version, since(worker.started, state.at),
      plain(streamCount(worker)), plain(worker.live), plain(worker.catching_up), rate(rates.events_delivered),
      milliseconds(worker.lag_ms), milliseconds(worker.loop_blocked_seconds * 1000), plain(worker.loop_blocked),
      bytes(worker.memory_bytes), share(rates.cpu_percent), rate(rates.requests),
    ];
  });
  return table("Workers", heads, rows, "No worker answers.");
}

const ready = (/** @type {boolean} */ good, /** @type {string} */ word) => h("span", { class: good ? "ops-good" : "ops-bad" }, word);

export function kinds(state) {
  const names = { websocket: "WebSocket", sse: "Server-sent events", ndjson: "JSON lines", poll: "Long polls, which no list of streams has", v1: "Twitter v1.1", v2: "Twitter v2" };
  const rows = Object.entries(names).map(([name, title]) => [title, plain(sum(state.workers.map((worker) => worker.streams[name] ?? 0)))]);
  return table("Streams by kind", ["Kind", "Streams"], rows, "", false);
}

export function limits(state) {
  const rows = state.limits.map((limit) => [h("code", {}, limit.limit), plain(limit.count), `${since(limit.last, state.at)} ago`]);
  return table("Limits that were met", ["Limit", "Times", "Last"], rows, "No limit was met since the start.", false);
}

/** @param {any} state @param {import("./history.js").History} history */
export function refusals(state, history) {
  const totals = sums(state.workers.map((worker) => worker.refusals));
  const rows = Object.entries(totals).sort(([, one], [, other]) => other - one).map(([code, count]) => [h("code", {}, code), plain(count), rate(history.refusals[code])]);
  return table("Refused requests", ["Error code", "Times", "Now"], rows, "No request was refused since the start.", false);
}

export function errors(state) {
  const rows = state.errors.map((error) => [
    `${since(error.at, state.at)} ago`, error.worker, h("code", {}, error.logger), h("span", { class: "ops-message" }, isolate(error.message)), plain(error.count)]);
  return table("Last warnings and errors", ["When", "Worker", "Logger", "Message", "Times"], rows, "The log has no warnings and no errors.");
}

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Return what writes a number, and a dash for one that is not known. @param {(value: number) => string} write @returns {(value: number | null | undefined) => string} */
const known = (write) => (value) => (value === null || value === undefined ? "–" : write(value));

export const plain = known((value) => number(value));

export const rate = known((value) => `${plain(value)}/s`);

export const bytes = known((value) => {
  const step = value < 1 ? 0 : Math.min(BYTES.length - 1, Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** step;
  return `${number(scaled, step ? 3 : 1)} ${BYTES[step]}`;
});

export const milliseconds = known((value) => (value >= 10_000 ? `${plain(value / 1000)} s` : `${plain(value)} ms`));

export const share = known((value) => `${plain(value)} %`);

/** Return how long ago a time of the API was. @param {string} iso @param {string} now */
export function since(iso, now) {
  return duration(Math.max(0, (Date.parse(now) - Date.parse(iso)) / 1000));
}
