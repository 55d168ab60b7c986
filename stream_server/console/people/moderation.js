// @ts-check
/** What administrators do: decide reports, suspend users, and see who did what. */

import { fill, h, isolate } from "../dom.js";
import { choice } from "../forms.js";
import { tabbed } from "./page.js";
import { timeAgo, userLink } from "./text.js";
import { loginForm, removableRow } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */

const NOTE = { "aria-label": "Note", placeholder: "Reason, for other administrators", maxlength: "200", dir: "auto", autocomplete: "off" };

/** @param {Page} page @param {string} [tab] */
export function moderation(page, tab) {
  if (!page.site.app.can("admin")) return page.show("Moderation", h("p", {}, "This page needs a session with the scope ", h("code", {}, "admin"), "."));
  return page.show("Moderation", h("div", { class: "stack" }, tabbed("#/people/moderation", tab, {
    reports: ["Reports", () => reports(page)],
    suspensions: ["Suspensions", () => suspensions(page)],
    audit: ["Audit", () => audit(page)],
  }, "What to see")));
}

/** Return a list whose rows name users: those of a page are asked for together. @param {Page} page @param {string} path @param {string} noun @param {any} query @param {string} empty @param {(item: any) => (string | null)[]} ids @param {(item: any) => Element} render */
function named(page, path, noun, query, empty, ids, render) {
  const heed = (/** @type {any} */ answer) => page.site.usersById(answer[noun].flatMap(ids).filter(Boolean));
  return page.feed(path, noun, { label: noun, empty, query, heed }, render).root;
}

/** The login of a user, or the id of one who is not visible. @param {Page} page @param {string} id */
const who = (page, id) => (page.site.users.has(id) ? userLink(page.site.users.get(id).login) : h("code", {}, id));

/** @param {Page} page */
function reports(page) {
  const place = h("div", {});
  const show = (/** @type {string} */ state) => fill(place, named(page, "/v1/admin/reports", "reports", { state }, `No ${state} reports.`, (one) => [one.uid, one.decided_by], (one) => report(page, one)));
  show("open");
  return h("div", { class: "stack" }, choice({ class: "row", "aria-label": "State" }, { open: "Open", decided: "Decided" }, show), place);
}

/** @param {Page} page @param {any} one */
function report(page, one) {
  const { undo } = page.site.app;
  const { user, status } = one.reported;
  const hides = `report-${one.id}`;
  const note = h("input", { ...NOTE, "aria-label": "Note of the decision" });
  const decide = (/** @type {string} */ outcome, /** @type {string} */ label, /** @type {string} */ text, kind = "") =>
    h("button", { type: "button", class: kind, onclick: () => undo.later({ text, method: "PATCH", path: `/v1/admin/reports/${one.id}`, body: { outcome, note: note.value }, hides }) }, label);
  return undo.tie(h("article", { class: "stack", "aria-label": `Report: ${one.reason}` },
    h("div", { class: "entry" }, h("strong", {}, one.reason), h("span", {}, "of ", user ? userLink(user.login) : "a deleted account"), h("span", { class: "muted" }, "by ", who(page, one.uid), ", ", timeAgo(one.posted))),
    one.note && h("p", { dir: "auto" }, one.note),
    one.status && (status ? h("blockquote", { dir: "auto" }, status.message, " ", h("a", { href: `#/people/status/${one.status}` }, "Open the post")) : h("p", { class: "muted" }, "The post is deleted.")),
    one.outcome
      ? h("p", { class: "muted" }, `${one.outcome} `, timeAgo(one.decided), " by ", one.decided_by ? who(page, one.decided_by) : "the command line", one.remark && [": ", isolate(one.remark)])
      : h("div", { class: "row" }, note, decide("dismissed", "Dismiss", "The report is dismissed"),
        status && decide("removed", "Remove post", "The reported post is deleted", "danger"), user && decide("suspended", "Suspend user", `@${user.login} is suspended: the streams and sessions end, and nobody sees what the user wrote`, "danger"))), hides);
}

/** @param {Page} page */
function suspensions(page) {
  const { site } = page;
  const note = h("input", NOTE);
  const add = loginForm(site, (user) => {
    const done = () => { if (!page.ended) site.view.reload(); };
    site.app.undo.later({ text: `@${user.login} is suspended: the streams and sessions end, and nobody sees what the user wrote`, method: "PUT", path: `/v1/admin/suspensions/${user.id}?note=${encodeURIComponent(note.value)}`, done });
  }, note, h("button", { class: "danger" }, "Suspend"));
  return h("div", { class: "stack" }, add, page.users("/v1/admin/suspensions", { label: "Suspended users", empty: "Nobody is suspended." }, (user) =>
    removableRow(site, user, "Lift", { text: `@${user.login} is not suspended any more`, path: `/v1/admin/suspensions/${user.id}` })).root);
}

/** @param {Page} page */
function audit(page) {
  const isUser = (/** @type {any} */ one) => !["decide", "create_users"].includes(one.deed);
  return named(page, "/v1/admin/audit", "deeds", {}, "No administrator has done anything yet.", (one) => [one.by, isUser(one) ? one.on : null], (one) => h("div", { class: "entry" },
    timeAgo(one.at), h("span", {}, one.by ? who(page, one.by) : "the command line"), h("strong", {}, one.deed.replace("_", " ")), isUser(one) ? who(page, one.on) : h("code", {}, one.on), h("span", { class: "muted" }, isolate(one.details))));
}
