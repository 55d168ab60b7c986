// @ts-check
/** Lists and groups: the user's own, invitations, and one of them with its posts and its members. */

import { fill, h, isolate } from "../dom.js";
import { draftPlace, field, form, formEnd, opener, problemBox } from "../forms.js";
import { Composer } from "./composer.js";
import { tabbed } from "./page.js";
import { counted, userLink } from "./text.js";
import { deed, lock, loginForm, offer, removableRow, userRow } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */

const TEXT = { dir: "auto", autocapitalize: "sentences", spellcheck: "true" };
const KINDS = /** @type {Record<string, string>} */ ({
  public: "public: everybody may read and join",
  private: "private: only members see it, and you add them",
  announcement: "announcement: everybody may read and join, only you post",
});

/**
 * Return a row with a button, which shows the form of a list or a group beneath. The form keeps what was written if the server
 * refuses it, and its key, so that a retry makes nothing twice.
 * @param {any} app @param {"list" | "group"} kind @param {any} given what is changed, or {} for a new one @param {(body: any, key: string) => Promise<any>} send
 * @param {...any} beside further buttons of the row
 */
function unfold(app, kind, given, send, ...beside) {
  const [label, title, word] = given.id ? ["Edit", `Edit the ${kind}`, "Save"] : [`New ${kind}`, `New ${kind}`, "Create"];
  const slot = h("div", {});
  const hide = () => fill(slot);
  const open = opener(slot, draftPlace(app, kind, given.id ?? ""), (place) => {
    const hidden = kind === "list" ? h("input", { type: "checkbox", name: "private", checked: given.private ?? false }) : null;
    const sort = kind === "group" && !given.id ? h("select", { name: "kind" }, Object.entries(KINDS).map(([value, text]) => h("option", { value }, text))) : null;
    return form({ class: "card stack", "aria-label": title }, [
      h("h2", {}, title),
      field("Name", { ...TEXT, name: "name", maxlength: "50", required: true, value: given.name ?? "" }),
      field("Description", { ...TEXT, name: "description", maxlength: "200", value: given.description ?? "" }),
      hidden && h("label", { class: "check" }, hidden, "Private: only you see this list"), sort && h("label", {}, "Kind", sort),
      problemBox(), formEnd(word, hide),
    ], async (made, key) => {
      const { name, description } = made.elements;
      const body = { name: name.value, description: description.value, ...(hidden && { private: hidden.checked }), ...(sort && { kind: sort.value }) };
      await send(body, key.of(body));
      made.reset();
      hide();
    }, { draft: place });
  });
  return [h("div", { class: ["row", !given.id && "end"] }, h("button", { type: "button", onclick: open }, label), beside), slot];
}

/** Return what the owner of a list or a group can do with it. @param {import("./site.js").Site} site @param {"list" | "group"} kind @param {any} found */
function ownerTools(site, kind, found) {
  const path = `/v1/${kind}s/${found.id}`;
  const save = async (/** @type {any} */ body, /** @type {string} */ key) => {
    await site.write("PATCH", path, body, key);
    site.app.say("Saved");
    site.view.reload();
  };
  const remove = async () => {
    site.app.undo.later({ text: `The ${kind} ${found.name} is deleted`, method: "DELETE", path, hides: `${kind}-${found.id}` });
    site.app.go(`#/people/${kind}s`);
  };
  return h("div", {}, unfold(site.app, kind, found, save, deed(`Delete ${kind}`, remove, "danger")));
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
  const add = own && word && loginForm(site, async (user) => {
    const before = found.members;
    const answer = await site.write("PUT", `${path}/${user.id}`);
    if (kind === "group") Object.assign(found, answer);
    if (kind === "list" || found.members > before) rows.announce(user, true);
    else site.app.say(`@${user.login} is invited, or is a member already.`);
  }, h("button", {}, word));
  return h("div", {}, add, rows.root);
}

/** @param {Page} page */
export function lists(page) {
  const { site } = page;
  const feed = page.feed(`/v1/users/${site.me.id}/lists`, "lists", { label: "Your lists", empty: "You have no lists yet." },
    (list) => site.app.undo.tie(listLink(list), `list-${list.id}`));
  page.show("Lists", unfold(site.app, "list", {}, async (body, key) => feed.announce(await site.write("POST", "/v1/lists", body, key), true)), feed.root);
}

/** @param {Page} page @param {string} id @param {string} [tab] */
export async function listPage(page, id, tab) {
  const { site } = page;
  page.show("List");
  const list = await page.attempt(() => site.get(`/v1/lists/${encodeURIComponent(id)}`));
  if (!list || page.ended) return;
  const own = list.uid === site.me.id;
  const [owner] = (await page.attempt(() => site.usersById([list.uid]))) ?? [];
  const about = h("p", { class: "muted" }, isolate(list.description), " ", list.private ? lock() : null, " by ", owner ? userLink(owner.login) : "somebody");
  page.show(list.name, about, own && ownerTools(site, "list", list), tabbed(`#/people/lists/${list.id}`, tab, {
    posts: ["Posts", () => page.statuses(`/v1/lists/${list.id}/statuses`, { label: "Posts of the members", empty: "The members have posted nothing yet." }).root],
    members: ["Members", () => members(page, "list", list, own, "Add", "The list has no members yet.")],
  }));
}

/** @param {Page} page */
export function groups(page) {
  const { site } = page;
  const feed = page.feed("/v1/users/me/groups", "groups", { label: "Your groups", empty: "You are in no group yet." }, (group) => site.app.undo.tie(entryLink("group", group, h("span", { class: "pill" }, group.kind)), `group-${group.id}`));
  const invitations = page.feed("/v1/users/me/invitations", "groups", { label: "Invitations", empty: "" }, (group) =>
    offer(site, [h("strong", {}, isolate(group.name)), h("span", { class: "muted" }, "You are invited.")], "Join",
      { text: `You declined to join ${group.name}`, path: `/v1/groups/${group.id}/members/me`, href: `#/people/groups/${group.id}` }));
  const make = async (/** @type {any} */ body, /** @type {string} */ key) => site.app.go(`#/people/groups/${(await site.write("POST", "/v1/groups", body, key)).id}`);
  page.show("Groups", unfold(site.app, "group", {}, make), invitations.root, feed.root);
}

/** @param {Page} page @param {string} id @param {string} [tab] */
export async function groupPage(page, id, tab) {
  const { site } = page;
  page.show("Group");
  const found = await page.attempt(async () => [await site.get(`/v1/groups/${encodeURIComponent(id)}`), await isMember(site, id)]);
  if (!found || page.ended) return;
  const [group, member] = found;
  const own = group.uid === site.me.id;
  page.show(group.name,
    h("p", { class: "muted" }, h("span", { class: "pill" }, group.kind), " ", isolate(group.description), ` ${counted(group.members, "member")}`),
    h("div", { class: "row" }, !own && membership(page, group, member)), own && ownerTools(site, "group", group), tabbed(`#/people/groups/${group.id}`, tab, {
      posts: ["Posts", () => groupPosts(page, group, member && (own || group.kind !== "announcement"))],
      members: ["Members", () => members(page, "group", group, own, group.kind === "private" ? "Add or invite" : "", "No members.")],
    }));
}

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
