// @ts-check
/** The user's own account: the sessions, the open streams, the password, and its end. */

import { fill, h, isolate } from "../dom.js";
import { field, form, formEnd, problemBox } from "../forms.js";
import { tabbed } from "./page.js";
import { counted, streamText, timeAgo } from "./text.js";
import { deed } from "./user_row.js";

/** @typedef {import("./page.js").Page} Page */

/** @param {Page} page @param {string} [tab] */
export function account(page, tab) {
  const email = h("span", {});
  page.show("Account", h("p", { class: "muted" }, "You are ", isolate(`@${page.site.me.login}`), email, "."), h("div", { class: "stack" }, tabbed("#/people/account", tab, {
    sessions: ["Sessions", () => sessions(page)],
    streams: ["Streams", () => streams(page)],
    password: ["Password", () => password(page)],
    end: ["Delete account", () => deletion(page.site)],
  }, "Of your account")));
  void page.attempt(async () => fill(email, ", ", isolate((await page.site.get("/v1/users/me")).email ?? "without an email address")));
}

/** Return the button that ends something; until it is sent, that can be undone. @param {Page} page @param {string} text @param {string} path */
const endButton = (page, text, path) => h("button", { type: "button", class: "danger", onclick: () => page.site.app.undo.later({ text, method: "DELETE", path, hides: path }) }, "End");

/** The name of a browser and its system, or what another program says of itself. @param {string} agent of a User-Agent */
function programOf(agent) {
  const first = (/** @type {Record<string, string>} */ names) => Object.keys(names).find((name) => agent.includes(names[name]));
  const browser = /^Mozilla\//.test(agent) && first({ Edge: "Edg", Opera: "OPR/", Firefox: "Firefox/", Chrome: "Chrome/", Safari: "Safari/" });
  const system = first({ Android: "Android", iOS: "like Mac OS X", Windows: "Windows", macOS: "Mac OS X", ChromeOS: "CrOS", Linux: "Linux" });
  return browser ? browser + (system ? ` on ${system}` : "") : agent || "An unknown program";
}

/** @param {Page} page */
function sessions(page) {
  const { app } = page.site;
  const askToEnd = async () => {
    const others = (await page.site.get("/v1/sessions")).sessions.filter((/** @type {any} */ one) => !one.current);
    const window = app.dialog("End all other sessions?", form({ class: "stack" }, [
      h("p", {}, `${counted(others.length, "other session")}: whoever uses them has to sign in again. Their streams end.`), problemBox(), formEnd("End them", () => window.close()),
    ], async () => {
      for (const { id } of others) await app.client.request("DELETE", `/v1/sessions/${id}`).catch((/** @type {any} */ error) => { if (error.status !== 404) throw error; });
      window.close();
      page.site.view.reload();
    }));
  };
  const row = (/** @type {any} */ one) => app.undo.tie(h("div", { class: "entry" },
    h("span", { class: "grow", title: one.agent }, isolate(programOf(one.agent))), h("span", { class: "muted" }, "begun ", timeAgo(one.created), ", used ", one.current ? "now" : timeAgo(one.used)),
    one.current ? h("span", { class: "pill" }, "this one") : endButton(page, "The session ends, with its streams", `/v1/sessions/${one.id}`)), `/v1/sessions/${one.id}`);
  return [page.feed("/v1/sessions", "sessions", { label: "Your sessions", empty: "No session: this token was made by the command line." }, row).root, deed("End all other sessions …", askToEnd, "danger")];
}

/** @param {Page} page */
function streams(page) {
  const row = (/** @type {any} */ one) => {
    const path = `/v1/streams/${one.connection}`;
    return page.site.app.undo.tie(h("div", {},
      h("div", { class: "entry" }, h("code", { class: "grow" }, isolate(streamText(one))), endButton(page, "The stream ends: its client is told that you closed it", path)),
      h("div", { class: "entry muted" }, h("span", {}, "opened ", timeAgo(one.opened)), h("span", {}, one.live ? "live" : `catching up, at most ${counted(one.behind, "event")} behind`),
        h("span", {}, `${counted(one.delivered, "event")} delivered`), h("span", {}, "since ", h("code", {}, one.since)), h("span", {}, "cursor ", h("code", {}, one.cursor)))), path);
  };
  return [page.feed("/v1/streams", "streams", { label: "Your open streams", empty: "You have no open stream." }, row).root, deed("Load again", async () => page.site.view.reload())];
}

/** @param {Page} page */
function password(page) {
  const secret = { type: "password", required: true, maxlength: "256" };
  const shown = h("input", { type: "checkbox", onchange: () => show(shown.checked) });
  const show = (/** @type {boolean} */ isShown) => made.querySelectorAll("input[name]").forEach((/** @type {HTMLInputElement} */ each) => { each.type = isShown ? "text" : "password"; });
  const made = form({ class: "card stack", "aria-label": "Change the password" }, [
    h("p", {}, "All your other sessions end, and all your other tokens, also those of programs, with their streams. This session goes on."),
    field("Your present password", { ...secret, name: "password", autocomplete: "current-password" }),
    field("The new password", { ...secret, name: "new_password", autocomplete: "new-password", minlength: "8" }, "At least 8 characters."),
    h("label", { class: "check" }, shown, "Show the passwords"), problemBox(), formEnd("Change the password"),
  ], async () => {
    await page.site.app.client.request("PUT", "/v1/users/me/password", { body: Object.fromEntries(new FormData(made)) });
    made.reset();
    show(false);
    page.site.app.say("Your password is changed. Your other sessions and tokens have ended.");
  });
  return made;
}

/** The form that deletes the account. The choice in a menu was the first question, the username is the second. @param {import("./site.js").Site} site */
function deletion({ app, me }) {
  return form({ class: "card stack", "aria-label": "Delete account" }, [
    h("p", {}, "This deletes your account, and all that you wrote. It cannot be undone."),
    field("Your username, to confirm", { name: "login", required: true, pattern: me.login, title: me.login }),
    field("Your password, if you have one", { name: "password", type: "password", autocomplete: "current-password", maxlength: "256" }),
    problemBox(), formEnd("Delete account", () => app.go("#/people/account")),
  ], async ({ elements: { password } }) => {
    await app.undo.finish();
    await app.client.request("DELETE", "/v1/users/me", { body: password.value ? { password: password.value } : {} });
    await app.leaveForGood(() => app.client.keep(null));
    app.say("Your account is deleted.");
  });
}
