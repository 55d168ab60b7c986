// @ts-check
/** One user in a list of users, the buttons that belong to a relation, and the form that reports. */

import { fill, h, icon, isolate } from "../dom.js";
import { field, form, formEnd, problemBox, refusal } from "../forms.js";
import { face, userHref } from "./text.js";

const REASONS = ["spam", "abuse", "harassment", "impersonation", "illegal", "other"];

/** Return a row for a user, with buttons on its right. @param {any} user @param {...any} buttons */
export function userRow(user, ...buttons) {
  return h("div", { class: "user-row", tabindex: "-1" },
    h("a", { href: userHref(user.login), tabindex: "-1", "aria-hidden": "true" }, face(user)),
    h("div", { class: "user-row-main" },
      h("a", { href: userHref(user.login), class: "user-row-name" }, h("strong", {}, isolate(user.name)), " ", h("span", { class: "muted" }, isolate(`@${user.login}`)), user.protected ? lock() : null),
      user.bio ? h("p", { class: "user-row-bio", dir: "auto" }, user.bio) : null),
    h("div", { class: "row user-row-buttons" }, ...buttons));
}

/** The sign of a protected account. */
export const lock = () => h("span", { class: "lock", role: "img", "aria-label": "protected account", title: "protected account" }, icon("lock"));

/**
 * Return a row for a user with a button that takes it away; the write waits, so that it can be undone.
 * @param {import("./site.js").Site} site @param {any} user @param {string} label @param {{text: string, path: string, done?: () => void}} removal @param {...any} buttons further ones
 */
export function removableRow(site, user, label, removal, ...buttons) {
  const hides = `row-${removal.path}`;
  const button = h("button", { type: "button", onclick: () => site.app.undo.later({ ...removal, method: "DELETE", hides }) }, label);
  return site.app.undo.tie(userRow(user, ...buttons, button), hides);
}

/** Return a button that does something, once at a time: a form, so it keeps the focus meanwhile, and its error stands beside it. @param {string} label @param {() => Promise<any>} work @param {string} [kind] a class */
export const deed = (label, work, kind = "") => form({ class: "deed" }, [h("button", { class: kind }, h("bdi", {}, label)), problemBox()], work);

/** Return an entry with an offer. Who takes it goes to `href`; to decline it waits, so that it can be undone. @param {import("./site.js").Site} site @param {any[]} parts @param {string} yes @param {{text: string, path: string, href: string}} what is told of a decline, and whose path it is */
export function offer(site, parts, yes, { text, path, href }) {
  const hides = `row-${path}`;
  const take = () => site.write("PUT", path).then(() => site.app.go(href));
  const decline = async () => site.app.undo.later({ text, method: "DELETE", path, hides });
  return site.app.undo.tie(h("div", { class: "entry" }, parts, deed(yes, take, "primary"), deed("Decline", decline)), hides);
}

/**
 * Return a form with one field for a login. It hands the user over who has it, and says so if nobody has.
 * @param {import("./site.js").Site} site @param {(user: any) => any} work @param {...any} parts what stands behind the field: the button that sends it, at least
 */
export function loginForm(site, work, ...parts) {
  const input = h("input", { name: "login", "aria-label": "Username", placeholder: "Username", required: true, autocapitalize: "none", autocomplete: "off", spellcheck: "false", maxlength: "21" });
  return form({ class: "login-form" }, [input, parts, problemBox()], async (made) => {
    const login = input.value.trim().replace(/^@/, "");
    const found = await site.userByLogin(login).catch((error) => {
      throw error.status === 404 ? refusal(`there is no user @${login}, or the account is suspended or hides from you`, "login") : error;
    });
    await work(found);
    made.reset();
  });
}

/** The window that reports a status or a user to the administrators. @param {any} app @param {any} what `status` or `user`, an id */
export function report(app, what) {
  const reason = h("select", { name: "reason" }, ...REASONS.map((each) => h("option", { value: each }, each)));
  const parts = [h("label", {}, "Reason", reason), field("Note for the administrators", { name: "note", maxlength: "500", dir: "auto" }), problemBox(), formEnd("Send report", () => window.close())];
  const window = app.dialog(what.user ? "Report the user" : "Report the post", form({ class: "stack" }, parts, async ({ elements: { note } }, key) => {
    const body = { ...what, reason: reason.value, note: note.value };
    await app.client.request("POST", "/v1/reports", { body, headers: { "Idempotency-Key": key.of(body) } });
    window.close();
    app.say("Thank you. The administrators see your report.");
  }));
  reason.focus();
}

/** A link to what administrators decide, with the number of open reports as soon as it is known. @param {any} app @param {Record<string, any>} [attributes] */
export function moderationLink(app, attributes = {}) {
  const open = h("span", {});
  app.client.request("GET", "/v1/admin/reports", { query: { state: "open", count: 50 } }).then((/** @type {any} */ { reports, next }) => {
    if (reports.length) fill(open, " ", h("span", { class: "badge" }, reports.length, next && "+", h("span", { class: "visually-hidden" }, " open reports")));
  }, () => {}); // the link leads there all the same
  return h("a", { href: "#/people/moderation", ...attributes }, "Moderation", open);
}
