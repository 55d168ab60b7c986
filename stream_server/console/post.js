// @ts-check
// A post as a row: who, when, the text with its links and matched words, and why it matched.

import { fill, h, icon, isolate, time } from "./dom.js";
import { action, place, quote, toggleMark } from "./people/post.js";
import { textNodes, userLink } from "./people/text.js";
import { problemBox, told } from "./forms.js";
import { rowMenu } from "./row_menu.js";

/** @typedef {{part?: string, term?: string, filter?: string, indices?: number[][], user?: string, as?: string, box?: string, by?: string}} Reason */

/** @param {any[]} matched the matches of one column, as `matched` of a message lists them @returns {Reason[]} */
export const reasonsOf = (matched) => matched.flatMap((match) => match.parts ?? [match]);

/**
 * @param {any} status @param {Reason[]} reasons @param {any} app
 * @param {{rule: string, why: string}} column `why` says what the column is, where no part of a rule can tell it
 * @param {any} [message] by which the status came @returns {HTMLElement}
 */
export function postRow(status, reasons, app, column, message = { status }) {
  const shown = status.message || !status.original ? status : status.original;
  const why = h("div", { class: "why", hidden: true });
  const quoted = quote(status, time);
  const within = reasons.flatMap((reason) => spansInQuote(status, reason));
  if (within.length) fill(quoted.querySelector(".post-text"), textNodes(status.original.message, status.original.entities, within));
  const toggle = h("button", { class: "quiet act", "aria-expanded": "false", dataset: { act: "why" }, onclick: () => showWhy(toggle, why, status, reasons, app, column) }, "Why");
  const heart = action("heart", "Like (l)", (event) => app.attempt(() => toggleMark(app, "likes", status, heart.root.ariaPressed === "true", event, (isLiked, answer) => {
    heart.press(isLiked);
    if (answer) heart.count(answer.likes, "like");
  })), "quiet act");
  return h("article", { class: "post", tabindex: "-1", "aria-label": `@${status.login}: ${shown.message ?? ""}`, dataset: { id: status.id, uid: status.uid } },
    h("span", { class: "avatar", "aria-hidden": "true" }, status.login.slice(0, 1)),
    h("div", { class: "post-body" },
      h("header", {},
        userLink(status.login, { class: "author post-author" }),
        shown !== status && h("span", { class: "muted" }, icon("repost"), isolate(`@${shown.login}`)),
        status.in_reply_to && h("span", { class: "muted small" }, "reply"),
        status.lang && status.lang !== "und" && h("span", { class: "muted small" }, status.lang),
        shown.edited && h("span", { class: "muted small", title: `edited at ${shown.edited}` }, "edited"),
        h("a", { class: "post-time", href: `#/people/status/${status.id}` }, time(status.posted))),
      h("p", { class: "text", dir: "auto" }, textNodes(shown.message, shown.entities, reasons.flatMap((reason) => reason.indices ?? []))),
      quoted, place(status),
      h("footer", {},
        action("reply", "Reply (r)", () => app.compose({ in_reply_to: status.id, reply_to: status.login }), "quiet act").root,
        heart.root,
        toggle, rowMenu(app, message)),
      why));
}

/** Where a word that matched stands in the text of a quoted post: the server names places in the post's own text only. @param {any} status @param {Reason} reason @returns {number[][]} in code points */
function spansInQuote({ message, original }, { part = "", indices }) {
  const word = part.replace(/^"(.*)"$/s, "$1").toLowerCase();
  const [length, letters] = [Array.from(word).length, Array.from((message && original?.message) ?? "")];
  if (indices?.length || !length) return [];
  return letters.flatMap((_, at) => (letters.slice(at, at + length).join("").toLowerCase() === word ? [[at, at + length]] : []));
}

/** @param {HTMLElement} toggle @param {HTMLElement} why @param {any} status @param {Reason[]} reasons @param {any} app @param {{rule: string, why: string}} column */
function showWhy(toggle, why, status, reasons, app, column) {
  why.hidden = !why.hidden;
  toggle.setAttribute("aria-expanded", String(!why.hidden));
  if (why.hidden || why.childElementCount) return;
  fill(why,
    h("ul", {}, reasons.length ? reasons.map((reason) => h("li", {}, tellReason(reason), spansInQuote(status, reason).length > 0 && " in the quoted post")) : h("li", {}, column.why)),
    column.rule && h("button", { class: "quiet", onclick: () => showParts(why, status, app, column) }, "Every part of the rule"));
}

/** @param {Reason} reason */
function tellReason(reason) {
  const places = (reason.indices ?? []).map(([from, to]) => `${from}–${to}`).join(", ");
  const where = places && h("span", { class: "muted" }, ` at characters ${places}`);
  if (reason.part) return [h("code", {}, reason.part), where];
  if (reason.filter === "follow") return `${reason.as === "author" ? "by somebody" : `${reason.as} of somebody`} whom you follow`;
  return [h("code", {}, `${reason.filter ?? "filter"} ${reason.term ?? reason.box ?? ""}`), where];
}

/** Asks the server part by part, also for those that did not match. @param {HTMLElement} why @param {any} status @param {any} app @param {{rule: string}} column */
function showParts(why, status, app, column) {
  const problem = problemBox();
  fill(why, problem);
  return told(problem, async () => {
    const answer = await app.client.request("POST", "/v1/rules/explain", { body: { rule: column.rule, status: status.id } });
    fill(why, h("ul", { class: "parts" }, partItem(answer.parts)));
  });
}

/** @param {any} part @returns {HTMLElement} */
function partItem(part) {
  const inner = part.parts?.length ? h("ul", {}, part.parts.map(partItem)) : null;
  return h("li", { class: part.matched ? "yes" : "no" }, h("span", { class: "verdict" }, part.matched ? "yes" : "no"), " ", h("code", {}, part.text), " ", h("span", { class: "muted" }, part.why), inner);
}
