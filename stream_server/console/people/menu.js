// @ts-check
/** The menu of a status, and the form that reports a status or a user. */

import { fill, h } from "../dom.js";
import { explain } from "../session.js";
import { drawing } from "./icons.js";
import { RetryKey } from "./site.js";

/** @typedef {Record<string, any>} Json */
/** @typedef {import("./site.js").Site} Site */

const REASONS = ["spam", "abuse", "harassment", "impersonation", "illegal", "other"];

/** Return the menu of a card. @param {Site} site @param {import("./post.js").PostCard} card */
export function moreMenu(site, card) {
  const { status } = card;
  if (!status) return null;
  const own = status.uid === site.me.id;
  const others = [
    entry(`Mute @${status.login}`, () => mute(site, card)),
    entry(`Block @${status.login}`, () => block(site, card)),
    entry("Report …", () => { fill(card.slot, reportForm(site, { status: status.id }, card.slot)); card.slot.querySelector("select")?.focus(); }),
  ];
  return menu("More", [
    entry("Open the conversation", () => site.app.go(`#/people/status/${status.id}`)),
    ...(own ? [entry("Delete", () => card.removePost(status.id), "danger")] : others),
  ]);
}

/** Return a button that opens a small menu. @param {string} label @param {any[]} entries */
export function menu(label, entries) {
  const root = h("details", { class: "more-menu" }, h("summary", { class: "post-action", "aria-label": label, title: label }, drawing("more")), h("div", { class: "menu-list" }, ...entries));
  const close = () => { root.open = false; };
  root.addEventListener("click", (/** @type {Event} */ event) => { if (/** @type {Element} */ (event.target).closest("button")) close(); });
  root.addEventListener("focusout", (/** @type {FocusEvent} */ event) => { if (!root.contains(/** @type {Node} */ (event.relatedTarget))) close(); });
  root.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Escape" || !root.open) return;
    close();
    root.querySelector("summary")?.focus();
  });
  return root;
}

/** @param {string} label @param {() => any} onclick @param {string} [kind] */
export function entry(label, onclick, kind = "") {
  return h("button", { type: "button", class: ["menu-entry", kind], onclick }, h("bdi", {}, label));
}

/** @param {Site} site @param {import("./post.js").PostCard} card */
async function mute(site, card) {
  const { login, uid } = /** @type {Json} */ (card.status);
  await card.attempt(async () => {
    await site.write("PUT", `/v1/users/me/mutes/${uid}`);
    site.hideUser(uid);
    site.app.say(`@${login} is muted. You can end this under Privacy.`);
  });
}

/** @param {Site} site @param {import("./post.js").PostCard} card */
async function block(site, card) {
  const { login, uid } = /** @type {Json} */ (card.status);
  await card.attempt(async () => {
    await site.write("PUT", `/v1/users/me/blocks/${uid}`);
    site.hideUser(uid);
    site.app.say(`@${login} is blocked. You can end this under Privacy.`);
  });
}

/** Return the form that reports a user or a status to the administrators. @param {Site} site @param {Json} what @param {Element} slot */
export function reportForm(site, what, slot) {
  const key = new RetryKey();
  const reason = h("select", { name: "reason", "aria-label": "Reason" }, ...REASONS.map((each) => h("option", { value: each }, each)));
  const note = h("input", { name: "note", maxlength: "500", "aria-label": "Note", placeholder: "Note for the administrators", dir: "auto" });
  const problem = h("p", { class: "problem", role: "alert" });
  const form = h("form", { class: "report-form" }, h("strong", {}, "Report"), reason, note, problem,
    h("div", { class: "row end" }, h("button", { type: "button", onclick: () => fill(slot) }, "Cancel"), h("button", { class: "primary" }, "Send report")));
  form.addEventListener("submit", async (/** @type {Event} */ event) => {
    event.preventDefault();
    const body = { ...what, reason: reason.value, note: note.value };
    try {
      await site.write("POST", "/v1/reports", body, key.of(body));
      fill(slot, h("p", { class: "muted", role: "status" }, "Thank you. The administrators see your report."));
    } catch (error) {
      fill(problem, explain(error));
    }
  });
  return form;
}
