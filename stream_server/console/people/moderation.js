// @ts-check
/** What administrators do: decide reports, suspend users, and see who did what. */

import { fill, h, isolate } from "../dom.js";
import { choice, refusal } from "../forms.js";
import { tabbed } from "./page.js";
import { userLink, when } from "./text.js";
import { loginForm, removableRow } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */

const NOTE = { "aria-label": "Note", placeholder: "Reason, for the audit", maxlength: "200", dir: "auto", autocomplete: "off" };
const SUSPENDED = "is suspended: the streams and sessions end, and nobody sees what the user wrote";

/** What administrators do, by the names of deeds and the outcomes of reports; … is whom it was about. @type {Record<string, string>} */
const DEEDS = {
  suspend: "suspended …", reinstate: "lifted the suspension of …", create_users: "created … users", grant_admin: "made … an administrator", revoke_admin: "took the rights of an administrator from …",
  ingest: "used a token to ingest, of …", delete_user: "deleted the account of …", end_stream: "ended a stream of …",
  dismissed: "dismissed a report of …", removed: "removed a reported post of …", suspended: "suspended … after a report",
};

/** @param {Page} page @param {string} [tab] */
export function moderation(page, tab) {
  if (!page.site.app.can("admin")) return page.show("Moderation", h("p", {}, "This page needs a session with the scope ", h("code", {}, "admin"), "."));
  return page.show("Moderation", h("div", { class: "stack" }, tabbed("#/people/moderation", tab, {
    reports: ["Reports", () => reports(page)],
    suspensions: ["Suspensions", () => suspensions(page)],
    audit: ["Audit", () => audit(page)],
  }, "What to see")));
}

/** Return a list whose rows name users: those of a page are asked for together. What waits to be sent is among the rows. @param {Page} page @param {string} path @param {string} noun @param {any} query @param {string} empty @param {(item: any) => (string | null)[]} ids @param {(item: any) => Element} render */
function named(page, path, noun, query, empty, ids, render) {
  const heed = (/** @type {any} */ answer) => {
    if (query.state !== "open") answer[noun].unshift(...page.site.app.undo.adding(path).map(({ item }) => item));
    return page.site.usersById(answer[noun].flatMap(ids).filter(Boolean));
  };
  return page.feed(path, noun, { label: noun, empty, query, heed }, render);
}

/** The login of a user, or the id of one who is not visible. @param {Page} page @param {string} id */
const who = (page, id) => (page.site.users.has(id) ? userLink(page.site.users.get(id).login) : h("code", {}, id));

/** @param {Page} page */
function reports(page) {
  const place = h("div", {});
  const show = (/** @type {string} */ state) => fill(place, named(page, "/v1/admin/reports", "reports", { state }, `No ${state} reports.`, (one) => [one.uid, one.decided_by], (one) => report(page, one)).root);
  show("open");
  return h("div", { class: "stack" }, choice({ class: "row", "aria-label": "State" }, { open: "Open", decided: "Decided" }, show), place);
}

/** @param {Page} page @param {any} one */
function report(page, one) {
  const { me, view, app: { undo } } = page.site;
  const { user, status } = one.reported;
  const sign = (/** @type {any} */ { outcome, id }) => `report-${id}-${outcome ? "decided" : "open"}`;
  const note = h("input", { ...NOTE, "aria-label": "Note of the decision" });
  const decide = (/** @type {string} */ outcome, /** @type {string} */ label, /** @type {string} */ text, kind = "") =>
    h("button", { type: "button", class: kind, onclick: () => {
      const item = { ...one, outcome, decided: new Date().toISOString(), decided_by: me.id, remark: note.value };
      undo.later({ text, method: "PATCH", path: `/v1/admin/reports/${one.id}`, body: { outcome, note: note.value }, hides: sign(one), item, undone: () => undo.take(sign(item)), done: () => view.path[1] === "suspensions" && view.reload() });
    } }, label);
  return undo.tie(h("article", { class: "stack", "aria-label": `Report: ${one.reason}` },
    h("div", { class: "entry" }, h("strong", {}, one.reason), h("span", {}, "of ", user ? userLink(user.login) : "a deleted account"), h("span", { class: "muted" }, "by ", who(page, one.uid), ", ", when(one.posted))),
    one.note && h("p", { dir: "auto" }, one.note),
    one.status && (status ? h("blockquote", { dir: "auto" }, status.message, " ", h("a", { href: `#/people/status/${one.status}` }, "Open the post")) : h("p", { class: "muted" }, "The post is deleted.")),
    one.outcome
      ? h("p", { class: "muted" }, `${one.outcome}, `, when(one.decided), " by ", one.decided_by ? who(page, one.decided_by) : "the command line", one.remark && [": ", isolate(one.remark)])
      : h("div", { class: "row" }, note, decide("dismissed", "Dismiss", "The report is dismissed"),
        status && decide("removed", "Remove post", "The reported post is deleted", "danger"), user && user.id !== me.id && decide("suspended", "Suspend user", `@${user.login} ${SUSPENDED}`, "danger"))), sign(one));
}

/** @param {Page} page */
function suspensions(page) {
  const { site } = page;
  const { me, app: { undo } } = site;
  const all = "/v1/admin/suspensions";
  const note = h("input", NOTE);
  const load = () => void (page.ended || feed.restart()); // again when it is done: an answer on its way may not have it
  const add = loginForm(site, (user) => {
    const path = `${all}/${user.id}`;
    if (user.id === me.id) throw refusal("you cannot suspend yourself", "login");
    if (undo.has("PUT", path)) throw refusal(`@${user.login} is suspended already`, "login");
    const item = { ...user, since: new Date().toISOString(), suspension: { by: me.id, note: note.value } };
    undo.later({ text: `@${user.login} ${SUSPENDED}`, method: "PUT", path: `${path}?note=${encodeURIComponent(note.value)}`, item, undone: () => undo.take(`row-${path}`), done: load });
    load();
  }, note, h("button", { class: "danger" }, "Suspend"));
  const feed = named(page, all, "users", {}, "Nobody is suspended.", ({ suspension }) => [suspension.by], (user) => {
    const { by, note: reason } = user.suspension;
    const row = removableRow(site, user, "Lift", { text: `@${user.login} is not suspended any more`, path: `${all}/${user.id}` });
    row.querySelector(".user-row-main")?.append(h("p", { class: "muted" }, "since ", when(user.since), by && [" by ", who(page, by)], ": ", reason ? isolate(reason) : "no reason was given"));
    return row;
  });
  return h("div", { class: "stack" }, add, feed.root);
}

/** @param {Page} page */
function audit(page) {
  const whom = (/** @type {any} */ { deed, on, user }) => (user?.login ? userLink(user.login) : user ? ["a deleted account ", h("code", {}, user.id)] : deed === "create_users" ? on : "a reader token");
  return named(page, "/v1/admin/audit", "deeds", {}, "No administrator has done anything yet.", (one) => [one.by], (one) => {
    const [before, after] = (DEEDS[one.deed === "decide" ? one.details : one.deed] ?? `${one.deed} …`).split("…");
    return h("div", { class: "entry" }, when(one.at),
      h("span", {}, one.by ? who(page, one.by) : "the command line", " ", h("strong", {}, before), whom(one), after && h("strong", {}, after), one.note && [": ", isolate(one.note)]),
      ["end_stream", "ingest"].includes(one.deed) && h("code", { class: "muted" }, one.details));
  }).root;
}
