// @ts-check
/** Requests to follow, those that came and those that were sent; and privacy: who is blocked and who is muted. */

import { h } from "../dom.js";
import { tabbed } from "./page.js";
import { deed, removableRow } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */

/** @param {Page} page @param {string} [tab] */
export function requests(page, tab) {
  page.show("Follow requests", tabbed("#/people/requests", tab, {
    received: ["Received", () => received(page)],
    sent: ["Sent", () => removable(page, "/v1/users/me/requests/sent", "Cancel request", "no longer has your request", "You have asked nobody.", "/v1/users/me/following")],
  }));
}

/** @param {Page} page */
function received(page) {
  const { site } = page;
  const path = "/v1/users/me/requests";
  for (const kind of ["request", "unrequest"]) page.on(kind, () => page.reload());
  const done = () => site.setCount("requests", site.counts.requests - 1);
  return page.users(path, { label: "Requests", empty: "Nobody waits for your answer." }, (user) => {
    const approve = deed("Approve", async () => {
      await site.write("PUT", `${path}/${user.id}`);
      site.app.undo.take(`row-${path}/${user.id}`);
      done();
    }, "primary");
    return removableRow(site, user, "Decline", { text: `You declined the request of @${user.login}`, path: `${path}/${user.id}`, done }, approve);
  }).root;
}

/** @param {Page} page @param {string} [tab] */
export function privacy(page, tab) {
  const part = (/** @type {string} */ about, /** @type {string} */ relation, /** @type {string} */ label, /** @type {string} */ told, /** @type {string} */ empty) =>
    [h("p", { class: "muted" }, about), removable(page, `/v1/users/me/${relation}`, label, told, empty)];
  page.show("Blocked and muted", tabbed("#/people/privacy", tab, {
    blocked: ["Blocked", () => part("You and the users whom you block cannot see or reach each other.", "blocks", "Unblock", "is not blocked any more", "You have blocked nobody.")],
    muted: ["Muted", () => part("You do not see the posts of users whom you mute. They do not learn of it.", "mutes", "Unmute", "is not muted any more", "You have muted nobody.")],
  }));
}

/** Return a list of users, each with a button that takes it out. @param {Page} page @param {string} path @param {string} label @param {string} told @param {string} empty @param {string} [change] the path below which it is taken out */
function removable(page, path, label, told, empty, change = path) {
  return page.users(path, { label: "Users", empty }, (user) =>
    removableRow(page.site, user, label, { text: `@${user.login} ${told}`, path: `${change}/${user.id}` })).root;
}
