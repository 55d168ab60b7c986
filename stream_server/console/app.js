// @ts-check
// The console: a bar, and below it one view at a time, chosen by the part of the address after `#`.
//
// The contract of views. A view is a module `views/NAME.js` with
//
//   export function mount(root, app) { …; return { unmount() { … }, navigate(path) { … }, tick() { … }, key(event) { … } }; }
//
// `root` is an empty <main> of this view alone. `unmount` has to stop timers, streams and listeners outside `root`.
// All of them may be absent: `navigate(path)` is called instead of a new mount when the address changes within the view, and
// `tick()` once a second while somebody looks. `key(event)` gets what was pressed outside of fields, and tells if it used it.
// A view is mounted for a signed-in user only, and anew after another user signed in. A view with `resume()` is not
// unmounted when another one is shown, or when the session ends by itself: the same user gets it back by `resume`.
// What a view may ask of the console is told at `app` below.
//
// Text of others goes through h() and isolate() of dom.js, and never becomes markup. Colours: only the roles of tokens.css.

import { decoded, fill, h, icon, showLost, tool } from "./dom.js";
import { compose } from "./people/composer.js";
import { explain, newKey } from "./forms.js";
import { isShortcut, keySwitch } from "./keys.js";
import { moderationLink } from "./people/user_row.js";
import { Parked, placeOf } from "./place.js";
import { askToReplace, openClient, scopesOf, showSignIn, takeCode } from "./session.js";
import { store } from "./stored.js";
import { Undo, unhurried } from "./undo.js";
import * as operations from "./views/operations.js";
import * as people from "./views/people.js";
import * as streams from "./views/streams.js";
import { askIfQuiet, makeVoice } from "./voice.js";

/** @type {Record<string, {title: string, icon: any, mount: Function}>} */
const VIEWS = {
  streams: { title: "Streams", icon: "edit", mount: streams.mount },
  people: { title: "People", icon: "user", mount: people.mount },
  operations: { title: "Operations", icon: "check", mount: operations.mount },
};
const THEMES = matchMedia("(prefers-color-scheme: dark)").matches ? ["", "light", "dark"] : ["", "dark", "light"]; // the first press changes something
const KEYS = [
  ["n", "write a post"], ["g s, g p, g o", "Streams, People, Operations"], ["?", "this list"], ["Esc", "close a window"], ["c, /", "add a column"],
  ["1 to 9", "go to a column"], ["j, k", "next and previous post"], ["arrows", "in a list of posts: up and down from post to post, left and right to its buttons"], ["e", "why a post matched"],
  ["z", "undo what was just done"], ["space", "pause or resume a column"], ["l, r, f", "like, reply, follow"], [".", "back to the newest posts"],
  ["r, c, l, s", "in People: reply to, comment on, like, bookmark the post"], ["/", "in People: find a user or a tag"],
];

const client = openClient();
const state = { view: "", mounted: /** @type {any} */ (null), parked: new Parked(), userId: "", prefix: "" };
const status = h("p", { class: "connection" }); // its numbers change each second, so that it is no live region
const voice = makeVoice();
const notes = h("div", { class: "notes", role: "status", "aria-live": "polite" });
const bar = h("header", { class: "bar" });
const tabs = h("nav", { class: "tabs", "aria-label": "Views" });
let root = h("main", { id: "main", tabindex: "0" });

/** What views get. */
export const app = {
  client,
  /** The address within the view: for `#/people/@ada/likes` it is ["@ada", "likes"]. @type {string[]} */ path: [],
  /** Names the entry of the browser's history: the same one after Back. */ entry: "",
  /** The user who is signed in: {id, login, name, …} */ get user() { return client.user; },
  /** Whether the token has a scope, such as "admin" or "firehose". @param {string} scope */
  can: (scope) => scopesOf(client).includes(scope),
  /** Changes the address, as a link `<a href="#/people/@ada">` does. @param {string} hash */
  go: (hash) => void (location.hash = hash),
  /** Sets the title of the page. @param {string} text */
  title: (text) => void (document.title = (/^\(\d+\) /.exec(document.title)?.[0] ?? "") + (text ? `${text} · stream-server` : "stream-server")), // the number is of alerts
  /** What can be taken back for some seconds, such as a delete: `app.undo.later({text, method, path})`, see undo.js. */
  undo: new Undo(client, notes, (error) => say(explain(error), "danger")),
  /** Opens the window that writes a post. @param {{in_reply_to?: string, reply_to?: string}} [draft] the post that is answered, and its author's username */
  compose: (draft) => compose(app, draft),
  /** Says in the bar how the view's connection does. @param {string} text @param {string} [kind] "live", "wait", "bad" or "" */
  setStatus: (text, kind = "") => void (status.textContent !== text && fill(status, text), (status.dataset.state = kind), voice.tell(kind, text)),
  say, attempt, dialog, leaveForGood,
};

/** Tells something for a while, also to screen readers. @param {string} text @param {string} [kind] "ok", "warn" or "danger" */
function say(text, kind = "ok") {
  const dismiss = () => { if (getSelection()?.isCollapsed ?? true) note.remove(); }; // else its text is being copied
  const note = h("p", { class: ["note", kind], title: "A click dismisses this", onclick: dismiss, ...unhurried(() => note.remove(), kind === "ok" ? 4000 : 9000) }, text);
  [...notes.children].find((each) => each.textContent === text)?.remove(); // the same is told once
  notes.append(note);
}

/** Awaits some work, and says what went wrong. @template T @param {() => Promise<T>} work @returns {Promise<T | void>} */
function attempt(work) {
  return work().catch((error) => say(explain(error), "danger"));
}

/** Puts the notes into the window on top: a modal one lies over all else, and lets no screen reader hear it. */
const raiseNotes = () => ([...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body).append(notes);

/** Opens a modal window with a close button. @param {any} title @param {any} content @param {{wide?: boolean, class?: string}} [options] @returns {any} the <dialog>; close it by `.close()` */
function dialog(title, content, options = {}) {
  const close = () => window.close();
  const window = h("dialog", { class: ["window", options.wide && "wide", options.class], onclose: () => (raiseNotes(), window.remove()) },
    h("header", {}, h("h2", {}, title), h("button", { class: "quiet", "aria-label": "Close", onclick: close }, icon("close"))),
    h("div", { class: "window-body" }, content));
  document.body.append(window);
  window.showModal();
  raiseNotes();
  return window;
}

/** Draws what the address names; a link that signs in may also be pasted into an open page. @param {Event} [event] */
function route(event) {
  const before = event instanceof HashChangeEvent ? new URL(event.oldURL).hash : "";
  const code = takeCode(before);
  if (!code || client.user) draw();
  if (code) followLink(code);
}

function draw() {
  const [, name = "", ...path] = location.hash.split("?")[0].split("/");
  const view = (name === "operations" ? [name, ...path].filter(Boolean).join("/") : name) || "streams"; // which has no parts
  app.path = path.filter(Boolean).map(decoded);
  if (!client.user) return showDoor();
  app.entry = history.state?.entry ?? newKey();
  history.replaceState({ ...history.state, entry: app.entry }, "");
  if (view === state.view && state.userId === client.user.id) return state.mounted?.navigate?.(app.path);
  show(view);
}

/** @param {string} view */
function show(view) {
  leave();
  state.view = view;
  state.userId = client.user.id;
  const { title, mount } = Object.hasOwn(VIEWS, view) ? VIEWS[view] : { title: "No such view", mount: /** @type {Function} */ (() => void showLost(root, "view", decoded(view), viewNames().map((name) => [`#/${name}`, VIEWS[name].title]))) };
  app.title(title);
  drawBar();
  const found = state.parked.take(view, state.userId);
  if (!found) return void (state.mounted = mount(root, app));
  root.replaceWith(found.root);
  [root, state.mounted] = [found.root, found.mounted];
  found.goBack();
  state.mounted.resume();
}

/** Takes the shown view away, and leaves an empty `root` for the next. */
function leave() {
  const { mounted, view, userId } = state;
  const goBack = placeOf(root);
  state.mounted = null;
  state.view = "";
  app.setStatus("");
  const next = h("main", { id: "main", tabindex: "0" });
  root.replaceWith(next);
  if (mounted?.resume) state.parked.put(view, { mounted, userId, root, goBack });
  else mounted?.unmount?.();
  root = next;
  for (const window of document.querySelectorAll("dialog")) window.close(); // it would lie over what comes
}

/** Ends the session by `end()`, so that whoever was signed in leaves nothing to come back to. @param {() => any} end */
async function leaveForGood(end) {
  leave();
  state.parked.discard();
  await end();
}

/** @param {string} [reason] */
function showDoor(reason) {
  leave();
  app.title("Sign in");
  drawBar();
  showSignIn(root, client, reason);
}

const viewNames = () => Object.keys(VIEWS).filter((name) => name !== "operations" || app.can("admin"));

function drawBar() {
  const links = (/** @type {boolean} */ withIcons) => viewNames().map((name) =>
    h("a", { href: `#/${name}`, "aria-current": name === state.view ? "page" : null }, withIcons && icon(VIEWS[name].icon), VIEWS[name].title));
  const user = client.user;
  fill(bar,
    h("a", { class: "skip", href: "#main", onclick: (/** @type {Event} */ event) => (event.preventDefault(), root.focus()) }, "Skip to the content"),
    h("a", { class: "brand", href: "#/streams", "aria-label": "stream-server, to the streams" }, h("img", { src: "console/icon.svg", alt: "", width: 24, height: 24 }), h("span", {}, "stream-server")),
    user && h("nav", { class: "views", "aria-label": "Views" }, links(false)),
    status,
    h("div", { class: "tools" },
      user && h("button", { class: "primary compose", title: "Write a post (n)", onclick: () => app.compose() }, icon("pen"), h("span", {}, "Post")),
      h("a", { class: "button quiet", href: "docs" }, "API"),
      tool(icon("theme"), "Change between light and dark", changeTheme),
      tool(icon("help"), "Keys and help", showHelp),
      user && h("button", { class: "quiet who", onclick: showAccount, title: "Your session" }, h("span", { class: "avatar", "aria-hidden": "true" }, user.login.slice(0, 1)), h("span", { class: "visually-hidden" }, "Signed in as "), h("bdi", {}, user.login))));
  fill(tabs, user ? [links(true), h("button", { class: "quiet", onclick: () => app.compose() }, icon("pen"), "Post")] : []);
}

function changeTheme() {
  const html = document.documentElement;
  const next = THEMES[(THEMES.indexOf(html.dataset.theme ?? "") + 1) % THEMES.length];
  if (next) html.dataset.theme = next;
  else delete html.dataset.theme;
  store("localStorage", "stream-server.theme", next);
  say(next ? `Colours: ${next}` : "Colours: as the system has them");
}

function showHelp() {
  const rows = KEYS.map(([keys, meaning]) => h("div", {}, h("dt", {}, keys.split(", ").map((key) => h("kbd", {}, key))), h("dd", {}, meaning)));
  dialog("Keys", [h("dl", { class: "keys" }, rows), keySwitch(), h("p", { class: "muted" }, "Keys work outside of fields. ", h("a", { href: "docs" }, "The API"), " has all that this page does.")]);
}

function showAccount() {
  const scopes = scopesOf(client).join(", ");
  const to = (/** @type {string} */ label, /** @type {string} */ path) => h("a", { class: "button", href: `#/people/${path}`, onclick: () => window.close() }, label);
  const leaveNow = async () => {
    window.close();
    await app.undo.finish();
    await leaveForGood(() => client.signOut());
  };
  const window = dialog("Your session", [
    h("p", {}, "Signed in as ", h("strong", {}, h("bdi", {}, client.user.name)), " (", h("bdi", {}, `@${client.user.login}`), ")"),
    h("p", { class: "muted" }, `This session may: ${scopes}`),
    h("p", { class: "row" }, to("Profile", `@${client.user.login}`), to("Account and sessions", "account"), to("Your streams", "account/streams"), app.can("admin") && moderationLink(app, { class: "button", onclick: () => window.close() }), h("button", { onclick: leaveNow }, "Sign out"))]);
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (!isShortcut(event) || !client.user) return;
  const goes = /** @type {Record<string, string>} */ ({ s: "streams", p: "people", o: "operations" });
  const prefixed = state.prefix === "g" && goes[event.key];
  state.prefix = event.key;
  if (prefixed) app.go(`#/${prefixed}`);
  else if (event.key === "n") app.compose();
  else if (event.key === "?") showHelp();
  else if (event.key === "z") app.undo.takeBackLast();
  else if (!state.mounted?.key?.(event)) return;
  event.preventDefault();
}

/** A link that signs in works once: what it said goes to the person if it does not. One that somebody sent must not change the user unseen: while there is a session, its user decides. @param {string} code */
async function followLink(code) {
  await client.request("GET", "/v1/users/me").catch(() => null); // a client that finds that the server does not take its session forgets it
  const before = client.user;
  if (before && !(await askToReplace(app))) return;
  try {
    await client.signIn({ code });
  } catch (error) {
    if (!client.user) return showDoor(explain(error));
    say(explain(error), "warn");
  }
  route(); // also if somebody else was signed in, or the same user with other scopes
  if (before && client.user && before.id !== client.user.id) say(`You are @${client.user.login} now, instead of @${before.login}.`);
}

function sessionChanged(session, refusal) {
  const why = refusal?.code === "suspended" ? explain(refusal) : "Sign in again to go on where you were.";
  const ended = state.view && `Your session has ended. ${why}`; // no view is shown after `leaveForGood`
  if (!session) return void (root.querySelector(".sign-in") || showDoor(ended)); // several tabs may tell; what was typed stays
  if (!state.view || session.user.id !== state.userId) route();
  else drawBar();
}

document.body.append(bar, root, tabs, notes, voice.root);
client.onSession(sessionChanged);
addEventListener("hashchange", route);
addEventListener("keydown", onKey);
setInterval(() => document.hidden || (askIfQuiet(client), state.mounted?.tick?.()), 1000);
route();
