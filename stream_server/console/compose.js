// @ts-check
// The window that writes a post. A placeholder of the view People; see `app.compose` in app.js.

import { h } from "./dom.js";

/** @param {any} app @param {Record<string, any>} [draft] */
export function compose(app, draft = {}) {
  const text = h("textarea", { name: "message", rows: 4, "aria-label": "Text", required: true, dir: "auto" }, draft.message ?? "");
  const post = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const { message: _, ...rest } = draft;
    const sent = await app.attempt(() => app.client.request("POST", "/v1/statuses", { body: { ...rest, message: text.value } }));
    if (!sent) return;
    window.close();
    app.say("Posted");
  };
  const window = app.dialog(draft.in_reply_to ? "Reply" : "Write a post",
    h("form", { class: "stack", onsubmit: post }, text, h("p", { class: "row end" }, h("button", { class: "primary" }, "Post"))));
  text.focus();
}
