// Follow a stream with an EventSource, which can send no header: a ticket in its URL does, once.
//
// An EventSource that loses its connection asks for the same URL again, whose ticket is used up, and gives up at the
// 401. So this page closes it first, gets another ticket, and goes on behind the last cursor that it heard.
"use strict";

const KINDS = ["hello", "post", "delete", "heartbeat", "gap", "warning", "effective", "goodbye"];
const SILENCE_MS = 45_000; // a heartbeat comes every 15 s, so this is a dead line
const LONGEST_MS = 30_000;

let session = null;
let source = null;
let track = "";
let cursor = "";
let failures = 0;
let silence = 0;

async function ask(path, body) {
  const headers = { "Content-Type": "application/json" };
  if (session) headers.Authorization = `Bearer ${session.token}`;
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw Object.assign(new Error(`${path}: ${answer.status}`), { status: answer.status });
  return answer.json();
}

async function ticket() {
  try {
    return (await ask("/v1/streams/ticket")).ticket;
  } catch (error) {
    if (error.status !== 401) throw error;
    session = await ask("/v1/sessions", { refresh_token: session.refresh_token }); // the token has ended, not we
    return (await ask("/v1/streams/ticket")).ticket;
  }
}

async function listen() {
  const query = new URLSearchParams({ track, ticket: await ticket() });
  if (cursor) query.set("since", cursor);
  source = new EventSource(`/v1/stream?${query}`);
  for (const kind of KINDS) source.addEventListener(kind, hear);
  source.onerror = again;
  watch();
}

function hear(event) {
  const message = JSON.parse(event.data);
  cursor = message.cursor;
  failures = 0;
  watch();
  if (message.kind === "hello") say("listening");
  if (message.kind === "post") show(message.status);
  if (message.kind === "delete") document.getElementById(message.status.id)?.remove();
  if (message.kind === "gap") say(`something was lost: ${message.reason}`);
}

function watch() {
  clearTimeout(silence);
  silence = setTimeout(again, SILENCE_MS);
}

function again() {
  clearTimeout(silence);
  source?.close();
  const wait = Math.min(LONGEST_MS, 500 * 2 ** failures++) * (0.5 + Math.random());
  say("lost the connection");
  setTimeout(() => listen().catch(failed), wait);
}

function failed(error) {
  // 401 and 403 are about who we are: only a person can help. All else passes.
  if (error.status === 401 || error.status === 403) say("log in again");
  else again();
}

function show(status) {
  const item = document.createElement("li");
  item.id = status.id;
  item.textContent = `@${status.login}: ${status.message}`; // never innerHTML: others wrote it
  document.querySelector("ol").append(item);
}

function say(text) {
  document.querySelector("[role=status]").textContent = text;
}

document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { login, password, ...filters } = Object.fromEntries(new FormData(event.target));
  source?.close();
  clearTimeout(silence);
  [session, track, cursor] = [null, filters.track, ""];
  try {
    session = await ask("/v1/sessions", { login, password });
    await listen();
  } catch (error) {
    failed(error);
  }
});
