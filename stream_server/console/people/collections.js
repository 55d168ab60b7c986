// @ts-check
/** Lists and groups: the user's own, invitations, and one of them with its posts and its members. */

import { fill, h, isolate } from "../dom.js";
import { form, formEnd, problemBox } from "../forms.js";
import { Composer } from "./composer.js";
import { counted, userLink } from "./text.js";
import { deed, lock, loginForm, removableRow, userRow } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */

const KINDS = /** @type {Record<string, string>} */ ({
  public: "public: everybody may read and join",
  private: "private: only members see it, and you add them",
  announcement: "announcement: everybody may read and join, only you post",
});

/**
 * Return a button that shows the form of a list or a group beneath it, and hides it again; and the place of the form. It
 * keeps what was written if the server refuses it, and its key, so that a retry makes nothing twice.
 * @param {"list" | "group"} kind @param {any} given what is changed, or {} for a new one @param {string} label @param {string} title @param {string} word of the button that sends it
 * @param {(body: any, key: string) => Promise<any>} send
 */
function unfold(kind, given, label, title, word, send) {
  const slot = h("div", {});
  const button = h("button", { type: "button", "aria-expanded": "false", onclick: () => show(!slot.childElementCount) }, label);
  const show = (/** @type {boolean} */ isOpen) => {
    button.setAttribute("aria-expanded", String(isOpen));
    fill(slot, isOpen && namedForm(kind, given, title, word, async (body, key) => { await send(body, key); show(false); }, () => show(false)));
    slot.querySelector("input")?.focus();
  };
  return { button, slot };
}

/** @param {"list" | "group"} kind @param {any} given @param {string} title @param {string} word @param {(body: any, key: string) => Promise<any>} send @param {() => void} onCancel */
function namedForm(kind, given, title, word, send, onCancel) {
  const hidden = kind === "list" ? h("input", { type: "checkbox", checked: given.private ?? false }) : null;
  const sort = kind === "group" && !given.id ? h("select", {}, Object.entries(KINDS).map(([value, text]) => h("option", { value }, text))) : null;
  return form({ class: "card stack", "aria-label": title }, [
    h("h2", {}, title),
    h("label", {}, "Name", h("input", { name: "name", maxlength: "50", required: true, dir: "auto", autocomplete: "off", value: given.name ?? "" })),
    h("label", {}, "Description", h("input", { name: "description", maxlength: "200", dir: "auto", autocomplete: "off", value: given.description ?? "" })),
    hidden && h("label", { class: "check" }, hidden, "Private: only you see this list"), sort && h("label", {}, "Kind", sort),
    problemBox(), formEnd(word, onCancel),
  ], async ({ elements: { name, description } }, key) => {
    const body = { name: name.value, description: description.value, ...(hidden && { private: hidden.checked }), ...(sort && { kind: sort.value }) };
    await send(body, key.of(body));
  });
}

/** Return what the owner of a list or a group can do with it. @param {import("./site.js").Site} site @param {"list" | "group"} kind @param {any} found */
function ownerTools(site, kind, found) {
  const path = `/v1/${kind}s/${found.id}`;
  const edit = unfold(kind, found, "Edit", `Edit the ${kind}`, "Save", async (body, key) => {
    await site.write("PATCH", path, body, key);
    site.app.say("Saved");
    site.reload();
  });
  const remove = deed(`Delete ${kind}`, async () => {
    site.app.undo.later({ text: `The ${kind} ${found.name} is deleted`, method: "DELETE", path, hides: `${kind}-${found.id}` });
    site.app.go(`#/people/${kind}s`);
  }, "danger");
  return h("div", {}, h("div", { class: "row" }, edit.button, remove), edit.slot);
}

/** A list or a group among others. @param {"list" | "group"} kind @param {any} found @param {any} sign behind its name */
function entryLink(kind, found, sign) {
  return h("a", { class: "entry", href: `#/people/${kind}s/${found.id}` },
    h("strong", {}, isolate(found.name)), sign,
    h("span", { class: "muted entry-about" }, isolate(found.description)), h("span", { class: "muted" }, counted(found.members, "member")));
}

export const listLink = (list) => entryLink("list", list, list.private ? lock() : null);

/**
 * The members of a list or a group. Its owner can remove each of them, but not the owner of a group.
 * @param {Page} page @param {"list" | "group"} kind @param {any} found @param {boolean} own whether the user is the owner @param {string} word of the button that adds a member, or ""
 * @param {string} empty
 */
function members(page, kind, found, own, word, empty) {
  const { site } = page;
  const path = `/v1/${kind}s/${found.id}/members`;
  const mayRemove = (user) => own && (kind === "list" || user.id !== found.uid);
  const rows = page.users(path, { label: "Members", empty }, (user) => (mayRemove(user)
    ? removableRow(site, user, "Remove", { text: `@${user.login} is removed`, path: `${path}/${user.id}` }) : userRow(user)));
  const add = own && word ? loginForm(site, "Username", word, async (user) => {
    const before = found.members;
    const answer = await site.write("PUT", `${path}/${user.id}`);
    if (kind === "group") Object.assign(found, answer);
    if (kind === "list" || found.members > before) rows.announce(user, true);
    else site.app.say(`@${user.login} is invited, or is a member already.`);
  }) : null;
  return h("div", {}, add, rows.root);
}

/** @param {Page} page */
export function lists(page) {
  const { site } = page;
  const feed = page.feed(`/v1/users/${site.me.id}/lists`, "lists", { label: "Your lists", empty: "You have no lists yet." },
    (list) => site.app.undo.tie(listLink(list), `list-${list.id}`));
  const make = unfold("list", {}, "New list", "New list", "Create", async (body, key) => feed.announce(await site.write("POST", "/v1/lists", body, key), true));
  page.show("Lists", h("div", { class: "row end" }, make.button), make.slot, feed.root);
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
  page.show(list.name, about, own ? ownerTools(site, "list", list) : null, partsOf("list", list, tab),
    tab === "members" ? members(page, "list", list, own, "Add", "The list has no members yet.")
      : page.statuses(`/v1/lists/${list.id}/statuses`, { label: "Posts of the members", empty: "The members have posted nothing yet." }).root);
}

/** @param {Page} page */
export function groups(page) {
  const { site } = page;
  const feed = page.feed("/v1/users/me/groups", "groups", { label: "Your groups", empty: "You are in no group yet." }, (group) => site.app.undo.tie(entryLink("group", group, h("span", { class: "pill" }, group.kind)), `group-${group.id}`));
  const path = (/** @type {any} */ { id }) => `/v1/groups/${id}/members/me`;
  const join = (/** @type {any} */ group) => site.write("PUT", path(group)).then(() => site.app.go(`#/people/groups/${group.id}`));
  const decline = async (/** @type {any} */ group) =>
    site.app.undo.later({ text: `You declined to join ${group.name}`, method: "DELETE", path: path(group), hides: `invitation-${group.id}` });
  const invitations = page.feed("/v1/users/me/invitations", "groups", { label: "Invitations", empty: "" }, (group) => site.app.undo.tie(h("div", { class: "entry" },
    h("strong", {}, isolate(group.name)), h("span", { class: "muted" }, "You are invited."),
    deed("Join", () => join(group), "primary"), deed("Decline", () => decline(group))), `invitation-${group.id}`));
  const make = unfold("group", {}, "New group", "New group", "Create", async (body, key) => {
    const group = await site.write("POST", "/v1/groups", body, key);
    site.app.go(`#/people/groups/${group.id}`);
  });
  page.show("Groups", h("div", { class: "row end" }, make.button), make.slot, invitations.root, feed.root);
}

/** @param {Page} page @param {string} id @param {string} [tab] */
export async function groupPage(page, id, tab = "posts") {
  const { site } = page;
  page.show("Group");
  const found = await page.attempt(async () => [await site.get(`/v1/groups/${encodeURIComponent(id)}`), await isMember(site, id)]);
  if (!found || page.ended) return;
  const [group, member] = found;
  const own = group.uid === site.me.id;
  page.show(group.name,
    h("p", { class: "muted" }, h("span", { class: "pill" }, group.kind), " ", isolate(group.description), ` ${counted(group.members, "member")}`),
    h("div", { class: "row" }, own ? null : membership(page, group, member)), own ? ownerTools(site, "group", group) : null, partsOf("group", group, tab),
    tab === "members" ? members(page, "group", group, own, group.kind === "private" ? "Add or invite" : "", "No members.") : groupPosts(page, group, member && (own || group.kind !== "announcement")));
}

/** @param {"list" | "group"} kind @param {any} found @param {string} tab */
const partsOf = (kind, found, tab) => tabs(`#/people/${kind}s/${found.id}`, tab, [["posts", "Posts"], ["members", "Members"]]);

/** @param {import("./site.js").Site} site @param {string} id @returns {Promise<boolean>} */
async function isMember(site, id) {
  if (site.app.undo.has("DELETE", `/v1/groups/${id}/members/me`)) return false;
  for await (const group of site.all("/v1/users/me/groups", "groups")) if (group.id === id) return true;
  return false;
}

/** @param {Page} page @param {any} group @param {boolean} member */
function membership(page, group, member) {
  const { site } = page;
  const path = `/v1/groups/${group.id}/members/me`;
  const undone = () => page.reload();
  return deed(member ? "Leave" : "Join", async () => {
    if (member) site.app.undo.later({ text: `You left ${group.name}`, method: "DELETE", path, undone });
    else await site.write("PUT", path);
    page.reload();
  }, member ? "" : "primary");
}

/** @param {Page} page @param {any} group @param {boolean} mayPost */
function groupPosts(page, group, mayPost) {
  const feed = page.statuses(`/v1/groups/${group.id}/statuses`, { label: "Posts in the group", empty: "Nobody has posted here yet." }, (status) => status.group === group.id);
  return h("div", {}, mayPost && new Composer(page.site.app, { group: group.id }, { onPosted: page.onPosted, hint: `Post in ${group.name}` }).root, feed.root);
}

/** Return links to the parts of a page. @param {string} href @param {string} current @param {[string, string][]} parts names in the address, and titles @param {string} [label] */
export function tabs(href, current, parts, label = "Parts of this page") {
  const lost = parts.every(([name]) => name !== current) && h("p", { class: "problem" }, "There is no part ", isolate(current.slice(0, 80)), ".");
  return [lost, h("nav", { class: "subtabs", "aria-label": label },
    ...parts.map(([name, title]) => h("a", { href: `${href}/${name}`, "aria-current": name === current ? "page" : null }, title)))];
}
