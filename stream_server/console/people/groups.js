// @ts-check
/** Groups: one's own, invitations, and one group with its posts and members. */

import { h, isolate } from "../dom.js";
import { Composer } from "./composer.js";
import { tabs } from "./lists.js";
import { memberRows, namedForm, ownerTools, unfold } from "./named_form.js";
import { deed, loginForm } from "./user_row.js";
import { counted } from "./text.js";

/** @typedef {import("./page.js").Page} Page */
/** @typedef {Record<string, any>} Json */

const KINDS = /** @type {Record<string, string>} */ ({
  public: "public: everybody may read and join",
  private: "private: only members see it, and you add them",
  announcement: "announcement: everybody may read and join, only you post",
});

/** @param {Page} page */
export function groups(page) {
  const { site } = page;
  const feed = page.feed("/v1/users/me/groups", "groups", { label: "Your groups", empty: "You are in no group yet." }, (group) => site.app.undo.tie(groupEntry(group), `group-${group.id}`));
  const join = (/** @type {Json} */ group) => async () => {
    await site.write("PUT", `/v1/groups/${group.id}/members/me`);
    site.app.go(`#/people/groups/${group.id}`);
  };
  const decline = (/** @type {Json} */ { id, name }) => async () =>
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

/** @param {Json} group */
function groupEntry(group) {
  return h("a", { class: "entry", href: `#/people/groups/${group.id}` },
    h("strong", {}, isolate(group.name)), h("span", { class: "pill" }, group.kind),
    h("span", { class: "muted entry-about" }, isolate(group.description)), h("span", { class: "muted" }, counted(group.members, "member")));
}

/** @param {string} title @param {string} button @param {Json} given @param {(body: Json, key: string) => Promise<any>} send @param {() => void} onCancel */
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
    tab === "members" ? members(page, group, own) : groupPosts(page, group, member && (own || group.kind !== "announcement")));
}

/** @param {import("./site.js").Site} site @param {string} id @returns {Promise<boolean>} */
async function isMember(site, id) {
  if (site.app.undo.has("DELETE", `/v1/groups/${id}/members/me`)) return false;
  for (let before = null, more = true; more;) {
    const answer = await site.get("/v1/users/me/groups", { count: 200, before });
    if (answer.groups.some((/** @type {Json} */ group) => group.id === id)) return true;
    before = answer.next;
    more = before !== null;
  }
  return false;
}

/** @param {Page} page @param {Json} group @param {boolean} member */
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

/** @param {Page} page @param {Json} group @param {boolean} mayPost */
function groupPosts(page, group, mayPost) {
  const { site } = page;
  const feed = page.statuses(`/v1/groups/${group.id}/statuses`, { label: "Posts in the group", empty: "Nobody has posted here yet." });
  site.onPosted = (status) => { if (status.group === group.id) feed.announce(status, true); };
  page.on("post", ({ status }) => { if (status.group === group.id) feed.announce(status, status.uid === site.me.id); });
  page.on("delete", ({ status }) => feed.drop(status.id));
  const composer = mayPost ? new Composer(site.app, { group: group.id }, { onPosted: site.onPosted, hint: `Post in ${group.name}` }).root : null;
  return h("div", {}, composer, feed.root);
}

/** @param {Page} page @param {Json} group @param {boolean} own */
function members(page, group, own) {
  const { site } = page;
  const { rows, path } = memberRows(page, "group", group, (user) => own && user.id !== group.uid, "No members.");
  const add = own && group.kind === "private" ? loginForm(site, "Username", "Add or invite", async (user) => {
    const before = group.members;
    Object.assign(group, await site.write("PUT", `${path}/${user.id}`));
    if (group.members > before) rows.announce(user, true);
    else site.app.say(`@${user.login} is invited, or is a member already.`);
  }) : null;
  return h("div", {}, add, rows.root);
}
