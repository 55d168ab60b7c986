// @ts-check
/** Finding people: the search field, which suggests users while one types, and whom a new user may want to follow. */

import { fill, h, icon, isolate } from "../dom.js";
import { isComposing } from "../keys.js";
import { face, tagHref, userHref } from "./text.js";
import { userRow } from "./user_row.js";

/** The field that finds a user by the beginning of the login or of a word of the name, or a tag. @param {import("./site.js").Site} site @returns {HTMLElement} */
export function peopleSearch(site) {
  let timer = 0, at = -1;
  const list = h("ul", { id: "people-found", class: "people-found", role: "listbox", "aria-label": "Users" });
  const choose = (/** @type {number} */ index) => {
    at = index;
    [...list.children].forEach((option, nth) => option.setAttribute("aria-selected", String(nth === at)));
    input.setAttribute("aria-activedescendant", list.children[at]?.id ?? "");
  };
  const none = h("p", { class: "people-found muted", role: "status" });
  const show = (/** @type {any[]} */ users, text = "") => {
    fill(none, text && `Nobody whose username, or a word of whose name, begins with “${text}”.`);
    fill(list, users.map((user, nth) => h("li", { id: `people-found-${nth}`, role: "option", class: "row nowrap", onpointerdown: (/** @type {Event} */ event) => event.preventDefault(), onclick: () => go(userHref(user.login)) },
      face(user), h("span", {}, isolate(user.name), " ", isolate(`@${user.login}`, { class: "muted" })))));
    input.setAttribute("aria-expanded", String(users.length > 0));
    choose(-1);
  };
  const go = (/** @type {string} */ href) => { clearTimeout(timer); show([]); site.app.go(href); };
  const written = () => input.value.trim().replace(/^@/, "");
  /** Shows who is found, and returns whom Enter means: who has just this username comes first. */
  const ask = async () => {
    const q = written();
    const found = q && !q.startsWith("#") ? await site.get("/v1/users/search", { q, count: 6 }).catch(() => null) : null;
    if (q !== written() || input !== document.activeElement) return null;
    show(found?.users ?? [], found?.users.length === 0 ? q : "");
    return found?.users[0];
  };
  const soon = (/** @type {Event} */ event) => (clearTimeout(timer), (timer = isComposing(event) ? 0 : setTimeout(ask, 200)));
  const key = (/** @type {KeyboardEvent} */ event) => {
    const step = /** @type {any} */ ({ ArrowDown: 1, ArrowUp: -1, Escape: 0 })[event.key], places = list.children.length + 1; // the last one is the field itself
    if (isComposing(event) || places === 1 || step === undefined) return;
    (event.preventDefault(), event.stopPropagation());
    return step ? choose(((at + 1 + step + places) % places) - 1) : show([]);
  };
  const input = h("input", { type: "search", role: "combobox", "aria-label": "Find a user or a #tag", "aria-expanded": "false", "aria-controls": list.id, "aria-autocomplete": "list", placeholder: "name or #tag", maxlength: 50, autocapitalize: "none", autocomplete: "off", spellcheck: "false", class: "people-search",
    onkeydown: key, onblur: () => show([]), oninput: soon, oncompositionend: soon });
  const onsubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    clearTimeout(timer);
    if (at >= 0) return list.children[at].click();
    if (written().startsWith("#")) return go(tagHref(written().slice(1)));
    input.focus(); // by the button, too, so that one reads whether nobody is found
    const user = await ask();
    if (user) go(userHref(user.login));
  };
  return h("form", { role: "search", class: "people-find", onsubmit }, input, h("button", { class: "quiet", "aria-label": "Find" }, icon("search")), list, none);
}

/** Suggests people to a user who follows nobody. @param {import("./page.js").Page} page @param {Element} place @param {() => void} done after each follow */
export async function peopleToFollow({ site }, place, done) {
  if (site.me.following || (await site.get("/v1/users/me")).following) return;
  const { users } = await site.get("/v1/users/suggested", { count: 5 });
  if (users.length) fill(place, h("h2", {}, "People to follow"), users.map((/** @type {any} */ { id, login }, /** @type {number} */ nth) => {
    const deed = { text: `You follow @${login}`, method: "PUT", path: `/v1/users/me/following/${id}`, hides: `to-follow-${id}`, done };
    return site.app.undo.tie(userRow(users[nth], h("button", { type: "button", class: "primary", "aria-label": `Follow @${login}`, onclick: () => site.app.undo.later(deed) }, "Follow")), deed.hides);
  }));
}
