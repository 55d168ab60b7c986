// @ts-check
// The view Streams: columns of posts as they happen, each with a filter, all with rules over one connection.

import { Board } from "../board.js";
import { Builder, rememberFollowing } from "../builder.js";
import { fill, h, icon, neighbour } from "../dom.js";
import { fromHash, newFilter, toHash } from "../filter.js";
import { store, stored } from "../session.js";
import { showPrograms } from "../snippets.js";

const KEPT = "stream-server.columns"; // of the columns that a user keeps in this browser; those that an address names replace nothing

const FIRST = () => [newFilter(), newFilter({ following: true }), newFilter({ words: ["coffee", "#redis"], title: "Coffee and Redis" })];

/** @param {HTMLElement} root @param {any} app */
export function mount(root, app) {
  const strip = h("div", { class: "board" });
  const tabs = h("nav", { class: "column-tabs", "aria-label": "Columns" });
  const adder = h("div", { class: "add-column" }, h("button", { class: "quiet", onclick: () => build() }, icon("plus"), "Add a column"));
  strip.append(adder);
  const guests = h("div", { class: "guests", role: "status" });
  fill(root, h("h1", { class: "visually-hidden" }, "Streams"), tabs, guests, strip);
  root.classList.add("streams");

  const board = new Board(app, strip, { edit: (column) => build(column), copy: (column) => showPrograms(app, column.filter), changed: () => columnsChanged() });
  const build = (/** @type {any} */ column = null) => new Builder(app, column?.filter ?? null, (filter) => focusColumn(board.add(filter, column)));
  let empty = /** @type {HTMLElement | null} */ (null);
  let isOpen = false;
  let isForeign = false; // whether the columns are those of a link, while the user keeps others

  function columnsChanged() {
    empty?.remove();
    empty = board.columns.length ? null : h("div", { class: "empty" }, h("h2", {}, "No columns yet"),
      h("p", { class: "muted" }, "A column shows the posts that match its filter, as they happen."), h("button", { class: "primary", onclick: () => build() }, "Add a column"));
    if (empty) strip.prepend(empty);
    fill(tabs, board.columns.map((column) => h("button", { class: "quiet", onclick: () => focusColumn(column) }, h("bdi", {}, column.title))),
      h("button", { class: "quiet", "aria-label": "Add a column", onclick: () => build() }, icon("plus")));
    if (!isOpen) return;
    history.replaceState(null, "", `#/streams/${toHash(board.filters)}`);
    if (!isForeign) keep(board.filters);
  }

  /** @param {import("../filter.js").Filter[]} filters @param {boolean} [areGuests] */
  function open(filters, areGuests = !areOwn(filters)) {
    isOpen = false;
    isForeign = areGuests;
    board.open(filters);
    isOpen = true;
    settle();
  }

  function settle() {
    fill(guests, isForeign && [
      h("p", {}, "These columns come from a link. Yours are as you left them."),
      h("button", { onclick: () => open(kept() ?? FIRST(), false) }, "Back to mine"),
      h("button", { onclick: () => open([...(kept() ?? []), ...board.filters], false) }, "Add to mine"),
      h("button", { onclick: () => ((isForeign = false), settle()) }, "Keep instead of mine")]);
    columnsChanged();
  }

  /** @param {import("../column.js").Column} column */
  function focusColumn(column) {
    column.element.scrollIntoView({ inline: "start", block: "nearest" });
    column.element.focus({ preventScroll: true });
  }

  open(named(location.hash) ?? kept() ?? FIRST());
  rememberFollowing(app);

  return {
    unmount() {
      board.close();
      root.classList.remove("streams");
    },
    /** Another address with other columns, such as a link that somebody sent; or with none, which means one's own. */
    navigate() {
      const filters = named(location.hash) ?? (isForeign ? kept() : null);
      if (filters && toHash(filters) !== toHash(board.filters)) open(filters);
      else settle();
    },
    resume() {
      this.navigate();
      board.resume();
    },
    key: (/** @type {KeyboardEvent} */ event) => onKey(event, board, build, focusColumn),
  };
}

/** @param {KeyboardEvent} event @param {Board} board @param {(column?: any) => void} build @param {(column: any) => void} focusColumn @returns {boolean} */
function onKey(event, board, build, focusColumn) {
  const inside = document.activeElement?.closest(".column");
  const column = board.columns.find((one) => one.element === inside) ?? board.columns[0];
  const post = document.activeElement?.closest(".post") ?? column?.rows.feed.querySelector(".post");
  const acts = /** @type {Record<string, string>} */ ({ e: "why", l: "heart", r: "reply" });
  if (event.key === "c" || event.key === "/") build();
  else if (/^[1-9]$/.test(event.key) && board.columns[Number(event.key) - 1]) focusColumn(board.columns[Number(event.key) - 1]);
  else if (!column) return false;
  else if (event.key === " " && !document.activeElement?.matches("button, a, summary")) column.togglePause();
  else if (event.key === "j" || event.key === "k") neighbour(column.rows.feed.querySelectorAll(".post"), event.key === "j" ? 1 : -1)?.focus();
  else if (event.key === ".") column.rows.toNewest();
  else if (event.key in acts) /** @type {HTMLElement | null} */ (post?.querySelector(`[data-act=${acts[event.key]}]`))?.click();
  else if (event.key === "f" && post) follow(board.app, post);
  else return false;
  return true;
}

/** @param {any} app @param {Element} post */
async function follow(app, post) {
  const login = post.querySelector(".author")?.textContent?.slice(1) ?? "";
  const done = await app.attempt(async () => {
    const { id } = await app.client.request("GET", `/v1/users/by-login/${login}`);
    return app.client.request("PUT", `/v1/users/me/following/${id}`);
  });
  if (done) app.say(done.requested ? `You asked to follow @${login}` : `You follow @${login}`);
}

/** @param {import("../filter.js").Filter[]} filters */
function keep(filters) {
  store("localStorage", KEPT, toHash(filters));
  store("sessionStorage", KEPT, toHash(filters));
}

/** @returns {import("../filter.js").Filter[] | null} null if nothing was kept */
const kept = () => fromHash(stored("localStorage", KEPT));

/** Whether columns replace nothing of the user: they are kept, or were in this tab before another one kept others. @param {import("../filter.js").Filter[]} filters */
function areOwn(filters) {
  const known = [stored("localStorage", KEPT), stored("sessionStorage", KEPT)];
  return !known[0] || known.includes(toHash(filters));
}

/** The columns that an address names, or null. @param {string} hash */
const named = (hash) => fromHash(hash.split("/")[2] ?? "");
