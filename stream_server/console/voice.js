// @ts-check
// How connections do: in the same words in all views; and to screen readers once for each new kind of state, few times a
// minute, and without numbers. A server that says nothing is asked before a heartbeat is overdue, while somebody looks.

import { h } from "./dom.js";
import { explain } from "./forms.js";

export const QUIET_MS = 5000;
const PAUSE_MS = 10_000; // between two announcements
const FIRST_MS = 1000; // a state that is over by then is not told
const WORST = ["refused", "bad", "wait", "live"];
let askedAt = 0;

/** Asks for the streams that are called live, and of which nothing comes. @param {import("./client.js").Client} client */
export function askIfQuiet({ streams }) {
  const now = Date.now();
  const quiet = [...streams].filter(({ state, heardAt }) => state.name === "live" && now - heardAt > QUIET_MS);
  if (!quiet.length || now - askedAt < QUIET_MS) return;
  askedAt = now;
  for (const stream of quiet) void stream.check("waiting");
}

/** @typedef {{state: import("./types.d.ts").StreamState} | null} Connection a stream, or what asks again and again; null for one that is not there yet */

/** @param {Connection} connection @returns {[string, string]} a kind of state and its words */
export function describe(connection) {
  if (!connection) return ["wait", "connecting"];
  const { name, attempt = 1, retryAt, at, since, error, reason } = connection.state;
  const seconds = retryAt ? Math.max(0, Math.ceil((retryAt - Date.now()) / 1000)) : 0;
  if (name === "live") return ["live", "live"];
  if (name === "catching up") return ["wait", `catching up, at ${new Date(at ?? 0).toLocaleTimeString([], { hour12: false })}`];
  if (name === "connecting") return attempt > 1 ? ["bad", `server away, try ${attempt}`] : ["wait", "connecting"];
  if (name === "silent") return ["wait", `silent for ${Math.round((Date.now() - (since ?? 0)) / 1000)} s, asking the server`];
  if (name === "waiting" && error?.status === 429) return ["bad", `rate limited, again in ${seconds} s`];
  if (name === "waiting") return ["bad", `server away, try ${attempt + 1} in ${seconds} s (${reason})`];
  if (name === "offline") return ["bad", `this machine is offline, try ${attempt + 1} in ${seconds} s`];
  if (name === "refused" && error) return ["refused", `refused: ${explain(error)}`];
  return ["refused", error ? `ended: ${error.message}` : name];
}

/** Says in the bar how the worst of a view's connections does. @param {any} app @param {Connection[]} all @param {string} [more] behind the word of those that are live */
export function showWorst(app, all, more = "") {
  const [kind, text] = all.map(describe).sort((a, b) => WORST.indexOf(a[0]) - WORST.indexOf(b[0]))[0] ?? ["", ""];
  app.setStatus(kind === "live" ? text + more : text, kind === "refused" ? "bad" : kind);
}

/** @returns {{root: HTMLElement, tell: (kind: string, text: string) => void}} of a text, what stands behind a number that changes is left out */
export function makeVoice() {
  const root = h("p", { class: "visually-hidden", role: "status" });
  let [told, kind, words, at, timer] = ["", "", "", -PAUSE_MS, 0];
  const speak = () => {
    timer = 0;
    if (kind !== told) [told, at, root.textContent] = [kind, performance.now(), words];
  };
  const tell = (/** @type {string} */ newKind, /** @type {string} */ text) => {
    if (newKind === kind) return;
    [kind, words] = [newKind, text.split(/ · |, (?:try|again|at) | for \d/)[0]];
    timer ||= setTimeout(speak, Math.max(FIRST_MS, at + PAUSE_MS - performance.now()));
  };
  return { root, tell };
}
