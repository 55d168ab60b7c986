// Follow a stream with an EventSource. It cannot send a header, so a ticket in the URL replaces the token.
//
// A ticket works once. When an EventSource loses its connection, it requests the same URL again and gets a 401. So this
// page closes the EventSource first, gets another ticket, and continues after the last cursor that it received.
"use strict";

const KINDS = ["hello", "post", "delete", "heartbeat", "gap", "warning", "effective", "goodbye"];
const MAX_SILENCE_MS = 45_000; // heartbeats come every 15 s, so the connection is dead
const MAX_DELAY_MS = 30_000;

let session = null;
let source = null;
let track = "";
let cursor = "";
let failures = 0;
let silenceTimer = 0;

async function postJson(path, body) {
  const headers = { "Content-Type": "application/json" };
  if (session) headers.Authorization = `Bearer ${session.token}`;
  const answer = await fetch(path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw Object.assign(new Error(`${path}: ${answer.status}`), { status: answer.status });
  return answer.json();
}

async function requestTicket() {
  try {
    return (await postJson("/v1/streams/ticket")).ticket;
  } catch (error) {
    if (error.status !== 401) throw error;
    // The token has expired, but the session has not.
    session = await postJson("/v1/sessions", { refresh_token: session.refresh_token });
    return (await postJson("/v1/streams/ticket")).ticket;
  }
}

async function connect() {
  const query = new URLSearchParams({ track, ticket: await requestTicket() });
  if (cursor) query.set("since", cursor);
  source = new EventSource(`/v1/stream?${query}`);
  for (const kind of KINDS) source.addEventListener(kind, handleMessage);
  source.onerror = reconnect;
  restartSilenceTimer();
}

function handleMessage(event) {
  const message = JSON.parse(event.data);
  cursor = message.cursor;
  failures = 0;
  restartSilenceTimer();
  if (message.kind === "hello") showState("listening");
  if (message.kind === "post") showPost(message.status);
  if (message.kind === "delete") document.getElementById(message.status.id)?.remove();
  if (message.kind === "gap") showState(`something was lost: ${message.reason}`);
}

function restartSilenceTimer() {
  clearTimeout(silenceTimer);
  silenceTimer = setTimeout(reconnect, MAX_SILENCE_MS);
}

function reconnect() {
  clearTimeout(silenceTimer);
  source?.close();
  const wait = Math.min(MAX_DELAY_MS, 500 * 2 ** failures++) * (0.5 + Math.random());
  showState("lost the connection");
  setTimeout(() => connect().catch(handleFailure), wait);
}

function handleFailure(error) {
  // After a 401 or 403 the user must log in again. All other failures are temporary.
  if (error.status === 401 || error.status === 403) showState("log in again");
  else reconnect();
}

function showPost(status) {
  const item = document.createElement("li");
  item.id = status.id;
  item.textContent = `@${status.login}: ${status.message}`; // not innerHTML, because other users wrote the text
  document.querySelector("ol").append(item);
}

function showState(text) {
  document.querySelector("[role=status]").textContent = text;
}

document.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const { login, password, ...filters } = Object.fromEntries(new FormData(event.target));
  source?.close();
  clearTimeout(silenceTimer);
  [session, track, cursor] = [null, filters.track, ""];
  try {
    session = await postJson("/v1/sessions", { login, password });
    await connect();
  } catch (error) {
    handleFailure(error);
  }
});
