// @ts-check
// The window that writes a post, from any view; see `app.compose` in app.js.

import { Composer } from "./people/composer.js";

/** @param {any} app @param {Record<string, any>} [draft] `message`, `in_reply_to`, `origin`, `group`, `location` */
export function compose(app, draft = {}) {
  const title = draft.origin ? "Quote" : draft.in_reply_to ? "Reply" : "Write a post";
  const composer = new Composer(app, draft, {
    onPosted: () => {
      window.close();
      app.say("Posted");
    },
  });
  const window = app.dialog(title, composer.root);
  composer.focus();
}
