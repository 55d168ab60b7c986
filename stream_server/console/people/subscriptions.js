// @ts-check
/** The user's named subscriptions: what each reads, how far behind it is, how its webhook does, and a button that deletes it. */

import { duration, fill, h, isolate, time } from "../dom.js";
import { toQuery } from "../client.js";
import { counted } from "./text.js";
import { deed } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */

/** @param {Page} page */
export async function subscriptions(page) {
  const { site } = page;
  page.show("Subscriptions");
  const answer = await page.attempt(() => site.get("/v1/subscriptions"));
  if (!answer || page.ended) return;
  const rows = answer.subscriptions.map((/** @type {any} */ one) => row(site, one));
  page.show("Subscriptions",
    h("p", { class: "muted" }, "For each one the server keeps what a program has handled, so that it goes on there when it returns."),
    fill(h("ul", { class: "feed-list", "aria-label": "Your subscriptions" }), rows.length ? rows : h("li", { class: "empty" }, "You have no subscriptions yet.")));
}

/** @param {import("./site.js").Site} site @param {any} one */
function row(site, one) {
  const { undo } = site.app;
  const path = `/v1/subscriptions/${encodeURIComponent(one.name)}`;
  const hides = `subscription-${one.name}`;
  const behind = one.behind ? `${counted(one.behind, "entry", "entries")} behind, ${duration(one.behind_seconds)}` : "not behind";
  const kept = one.kept_seconds === undefined ? "" : `the log keeps the next one for about ${duration(one.kept_seconds)}`;
  const shared = one.parts?.length ? h("div", {}, `${counted(one.parts.length, "part", "parts")}: `, isolate(readers(one.parts))) : "";
  const remove = deed("Delete", async () => undo.later({ text: `The subscription ${one.name} is deleted`, method: "DELETE", path, hides }), "danger");
  return undo.tie(h("li", {},
    h("div", { class: "entry" }, h("strong", {}, isolate(one.name)), h("span", { class: "muted entry-about" }, isolate(toQuery(one.parameters))), remove),
    h("div", { class: "entry" }, h("span", {}, behind), h("span", { class: "muted" }, kept), h("span", { class: "muted" }, "used at ", time(one.used))),
    shared, one.deliver ? webhook(one.deliver) : ""), hides);
}

/** Where the server sends the events, how that goes, and the outcomes of the last requests. @param {any} sent */
function webhook(sent) {
  const next = sent.next_attempt ? [", tried again at ", time(sent.next_attempt)] : [];
  const about = h("div", {}, "sent to ", isolate(sent.url), `: ${sent.state}`, ...next);
  if (!sent.outcomes.length) return about;
  const outcome = (/** @type {any} */ one) => h("li", {}, time(one.sent), ` ${one.status ?? one.error}, ${counted(one.events, "event", "events")}`);
  return h("div", {}, about,
    h("details", {}, h("summary", {}, `The last requests: ${sent.outcomes[0].status ?? sent.outcomes[0].error}`),
      h("ul", { class: "plain" }, ...sent.outcomes.map(outcome))));
}

/** Who reads how many parts of a shared subscription. @param {{worker: string | null}[]} parts */
function readers(parts) {
  /** @type {Map<string, number>} */ const held = new Map();
  for (const { worker } of parts) held.set(worker ?? "nobody", (held.get(worker ?? "nobody") ?? 0) + 1);
  return [...held].map(([worker, count]) => `${worker} reads ${count}`).join(", ");
}
