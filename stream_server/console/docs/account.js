// @ts-check
/** Who is signed in, for the form that tries a route. The page also works without. */

import { h, isolate } from "../dom.js";
import { openClient, scopesOf } from "../session.js";

/** @typedef {{login: string, scopes: string[], token: () => Promise<string | null>, words: () => any[]}} Account */

/** Return the account of the console's session in this browser. @returns {Account} */
export function openAccount() {
  const client = openClient();
  const login = client.user?.login ?? "";
  const scopes = login ? [...scopesOf(client.store.load()?.token ?? "")].sort() : [];
  return {
    login,
    scopes,
    token: async () => (client.user ? client.token() : null),
    words: () => (login ? signedIn(login, scopes) : signedOut()),
  };
}

/** @param {string} login @param {string[]} scopes */
function signedIn(login, scopes) {
  const codes = scopes.flatMap((scope) => [" ", h("code", {}, scope)]);
  return ["You are signed in as ", h("b", {}, isolate(`@${login}`)), " with the scopes", ...codes, ". Requests that you try are real."];
}

function signedOut() {
  return ["You are not signed in: you can read everything here, and try the open routes. ", h("a", { href: "/" }, "Sign in"), " to try the others."];
}
