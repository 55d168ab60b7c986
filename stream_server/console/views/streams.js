// @ts-check
// The view Streams: columns of posts as they happen, each with a filter, all with rules over one connection.

import { Board } from "../board.js";
import { Builder } from "../builder.js";
import { fill, h, icon, neighbour } from "../dom.js";
import { aloneParameters, fromHash, readFilter, toHash } from "../filter.js";
import { added, areSame, Keeper, KEPT, load } from "../kept.js";
import { showPrograms } from "../snippets.js";

/** What a new user gets; the same in each tab. @returns {import("../kept.js").Kept[]} */
const FIRST = () => [{ id: "first-1" }, { id: "first-2", following: true }, { id: "first-3", words: ["coffee", "#redis"], title: "Coffee and Redis" }];

/** @param {HTMLElement} root @param {any} app */
export function mount(root, app) {
  const tabs = h("nav", { class: "column-tabs", "aria-label": "Columns" });
  const adder = h("div", { class: "add-column" }, h("button", { class: "quiet", onclick: () => build() }, icon("plus"), "Add a column"));
  const empty = h("div", { class: "empty", hidden: true }, h("h2", {}, "No columns yet"), h("p", { class: "muted" }, "A column shows the posts that match its filter, as they happen."),
    h("button", { class: "primary", onclick: () => build() }, "Add a column"));
  const strip = h("div", { class: "board" }, empty, adder);
  const guests = h("div", { class: "guests", role: "status" });
  fill(root, h("h1", { class: "visually-hidden" }, "Streams"), tabs, guests, strip);
  root.classList.add("streams");

  const board = new Board(app, strip, { edit: (column) => build(column), copy: (column) => showPrograms(app, { ...aloneParameters(column.filter), tag: column.filter.saved.slice(4) }), focus: (column) => focusColumn(column), changed: () => columnsChanged() });
  const build = (/** @type {any} */ column = null) => new Builder(app, column?.filter ?? null, (filter) => focusColumn(board.add(filter, column)), column?.kept.id);
  const filters = () => board.columns.map(({ filter }) => filter);
  let isOpen = false;
  let isForeign = false; // whether the columns are those of a link, while the user keeps others
  let keeper = new Keeper();

  /** @param {string} [heard] what another tab has just kept */
  function columnsChanged(heard = "") {
    if (isOpen && !isForeign) {
      const all = keeper.save(board.columns, heard);
      if (!areSame(all, board.columns.map(({ kept }) => kept))) return board.follow(all); // which comes back here
    }
    empty.hidden = board.columns.length > 0;
    fill(tabs, board.columns.map(({ title, alerts }) => fill(alerts.tab, h("bdi", {}, title), " ", alerts.badges[1])),
      h("button", { class: "quiet", "aria-label": "Add a column", onclick: () => build() }, icon("plus")));
    if (isOpen && root.isConnected) history.replaceState({ ...history.state, own: !isForeign }, "", `#/streams/${toHash(filters())}`);
  }

  /** @param {any[]} columns filters, or columns that are kept @param {boolean} areGuests */
  function open(columns, areGuests) {
    isOpen = false;
    isForeign = areGuests;
    keeper = new Keeper();
    board.follow(columns);
    strip.scrollLeft = 0;
    isOpen = true;
    settle();
  }

  const kept = () => load()?.columns ?? FIRST();

  /** Shows the columns that the address names, or else one's own: the address of an open tab may be older than those. */
  function show() {
    const linked = fromHash(location.hash.split("/")[2] ?? "");
    if (app.path[0] && !linked) app.say("The address names columns in a way that cannot be read. These are yours.", "warn");
    const own = load()?.columns;
    const isLink = linked && own && !history.state?.own && toHash(linked) !== toHash(own.map(readFilter));
    const isShown = board.columns.length && (isLink ? isForeign && toHash(linked) === toHash(filters()) : !isForeign && (own || !linked));
    if (isShown) settle();
    else if (isLink) open(linked, true);
    else open(own ?? linked ?? FIRST(), false);
    const column = board.columns.find(({ kept }) => kept.id === added.id);
    if (column) focusColumn(column);
    added.id = "";
  }

  const onStorage = (/** @type {StorageEvent} */ { key, newValue }) => { if (key === KEPT && newValue && root.isConnected && !isForeign) columnsChanged(newValue); };

  function settle() {
    fill(guests, isForeign && [
      h("p", {}, "These columns come from a link. Yours are as you left them."),
      h("button", { onclick: () => open(kept(), false) }, "Back to mine"),
      h("button", { onclick: () => open([...kept(), ...filters()], false) }, "Add to mine"),
      h("button", { onclick: () => ((isForeign = false), (keeper = new Keeper()), settle()) }, "Keep instead of mine")]);
    columnsChanged();
  }

  /** @param {import("../column.js").Column} column */
  function focusColumn(column) {
    column.element.scrollIntoView({ inline: "start", block: "nearest" });
    column.element.focus({ preventScroll: true });
  }

  addEventListener("storage", onStorage);
  show();

  return {
    unmount() {
      removeEventListener("storage", onStorage);
      board.close();
      root.classList.remove("streams");
    },
    /** Another address with other columns, such as a link that somebody sent; or with none, which means one's own. */
    navigate: show,
    tick: () => board.tick(),
    resume() {
      show();
      board.resume();
    },
    key: (/** @type {KeyboardEvent} */ event) => onKey(event, board, build, focusColumn),
  };
}

/** @param {KeyboardEvent} event @param {Board} board @param {(column?: any) => void} build @param {(column: any) => void} focusColumn @returns {boolean} */
function onKey(event, board, build, focusColumn) {
  const inside = document.activeElement?.closest(".column");
  const column = board.columns.find((one) => one.element === inside) ?? board.columns[0];
  const post = /** @type {HTMLElement | null} */ (inside && document.activeElement?.closest(".post"));
  const acts = /** @type {Record<string, string>} */ ({ e: "why", l: "heart", r: "reply", f: "" });
  if (event.key === "c" || event.key === "/") build();
  else if (/^[1-9]$/.test(event.key) && board.columns[Number(event.key) - 1]) focusColumn(board.columns[Number(event.key) - 1]);
  else if (!column) return false;
  else if (event.key === " " && !document.activeElement?.matches("button, a, summary")) column.togglePause();
  else if (event.key === "j" || event.key === "k") neighbour(column.rows.feed.querySelectorAll(".post"), event.key === "j" ? 1 : -1)?.focus();
  else if (event.key === ".") column.rows.toNewest();
  else if (!Object.hasOwn(acts, event.key)) return false;
  else if (!post) board.app.say("Choose a post first, by j or k.", "warn");
  else if (event.key === "f") follow(board.app, post.dataset.uid ?? "", post.querySelector(".author")?.textContent ?? "");
  else /** @type {HTMLElement | null} */ (post.querySelector(`[data-act=${acts[event.key]}]`))?.click();
  return true;
}

/** @param {any} app @param {string} uid @param {string} name */
function follow(app, uid, name) {
  const done = (/** @type {any} */ answer) => answer?.requested && app.say(`You asked to follow ${name}: the account is protected`);
  app.undo.later({ text: `You follow ${name}`, method: "PUT", path: `/v1/users/me/following/${uid}`, done });
}
