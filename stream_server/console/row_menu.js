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
    message.cursor && entry("Copy cursor", () => copyText(app, message.cursor)), // a page has none
    ...(uid === app.user.id ? [] : [entry(`Mute @${login}`, hide("mutes", `@${login} is muted`)), entry(`Block @${login}`, hide("blocks", `@${login} is blocked`)), entry("Report …", () => report(app, { status: id }))]),
  ];
}

/** @param {any} app @param {any} message */
function showJson(app, message) {
  const text = JSON.stringify(message, null, 2);
  const shown = h("pre", { class: "program", tabindex: "0", "aria-label": "JSON" }, text);
  app.dialog("JSON of the post", h("div", { class: "stack" }, shown,
    h("p", { class: "row end" }, h("button", { class: "primary", onclick: () => copyText(app, text, shown) }, icon("copy"), "Copy"))), { wide: true });
}
