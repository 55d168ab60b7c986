// @ts-check
// The console's session, which the browser keeps for all tabs, a sign-in link or a password begins, and one tab refreshes.

import { Client, memoryStore } from "./client.js";
import { fill, h } from "./dom.js";
import { field, form, problemBox } from "./forms.js";
import { store, stored } from "./stored.js";

/** The path below which a proxy serves the server; "" for none. */
export const BASE = new URL("..", import.meta.url).pathname.slice(0, -1);
const KEY = `stream-server.session${BASE}`; // servers below two paths of one host share what the browser keeps
const LOCK = `stream-server.refresh${BASE}`;

/** Return the value of a JSON text, or undefined if it is none. @param {string} text @returns {any} */
export function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The scopes that the token names, in order. The server decides; the console only hides what would be refused. @param {Client} client @returns {string[]} */
export function scopesOf(client) {
  const payload = client.store.load()?.token.split(".")[1]?.replace(/-/g, "+").replace(/_/g, "/") ?? "";
  return parsed(atob(payload))?.scope?.split(" ").sort() ?? [];
}

/**
 * A store of the session that all tabs share. Where the browser closes its storage, the session is this tab's own.
 * `navigator.locks` lets one tab at a time refresh; a page without it (plain http on another host) takes turns by a
 * claim in the storage, which the holder renews and others may take over after five seconds.
 */
function tabStore() {
  const memory = memoryStore();
  let shared = true;
  const load = () => (shared ? parsed(stored("localStorage", KEY)) ?? null : memory.load());
  const save = (session) => {
    const text = session ? JSON.stringify(session) : "";
    memory.save(session);
    store("localStorage", KEY, text);
    shared = stored("localStorage", KEY) === text;
    if (!session) shelve(null);
  };
  const lock = (/** @type {() => Promise<any>} */ work) => {
    const agreed = async () => {
      const latest = await shelved();
      const own = load();
      if (latest && own && latest.user.id === own.user.id && latest.expires > own.expires) save(latest);
      try {
        return await work();
      } finally {
        await shelve(load());
      }
    };
    return navigator.locks ? navigator.locks.request(LOCK, agreed) : memory.lock(shared ? () => withClaim(agreed) : agreed);
  };
  return { load, save, lock };
}

/**
 * Runs one request in a transaction of the browser's database. Unlike `localStorage`, which reaches other processes a
 * moment late, a transaction sees all that ended before it: so no tab uses a refresh token that another one has used.
 * @param {IDBTransactionMode} mode @param {(store: IDBObjectStore) => IDBRequest} ask @returns {Promise<any>} undefined without a database
 */
function transact(mode, ask) {
  return new Promise((resolve) => {
    const opening = indexedDB.open("stream-server", 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("session");
    opening.onerror = () => resolve(undefined);
    opening.onsuccess = () => {
      const transaction = opening.result.transaction("session", mode);
      const request = ask(transaction.objectStore("session"));
      const finish = (value) => (opening.result.close(), resolve(value));
      transaction.oncomplete = () => finish(request.result);
      transaction.onerror = transaction.onabort = () => finish(undefined);
    };
  }).catch(() => undefined);
}

const shelved = () => transact("readonly", (store) => store.get(KEY));

const shelve = (session) => transact("readwrite", (store) => (session ? store.put(session, KEY) : store.delete(KEY)));

/** @param {() => Promise<any>} work */
async function withClaim(work) {
  const mine = String(Math.random());
  while (!(await claimed(mine))) await pause(100 + Math.random() * 200);
  const renewing = setInterval(() => localStorage.setItem(LOCK, `${mine} ${Date.now()}`), 1000);
  try {
    return await work();
  } finally {
    clearInterval(renewing);
    localStorage.removeItem(LOCK);
  }
}

/** Writes a claim, and holds it if it is still there after other tabs had time to write theirs. @param {string} mine */
async function claimed(mine) {
  const [, since] = (localStorage.getItem(LOCK) ?? " 0").split(" ");
  if (Date.now() - Number(since) < 5000) return false;
  localStorage.setItem(LOCK, `${mine} ${Date.now()}`);
  await pause(50);
  return localStorage.getItem(LOCK)?.startsWith(`${mine} `) ?? false;
}

const pause = (/** @type {number} */ ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** The client of this page, which hears what other tabs do with the session. @returns {Client} */
export function openClient() {
  const client = Object.assign(new Client("", { store: tabStore() }), { address: BASE });
  addEventListener("storage", (event) => {
    if (event.key === KEY || event.key === null) client.changed();
  });
  return client;
}

/** Takes the code of a sign-in link out of the address, so that no reload, bookmark or screenshot has it. @param {string} before what the address gets instead */
export function takeCode(before) {
  const found = /^#code=([\w-]{16,128})$/.exec(location.hash);
  if (!found) return null;
  history.replaceState(null, "", location.pathname + before);
  return found[1];
}

/** Asks whether a sign-in link may take the place of the session. Only its use tells whose it is. @param {any} app @returns {Promise<boolean>} */
export function askToReplace(app) {
  const { name, login } = app.user;
  return new Promise((resolve) => {
    const window = app.dialog("Use the sign-in link?", [
      h("p", {}, "You are signed in as ", h("strong", {}, h("bdi", {}, name)), " (", h("bdi", {}, `@${login}`), "), in all tabs of this browser."),
      h("p", {}, "The link signs in the user for whom it was made, instead. Who that is, only its use can tell. Without it, nothing changes, and the link stays valid until it is 15 minutes old."),
      h("p", { class: "row" }, h("button", { class: "primary", onclick: () => window.close() }, "No, stay ", h("bdi", {}, `@${login}`)), h("button", { onclick: () => window.close("yes") }, "Yes, use the link"))]);
    window.addEventListener("close", () => resolve(window.returnValue === "yes"));
  });
}

const LOGIN = { name: "login", autocomplete: "username", required: true };
const PASSWORD = { name: "password", type: "password", required: true };

/**
 * Draws the form that signs in, from which one comes to the form of a new account and back.
 * @param {Element} root @param {Client} client @param {string} [reason] what to tell above the form
 */
export function showSignIn(root, client, reason = "") {
  const signIn = (/** @type {Record<string, string>} */ { login, password }) => client.signIn(login.includes("@") ? { email: login, password } : { login, password });
  showForm(root, reason, "Sign in", signIn, [
    field("Username or email", LOGIN),
    field("Password", { ...PASSWORD, autocomplete: "current-password" }),
  ], ["New here?", "Create an account", () => showSignUp(root, client)],
  h("p", { class: "muted" }, "A one-use link signs in too: ", h("code", {}, "stream-server sign-in --user USERNAME"), " prints one, and so does the demo when it starts."));
}

/** @param {Element} root @param {Client} client */
function showSignUp(root, client) {
  const signUp = async (/** @type {Record<string, string>} */ { login, name, email, password }) => {
    await client.request("POST", "/v1/users", { body: { login, name: name.trim() || login, email, password }, open: true });
    await client.signIn({ login, password });
  };
  showForm(root, "", "Create an account", signUp, [
    field("Username", { ...LOGIN, maxlength: 20 }, "1 to 20 letters of a to z, digits or _. It cannot be changed later."),
    field("Name", { name: "name", autocomplete: "name", maxlength: 50, autocapitalize: "words" }, "As others read it. Without one it is the username."),
    field("Email", { name: "email", type: "email", autocomplete: "email", required: true }),
    field("Password", { ...PASSWORD, autocomplete: "new-password", minlength: 8 }, "At least 8 characters."),
  ], ["You have an account?", "Sign in", () => showSignIn(root, client)]);
}

/**
 * @param {Element} root @param {string} reason @param {string} title also of the button @param {(given: any) => Promise<any>} send @param {any[]} fields
 * @param {[string, string, () => void]} other the way to the other form: a question, the button, and what shows it @param {any} [rest]
 */
function showForm(root, reason, title, send, fields, [question, label, show], rest) {
  const problem = problemBox();
  const made = form({}, [problem, fields, h("button", { class: "primary" }, title)], () => send(Object.fromEntries(new FormData(made))));
  fill(problem, reason);
  fill(root, h("section", { class: "sign-in card" }, h("h1", {}, title), made, rest, h("p", { class: "row" }, h("span", { class: "muted" }, question), h("button", { type: "button", class: "link", onclick: show }, label))));
  root.querySelector("input")?.focus();
}
