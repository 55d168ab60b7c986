// @ts-check
// What a row offers of its post: its address, its JSON, and the cursor by which a program goes on behind it.

import { entry, h, icon, menu } from "./dom.js";
import { copyText } from "./forms.js";
import { report } from "./people/user_row.js";
import { quieten } from "./rove.js";

/** The button of the menu, which is made when it is first asked for: a column has hundreds of rows. @param {any} app @param {any} message by which the post came, or what an answer has of it */
export function rowMenu(app, message) {
  const label = "More about this post";
  const open = () => {
    const made = quieten(menu(label, postEntries(app, message), "button quiet act"));
    button.replaceWith(made);
    made.open = true;
    made.querySelector("summary").focus();
  };
  const button = h("button", { class: "quiet act", title: label, "aria-label": label, dataset: { act: "more" }, onclick: open }, icon("more"));
  return button;
}

/** The entries that every menu of a post has. @param {any} app @param {any} message */
export function postEntries(app, message) {
  const { id, uid, login } = message.status;
  const hide = (/** @type {string} */ relation, /** @type {string} */ text) => () =>
    app.undo.later({ text, method: "PUT", path: `/v1/users/me/${relation}/${uid}`, hides: `user-${uid}` });
  return [
    entry("Copy link", () => copyText(app, new URL(`#/people/status/${id}`, location.href).href)),
    entry("JSON", () => showJson(app, message)),
    entry("Copy cursor", () => void app.attempt(() => copyCursor(app, message))),
    ...(uid === app.user.id ? [] : [entry(`Mute @${login}`, hide("mutes", `@${login} is muted`)), entry(`Block @${login}`, hide("blocks", `@${login} is blocked`)), entry("Report …", () => report(app, { status: id }))]),
  ];
}

/** Copies the place of a post on the log. Pages do not have it, so the log is asked for what its author wrote at that moment. @param {any} app @param {any} message */
async function copyCursor(app, { cursor, status }) {
  const [since, before] = [-1000, 1000].map((ms) => new Date(Date.parse(status.posted) + ms).toISOString());
  const ask = () => app.client.request("POST", "/v1/events", { body: { follow: status.uid, kinds: "post", since, before, limit: "1000" } });
  const place = cursor ?? (await ask()).events.find((/** @type {any} */ event) => event.status?.id === status.id)?.cursor;
  return place ? copyText(app, place) : app.say("The server's log does not have this post any more, or no stream shows it.", "warn");
}

/** @param {any} app @param {any} message */
function showJson(app, message) {
  const text = JSON.stringify(message, null, 2);
  const shown = h("pre", { class: "program", tabindex: "0", "aria-label": "JSON" }, text);
  app.dialog("JSON of the post", h("div", { class: "stack" }, shown,
    h("p", { class: "row end" }, h("button", { class: "primary", onclick: () => copyText(app, text, shown) }, icon("copy"), "Copy"))), { wide: true });
}
