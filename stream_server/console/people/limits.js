// @ts-check
/** The longest message that the server takes, asked once. */

/** @type {Promise<number> | null} */
let asked = null;

/** Return the limit in code points, or 0 while the server does not say. @param {import("../client.js").Client} client */
export function messageLimit(client) {
  asked ??= client.request("GET", "/", { open: true }).then(
    (index) => index?.message_max_chars ?? 0,
    () => { asked = null; return 0; });
  return asked;
}
