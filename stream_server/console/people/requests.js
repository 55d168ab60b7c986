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
    sent: ["Sent", () => removable(page, "/v1/users/me/requests/sent", "/v1/users/me/following", "Cancel request", "no longer has your request", "You have asked nobody.")],
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
      site.app.undo.take(row.dataset.goes ?? "");
      done();
    }, "primary");
    const row = removableRow(site, user, "Decline", { text: `You declined the request of @${user.login}`, path: `${path}/${user.id}`, done }, approve);
    return row;
  }).root;
}

/** @param {Page} page @param {string} [tab] */
export function privacy(page, tab) {
  const part = (/** @type {string} */ about, /** @type {string} */ relation, /** @type {string} */ label, /** @type {string} */ told, /** @type {string} */ empty) => {
    const path = `/v1/users/me/${relation}`;
    return [h("p", { class: "muted" }, about), removable(page, path, path, label, told, empty)];
  };
  page.show("Blocked and muted", tabbed("#/people/privacy", tab, {
    blocked: ["Blocked", () => part("You and the users whom you block cannot see or reach each other.", "blocks", "Unblock", "is not blocked any more", "You have blocked nobody.")],
    muted: ["Muted", () => part("You do not see the posts of users whom you mute. They do not learn of it.", "mutes", "Unmute", "is not muted any more", "You have muted nobody.")],
  }));
}

/** Return a list of users, each with a button that takes it out. @param {Page} page @param {string} path @param {string} change @param {string} label @param {string} told @param {string} empty */
function removable(page, path, change, label, told, empty) {
  return page.users(path, { label: "Users", empty }, (user) =>
    removableRow(page.site, user, label, { text: `@${user.login} ${told}`, path: `${change}/${user.id}` })).root;
}
