// @ts-check
/** The user's named subscriptions and their webhooks: how far behind each is, how its requests went, and what one can do with it. */

import { toQuery } from "../client.js";
import { duration, entry, fill, h, isolate, menu, refill, time } from "../dom.js";
import { copyText, draftPlace, field, form, formEnd, opener, problemBox, refusal } from "../forms.js";
import { RuleField } from "../rule_field.js";
import { PUTS, showPrograms } from "../snippets.js";
import { counted, filterText } from "./text.js";
import { deed } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */

const REFRESH_MS = 5000; // while the page is visible
const NAMES = "Letters of a to z, digits, _, . and -, no blanks; it begins with a letter, a digit or _."; // up to 64
const SOON_SECONDS = 3600; // the log keeps the next entry for less: a warning

/** @param {string} name */
const pathOf = (name) => `/v1/subscriptions/${encodeURIComponent(name)}`;

/** @param {Page} page */
export async function subscriptions(page) {
  const { site } = page;
  page.show("Subscriptions");
  const load = () => site.get("/v1/subscriptions");
  const answer = await page.attempt(load);
  if (!answer || page.ended) return;
  /** @type {Map<string, {element: HTMLElement, renew: (one: any) => void}>} */ let rows = new Map();
  const list = h("ul", { class: "feed-list", "aria-label": "Your subscriptions" });
  const slot = h("div", {});
  /** @param {any[]} all */
  function show(all) {
    rows = new Map(all.map((one) => [one.name, rows.get(one.name) ?? row(page, one, refresh)]));
    for (const one of all) rows.get(one.name)?.renew(one);
    const elements = [...rows.values()].map(({ element }) => element);
    if (elements.length !== list.children.length || elements.some((element, at) => element !== list.children[at])) fill(list, elements);
  }
  const refresh = () => load().then((found) => page.ended || show(found.subscriptions), () => {}); // the next one comes soon
  const timer = setInterval(() => (page.ended ? clearInterval(timer) : document.hidden || void refresh()), REFRESH_MS);
  const maker = h("button", { onclick: () => make() }, "New subscription");
  const make = opener(slot, draftPlace(site.app, "subscription"), (place) => editor(page, null, refresh, () => (fill(slot), maker.focus()), place));
  show(answer.subscriptions);
  page.show("Subscriptions",
    h("p", { class: "muted" }, "For each one the server keeps what a program has handled, so that it goes on there when it returns."),
    h("div", { class: "row end" }, maker), slot,
    h("div", { class: "secret", role: "status" }), list, h("p", { class: "feed-empty feed-none" }, "You have no subscriptions yet."));
}

/** @param {Page} page @param {any} first @param {() => Promise<any>} refresh */
function row(page, first, refresh) {
  const { app } = page.site;
  const { name } = first;
  const path = pathOf(name);
  let one = first;
  const [query, standing, sending, slot, outcomes] = [h("span", { class: "muted entry-about" }), h("div", { class: "entry" }), h("div", {}), h("div", {}), h("ul", { class: "plain" })];
  const latest = h("summary", {});
  const requests = h("details", {}, latest, outcomes);
  const post = (/** @type {string} */ deedName) => page.site.write("POST", `${path}/${deedName}`);
  const test = deed("Test", async () => fill(slot, h("p", { role: "status" }, "The test: ", outcome(await post("test")))));
  const pause = deed("Pause", async () => {
    await page.site.write("PUT", path, { parameters: one.parameters, deliver: { url: one.deliver.url, batch: one.deliver.batch, paused: !isIdle(one) } }).catch((error) => { throw error.param ? refusal(error.message) : error; }); // no field is here
    await refresh();
  });
  const edit = opener(slot, draftPlace(app, "subscription", name), (place) => editor(page, one, refresh, () => fill(slot), place));
  const copy = () => (one.deliver ? showPrograms(app, { name, parameters: one.parameters, parts: one.parts?.length, deliver: { url: one.deliver.url, batch: one.deliver.batch } }, PUTS) : showPrograms(app, { subscription: name }));
  const secret = () => app.attempt(async () => showSecret(page, name, (await post("secret")).secret, " The one before it works for another day."));
  const remove = () => app.undo.later({ text: `The subscription ${name} is deleted`, method: "DELETE", path, hides: `subscription-${name}`, done: refresh });
  const newSecret = entry("New secret", secret);
  const more = menu(`More about ${name}`, [entry("Edit", edit), entry("Copy as code", copy), newSecret]);
  const element = app.undo.tie(h("li", { tabindex: "-1" }, h("div", { class: "entry" }, h("strong", {}, isolate(name)), query, h("span", { class: "row" }, test, pause, deed("Delete", remove, "danger"), more)), standing, sending, requests, slot), `subscription-${name}`);
  return { element, renew };

  /** Shows what has changed; what one has opened stays open. @param {any} now */
  function renew(now) {
    one = now;
    const { behind, kept_seconds: kept, parts, deliver } = one;
    refill(query, isolate(filterText(toQuery(one.parameters))));
    refill(standing, h("span", { title: "The log has so many events behind its place; the filter may leave some out" }, behind ? `at most ${counted(behind, "event")} behind` : "not behind", behind > 0 && one.behind_seconds > 0 && `, ${duration(one.behind_seconds)}`),
      typeof kept === "number" && h("span", { class: kept < SOON_SECONDS ? "problem" : "muted" }, `the log keeps the next one for ${kept < SOON_SECONDS ? "only " : ""}about ${duration(kept)}`),
      h("span", { class: "muted" }, "used at ", time(one.used)), parts?.length > 0 && h("span", {}, counted(parts.length, "part"), deliver ? ", which the server sends" : [": ", isolate(readers(parts))]));
    for (const each of [test, pause, newSecret]) each.hidden = !deliver;
    requests.hidden = !deliver?.outcomes.length;
    if (!deliver) return void fill(sending);
    refill(sending, "sent to ", isolate(deliver.url), ": ", h("span", { class: deliver.state === "active" ? "" : "problem" }, deliver.state), deliver.failures > 0 && `, ${counted(deliver.failures, "failure")} in a row`, deliver.next_attempt && (Date.parse(deliver.next_attempt) > Date.now() + REFRESH_MS ? [", tried again at ", time(deliver.next_attempt)] : ", tried again in a moment"));
    pause.firstChild.textContent = isIdle(one) ? "Resume" : "Pause";
    if (requests.hidden) return;
    refill(latest, `The last requests: ${deliver.outcomes[0].status ?? deliver.outcomes[0].error}`);
    refill(outcomes, deliver.outcomes.map((/** @type {any} */ each) => h("li", {}, outcome(each))));
  }
}

/** @param {any} one */
const isIdle = ({ deliver }) => deliver.state === "paused" || deliver.state === "disabled";

/** @param {any} one of the requests to a webhook */
const outcome = (one) => [time(one.sent), ` ${one.status ?? one.error}, ${counted(one.events, "event", "events")}, ${one.milliseconds.toLocaleString("en")} ms`];

/** Shows the secret of a webhook, which no other answer has, in the place of the one before. It goes with its subscription. @param {Page} page @param {string} name @param {string} secret @param {string} [more] */
function showSecret({ root, site: { app } }, name, secret, more = "") {
  const shown = h("code", {}, secret);
  const told = h("p", { class: "row" }, h("span", {}, "The secret of ", isolate(name), ", which is shown only here:"), shown, h("button", { onclick: () => copyText(app, secret, shown) }, "Copy"), more);
  const place = /** @type {Element} */ (root.querySelector(".secret"));
  fill(place, app.undo.tie(told, `subscription-${name}`)).scrollIntoView({ block: "nearest" });
}

/** The form that makes a subscription, or changes one. @param {Page} page @param {any} one or null @param {() => Promise<any>} refresh @param {() => void} close @param {string} place of its draft */
function editor(page, one, refresh, close, place) {
  const { rule: ruleText = "", ...others } = one?.parameters ?? {};
  let free = ""; // the key of what has a name that was free: if its answer is lost, it is not refused as another one
  const rule = new RuleField(page.site.app.client, { label: "Rule, or several, a line each", value: ruleText });
  const made = form({ class: "card stack", "aria-label": one ? `Edit ${one.name}` : "New subscription" }, [
    !one && field("Name", { name: "subscription", required: true, maxlength: 64, pattern: "[A-Za-z0-9_][A-Za-z0-9_.\\-]*", title: NAMES }, NAMES),
    rule.element, field("Further parameters, as in an address", { name: "parameters", placeholder: "kinds=post&language=en", value: toQuery(others) }),
    !one && field("Begin at: an age, a time or a cursor", { name: "since", placeholder: "-15m; else with the next event" }),
    !one && field("Parts, to share it among several readers", { name: "parts", type: "number", min: 1, max: 64 }),
    field("Webhook: the https URL that gets the events", { name: "deliver.url", type: "url", value: one?.deliver?.url ?? "", placeholder: "none: a program reads it" }),
    field("Most events in one request", { name: "deliver.batch", type: "number", min: 1, max: 100, value: one?.deliver?.batch ?? "" }),
    problemBox(), formEnd(one ? "Save" : "Make", close),
  ], async (_, key) => {
    const given = Object.fromEntries(new FormData(made));
    const name = one?.name ?? given.subscription;
    const deliver = given["deliver.url"] && { url: given["deliver.url"], ...(given["deliver.batch"] && { batch: Number(given["deliver.batch"]) }), ...(one?.deliver && isIdle(one) && { paused: true }) };
    const parameters = { ...Object.fromEntries(new URLSearchParams(String(given.parameters))), ...(rule.value.trim() && { rule: rule.value.trim() }) };
    const body = { parameters, ...(given.since && { since: given.since }), ...(given.parts && { parts: Number(given.parts) }), ...(deliver && { deliver }) };
    const mine = key.of([name, body]);
    if (!one && free !== mine) await refuseTaken(page.site, String(name));
    free = mine;
    const answer = await page.site.write("PUT", pathOf(name), body, mine).catch((error) => { throw atField(error, parameters); });
    made.reset();
    close();
    await refresh();
    if (answer.deliver?.secret) showSecret(page, name, answer.deliver.secret);
  }, { draft: place, rule });
  return made;
}

/** The server would change a subscription of the same name. One whose delete waits is gone for its user. @param {import("./site.js").Site} site @param {string} name */
async function refuseTaken(site, name) {
  if (site.app.undo.has("DELETE", pathOf(name))) await site.app.undo.finish();
  const { subscriptions: all } = await site.get("/v1/subscriptions");
  if (all.some((/** @type {any} */ one) => one.name === name)) throw refusal("you have a subscription of this name: edit it, or choose another name", "subscription");
}

/** The refusal at a field of the form, since the API names parameters that are none. @param {import("../client.js").ApiError} error @param {Record<string, string>} given the parameters */
function atField(error, given) {
  const { code, param = "", message } = error;
  if (code === "missing_parameter" && param === "track") return refusal("write a rule, or choose the events by further parameters, such as sample=10", "rule");
  if (param === "rule" || !Object.hasOwn(given, param)) return error;
  return refusal(message.includes(param) ? message : `${message} (${param})`, "parameters");
}

/** Who reads how many parts of a shared subscription. @param {{worker: string | null}[]} parts */
function readers(parts) {
  const names = parts.map(({ worker }) => worker ?? "nobody");
  return [...new Set(names)].map((name) => `${name} reads ${names.filter((each) => each === name).length}`).join(", ");
}
