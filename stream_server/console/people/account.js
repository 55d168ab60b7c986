// @ts-check
/** The user's own account: the sessions, the open streams, the password, and its end. */

import { fill, h, isolate } from "../dom.js";
import { form, formEnd, problemBox } from "../forms.js";
import { tabs } from "./collections.js";
import { deleteAccount } from "./profile.js";
import { counted, timeAgo } from "./text.js";
import { deed } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */

const TABS = /** @type {Record<string, [string, (page: Page) => any]>} */ ({
  sessions: ["Sessions", sessions], streams: ["Streams", streams], password: ["Password", password],
  end: ["Delete account", (page) => deleteAccount(page.site, page.site.me, () => page.site.app.go("#/people/account"))],
});

/** @param {Page} page @param {string} [tab] */
export function account(page, tab = "sessions") {
  const shown = Object.hasOwn(TABS, tab) ? tab : "sessions";
  const email = h("span", {});
  page.show("Account", h("p", { class: "muted" }, "You are ", isolate(`@${page.site.me.login}`), email, "."),
    tabs("#/people/account", shown, Object.entries(TABS).map(([name, [title]]) => [name, title]), "Of your account"), TABS[shown][1](page));
  void page.attempt(async () => fill(email, ", ", isolate((await page.site.get("/v1/users/me")).email ?? "without an email address")));
}

/** Return a list that fills when the server has answered. @param {Page} page @param {string} label @param {() => Promise<any[]>} load of its rows @param {string} empty */
function list(page, label, load, empty) {
  const rows = h("ul", { class: "feed-list", "aria-label": label });
  const show = () => page.attempt(async () => {
    const found = await load();
    fill(rows, found.length ? found : h("li", { class: "feed-empty" }, empty));
  });
  void show();
  return h("div", {}, rows, h("p", {}, h("button", { type: "button", onclick: show }, "Load again")));
}

/** @param {Page} page */
function sessions(page) {
  const { app } = page.site;
  const end = (/** @type {any} */ one, /** @type {string} */ hides) => app.undo.later({ text: "The session ends, with its streams", method: "DELETE", path: `/v1/sessions/${one.id}`, hides });
  return list(page, "Your sessions", async () => {
    const { sessions: all } = await page.site.get("/v1/sessions");
    const others = all.filter((/** @type {any} */ one) => !one.current);
    const endOthers = async () => {
      for (const one of others) await app.client.request("DELETE", `/v1/sessions/${one.id}`).catch((/** @type {any} */ error) => { if (error.status !== 404) throw error; });
      app.say(`${counted(others.length, "session has", "sessions have")} ended.`);
      page.site.reload();
    };
    const rows = all.map((/** @type {any} */ one) => app.undo.tie(h("li", { class: "entry" },
      h("span", { class: "grow" }, isolate(one.agent || "An unknown program")),
      h("span", { class: "muted" }, "begun ", timeAgo(one.created), ", used ", timeAgo(one.used)),
      one.current ? h("span", { class: "pill" }, "this one") : h("button", { type: "button", class: "danger", onclick: () => end(one, `session-${one.id}`) }, "End")), `session-${one.id}`));
    return others.length > 1 ? [...rows, h("li", {}, deed(`End the ${others.length} other sessions`, async () => sure(app, `End ${others.length} sessions?`, "Whoever uses them has to sign in again. Their streams end.", "End them", endOthers), "danger"))] : rows;
  }, "No session: this token was made by the command line.");
}

/** Ask once before what cannot be undone. @param {any} app @param {string} title @param {string} about @param {string} yes @param {() => Promise<any>} work */
function sure(app, title, about, yes, work) {
  const window = app.dialog(title, form({ class: "stack" }, [h("p", {}, about), problemBox(), formEnd(yes, () => window.close())], async () => {
    await work();
    window.close();
  }));
}

/** @param {Page} page */
function streams(page) {
  return list(page, "Your open streams", async () => (await page.site.get("/v1/streams")).streams.map((/** @type {any} */ one) => {
    const hides = `stream-${one.connection}`;
    const state = one.live ? "live" : `catching up, ${counted(one.behind, "entry", "entries")} behind`;
    const end = () => page.site.app.undo.later({ text: "The stream ends: its client is told that you closed it", method: "DELETE", path: `/v1/streams/${one.connection}`, hides });
    return page.site.app.undo.tie(h("li", {},
      h("div", { class: "entry" }, h("code", { class: "grow" }, isolate(one.path + (one.parameters && `?${one.parameters}`))), h("button", { type: "button", class: "danger", onclick: end }, "End")),
      h("div", { class: "entry muted" }, h("span", {}, "opened ", timeAgo(one.opened)), h("span", {}, state), h("span", {}, `${counted(one.delivered, "event")} delivered`),
        h("span", {}, "since ", h("code", {}, one.since)), h("span", {}, "cursor ", h("code", {}, one.cursor)))), hides);
  }), "You have no open stream.");
}

/** @param {Page} page */
function password(page) {
  const field = (/** @type {string} */ label, /** @type {string} */ name, /** @type {string} */ kept) => h("label", {}, label, h("input", { name, type: "password", required: true, maxlength: "256", autocomplete: kept, minlength: kept === "new-password" ? "8" : null }));
  return form({ class: "card stack", "aria-label": "Change the password" }, [
    h("p", {}, "All your other sessions end, with their streams. This one goes on."),
    field("Your present password", "password", "current-password"), field("The new password, at least 8 characters", "new_password", "new-password"), problemBox(), formEnd("Change the password"),
  ], async (made) => {
    await page.site.app.client.request("PUT", "/v1/users/me/password", { body: Object.fromEntries(new FormData(made)) });
    made.reset();
    page.site.app.say("Your password is changed. Your other sessions have ended.");
  });
}
