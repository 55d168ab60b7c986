// @ts-check
/** Requests to follow, those that came and those that were sent; and privacy: who is blocked and who is muted. */

import { h } from "../dom.js";
import { tabs } from "./lists.js";
import { deed, userRow } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */
/** @typedef {Record<string, any>} Json */

/** @param {Page} page @param {string} [tab] */
export function requests(page, tab = "received") {
  const { site } = page;
  page.show("Follow requests", tabs("#/people/requests", tab, ["received", "sent"]), tab === "sent" ? sent(page) : received(page));
  page.on("request", () => { if (tab !== "sent") site.reload(); });
  page.on("unrequest", () => { if (tab !== "sent") site.reload(); });
}

/** @param {Page} page */
function received(page) {
  const { site } = page;
  const answer = async (/** @type {string} */ method, /** @type {Json} */ user, /** @type {Element} */ row) => {
    await site.write(method, `/v1/users/me/requests/${user.id}`);
    row.remove();
    site.setCount("requests", site.counts.requests - 1);
  };
  return page.users("/v1/users/me/requests", { label: "Requests", empty: "Nobody waits for your answer." }, (user) => {
    const row = userRow(user, deed("Approve", () => answer("PUT", user, row), "primary"), deed("Refuse", () => answer("DELETE", user, row)));
    return row;
  }).root;
}

/** @param {Page} page */
function sent(page) {
  return removable(page, "/v1/users/me/requests/sent", "/v1/users/me/following", "Withdraw", "You have asked nobody.");
}

/** @param {Page} page @param {string} [tab] */
export function privacy(page, tab = "blocked") {
  const content = tab === "muted"
    ? removable(page, "/v1/users/me/mutes", "/v1/users/me/mutes", "End the mute", "You mute nobody.")
    : removable(page, "/v1/users/me/blocks", "/v1/users/me/blocks", "Unblock", "You block nobody.");
  page.show("Privacy", h("p", { class: "muted" }, tab === "muted"
    ? "You do not see the posts of users whom you mute. They do not learn of it."
    : "You and the users whom you block cannot see or reach each other."),
  tabs("#/people/privacy", tab, ["blocked", "muted"]), content);
}

/** Return a list of users, each with a button that takes it out. @param {Page} page @param {string} path @param {string} change @param {string} label @param {string} empty */
function removable(page, path, change, label, empty) {
  return page.users(path, { label: "Users", empty }, (user) => {
    const row = userRow(user, deed(label, async () => {
      await page.site.write("DELETE", `${change}/${user.id}`);
      row.remove();
    }));
    return row;
  }).root;
}
