// @ts-check
/** Lists of users: one's own, and one list with its posts and members. */

import { h, isolate } from "../dom.js";
import { memberRows, namedForm, ownerTools, unfold } from "./named_form.js";
import { lock, loginForm } from "./user_row.js";
import { counted, userLink } from "./text.js";

/** @typedef {import("./page.js").Page} Page */
/** @typedef {Record<string, any>} Json */

/** @param {Page} page */
export function lists(page) {
  const { site } = page;
  const feed = page.feed(`/v1/users/${site.me.id}/lists`, "lists", { label: "Your lists", empty: "You have no lists yet." },
    (list) => site.app.undo.tie(listEntry(list), `list-${list.id}`));
  const make = unfold("New list", (close) => listForm("New list", "Create", {}, async (body, key) => {
    feed.announce(await site.write("POST", "/v1/lists", body, key), true);
    close();
  }, close));
  page.show("Lists", h("div", { class: "row end" }, make.button), make.slot, feed.root);
}

/** @param {Json} list */
function listEntry(list) {
  return h("a", { class: "entry", href: `#/people/lists/${list.id}` },
    h("strong", {}, isolate(list.name)), list.private ? lock() : null,
    h("span", { class: "muted entry-about" }, isolate(list.description)), h("span", { class: "muted" }, counted(list.members, "member")));
}

/** @param {string} title @param {string} button @param {Json} given @param {(body: Json, key: string) => Promise<any>} send @param {() => void} onCancel */
function listForm(title, button, given, send, onCancel) {
  const hidden = h("input", { type: "checkbox", name: "private", checked: given.private ?? false });
  return namedForm({ title, button, given, send, onCancel,
    more: h("label", { class: "check" }, hidden, "Private: only you see this list"), read: () => ({ private: hidden.checked }) });
}

/** @param {Page} page @param {string} id @param {string} [tab] */
export async function listPage(page, id, tab = "posts") {
  const { site } = page;
  page.show("List");
  const list = await page.attempt(() => site.get(`/v1/lists/${encodeURIComponent(id)}`));
  if (!list || page.ended) return;
  const own = list.uid === site.me.id;
  const [owner] = (await page.attempt(() => site.usersById([list.uid]))) ?? [];
  const about = h("p", { class: "muted" }, isolate(list.description), " ", list.private ? lock() : null, " by ", owner ? userLink(owner.login) : "somebody");
  page.show(list.name, about, own ? ownerTools(page.site, "list", list, listForm) : null, tabs(`#/people/lists/${id}`, tab, [["posts", "Posts"], ["members", "Members"]]),
    tab === "members" ? members(page, list, own) : listPosts(page, id));
}

/** @param {Page} page @param {string} id */
function listPosts(page, id) {
  return page.statuses(`/v1/lists/${encodeURIComponent(id)}/statuses`, { label: "Posts of the members", empty: "The members have posted nothing yet." }).root;
}

/** @param {Page} page @param {Json} list @param {boolean} own */
function members(page, list, own) {
  const { rows, path } = memberRows(page, "list", list, () => own, "The list has no members yet.");
  const add = own ? loginForm(page.site, "Username", "Add", async (user) => {
    await page.site.write("PUT", `${path}/${user.id}`);
    rows.announce(user, true);
  }) : null;
  return h("div", {}, add, rows.root);
}

/** Return links to the parts of a page. @param {string} href @param {string} current @param {[string, string][]} parts names in the address, and titles */
export function tabs(href, current, parts) {
  return h("nav", { class: "subtabs", "aria-label": "Parts of this page" },
    ...parts.map(([name, title]) => h("a", { href: `${href}/${name}`, "aria-current": name === current ? "page" : null }, title)));
}
