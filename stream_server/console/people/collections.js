// @ts-check
/** Lists and groups: the user's own, invitations, and one of them with its posts and its members. */

import { fill, h, isolate } from "../dom.js";
import { form, formEnd, problemBox } from "../forms.js";
import { Composer } from "./composer.js";
import { RetryKey } from "./site.js";
import { counted, userLink } from "./text.js";
import { deed, lock, loginForm, removableRow, userRow } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */

const KINDS = /** @type {Record<string, string>} */ ({
  public: "public: everybody may read and join",
  private: "private: only members see it, and you add them",
  announcement: "announcement: everybody may read and join, only you post",
});

/**
 * Return the form. It keeps what was written if the server refuses it, and its key, so that a retry makes nothing twice.
 * @param {{title: string, button: string, given?: any, more?: any, read?: () => any,
 *   send: (body: any, key: string) => Promise<any>, onCancel?: () => void}} options
 */
export function namedForm(options) {
  const { given = {} } = options;
  const key = new RetryKey();
  return form({ class: "card stack", "aria-label": options.title }, [
    h("h2", {}, options.title),
    h("label", {}, "Name", h("input", { name: "name", maxlength: "50", required: true, dir: "auto", autocomplete: "off", value: given.name ?? "" })),
    h("label", {}, "Description", h("input", { name: "description", maxlength: "200", dir: "auto", autocomplete: "off", value: given.description ?? "" })),
    options.more, problemBox(), formEnd(options.button, options.onCancel),
  ], async ({ elements: { name, description } }) => {
    const body = { name: name.value, description: description.value, ...options.read?.() };
    await options.send(body, key.of(body));
  });
}

/** Return a button that shows a form beneath it, and hides it again. @param {string} label @param {(close: () => void) => Element} make */
export function unfold(label, make) {
  const slot = h("div", {});
  const button = h("button", { type: "button", "aria-expanded": "false" }, label);
  const close = () => {
    fill(slot);
    button.setAttribute("aria-expanded", "false");
  };
  button.addEventListener("click", () => {
    if (slot.childElementCount) return close();
    const form = make(close);
    fill(slot, form);
    button.setAttribute("aria-expanded", "true");
    form.querySelector("input")?.focus();
    return undefined;
  });
  return { button, slot };
}

/**
 * Return what the owner of a list or a group can do with it.
 * @param {import("./site.js").Site} site @param {"list" | "group"} kind @param {any} found
 * @param {(title: string, button: string, given: any, send: (body: any, key: string) => Promise<any>, onCancel: () => void) => Element} makeForm
 */
export function ownerTools(site, kind, found, makeForm) {
  const path = `/v1/${kind}s/${found.id}`;
  const edit = unfold("Edit", (close) => makeForm(`Edit the ${kind}`, "Save", found, async (body, key) => {
    await site.write("PATCH", path, body, key);
    site.app.say("Saved");
    site.reload();
  }, close));
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
  const make = unfold("New list", (close) => listForm("New list", "Create", {}, async (body, key) => {
    feed.announce(await site.write("POST", "/v1/lists", body, key), true);
    close();
  }, close));
  page.show("Lists", h("div", { class: "row end" }, make.button), make.slot, feed.root);
}

/** @param {string} title @param {string} button @param {any} given @param {(body: any, key: string) => Promise<any>} send @param {() => void} onCancel */
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
  page.show(list.name, about, own ? ownerTools(site, "list", list, listForm) : null, tabs(`#/people/lists/${id}`, tab, [["posts", "Posts"], ["members", "Members"]]),
    tab === "members" ? members(page, "list", list, own, "Add", "The list has no members yet.")
      : page.statuses(`/v1/lists/${encodeURIComponent(id)}/statuses`, { label: "Posts of the members", empty: "The members have posted nothing yet." }).root);
}

/** @param {Page} page */
export function groups(page) {
  const { site } = page;
  const feed = page.feed("/v1/users/me/groups", "groups", { label: "Your groups", empty: "You are in no group yet." }, (group) => site.app.undo.tie(entryLink("group", group, h("span", { class: "pill" }, group.kind)), `group-${group.id}`));
  const join = (group) => async () => {
    await site.write("PUT", `/v1/groups/${group.id}/members/me`);
    site.app.go(`#/people/groups/${group.id}`);
  };
  const decline = ({ id, name }) => async () =>
    site.app.undo.later({ text: `You declined to join ${name}`, method: "DELETE", path: `/v1/groups/${id}/members/me`, hides: `invitation-${id}` });
  const invitations = page.feed("/v1/users/me/invitations", "groups", { label: "Invitations", empty: "" }, (group) => site.app.undo.tie(h("div", { class: "entry" },
    h("strong", {}, isolate(group.name)), h("span", { class: "muted" }, "You are invited."),
    deed("Join", join(group), "primary"), deed("Decline", decline(group))), `invitation-${group.id}`));
  const make = unfold("New group", (close) => groupForm("New group", "Create", {}, async (body, key) => {
    const group = await site.write("POST", "/v1/groups", body, key);
    site.app.go(`#/people/groups/${group.id}`);
  }, close));
  page.show("Groups", h("div", { class: "row end" }, make.button), make.slot, invitations.root, feed.root);
}

/** @param {string} title @param {string} button @param {any} given @param {(body: any, key: string) => Promise<any>} send @param {() => void} onCancel */
function groupForm(title, button, given, send, onCancel) {
  if (given.id) return namedForm({ title, button, given, send, onCancel });
  const kind = h("select", { name: "kind" }, ...Object.entries(KINDS).map(([value, text]) => h("option", { value }, text)));
  return namedForm({ title, button, send, onCancel, more: h("label", {}, "Kind", kind), read: () => ({ kind: kind.value }) });
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
    h("div", { class: "row" }, own ? null : membership(page, group, member)), own ? ownerTools(site, "group", group, groupForm) : null,
    tabs(`#/people/groups/${id}`, tab, [["posts", "Posts"], ["members", "Members"]]),
    tab === "members" ? members(page, "group", group, own, group.kind === "private" ? "Add or invite" : "", "No members.") : groupPosts(page, group, member && (own || group.kind !== "announcement")));
}

/** @param {import("./site.js").Site} site @param {string} id @returns {Promise<boolean>} */
async function isMember(site, id) {
  if (site.app.undo.has("DELETE", `/v1/groups/${id}/members/me`)) return false;
  for (let before = null, more = true; more;) {
    const answer = await site.get("/v1/users/me/groups", { count: 200, before });
    if (answer.groups.some((group) => group.id === id)) return true;
    before = answer.next;
    more = before !== null;
  }
  return false;
}

/** @param {Page} page @param {any} group @param {boolean} member */
function membership(page, group, member) {
  const { site } = page;
  const path = `/v1/groups/${group.id}/members/me`;
  const undone = () => page.ended || site.reload();
  return deed(member ? "Leave" : "Join", async () => {
    if (member) site.app.undo.later({ text: `You left ${group.name}`, method: "DELETE", path, undone });
    else await site.write("PUT", path);
    if (!page.ended) site.reload();
  }, member ? "" : "primary");
}

/** @param {Page} page @param {any} group @param {boolean} mayPost */
function groupPosts(page, group, mayPost) {
  const { site } = page;
  const feed = page.statuses(`/v1/groups/${group.id}/statuses`, { label: "Posts in the group", empty: "Nobody has posted here yet." });
  site.onPosted = (status) => { if (status.group === group.id) feed.announce(status, true); };
  page.on("post", ({ status }) => { if (status.group === group.id) feed.announce(status, status.uid === site.me.id); });
  page.on("delete", ({ status }) => feed.drop(status.id));
  const composer = mayPost ? new Composer(site.app, { group: group.id }, { onPosted: site.onPosted, hint: `Post in ${group.name}` }).root : null;
  return h("div", {}, composer, feed.root);
}

/** Return links to the parts of a page. @param {string} href @param {string} current @param {[string, string][]} parts names in the address, and titles */
export function tabs(href, current, parts) {
  return h("nav", { class: "subtabs", "aria-label": "Parts of this page" },
    ...parts.map(([name, title]) => h("a", { href: `${href}/${name}`, "aria-current": name === current ? "page" : null }, title)));
}
