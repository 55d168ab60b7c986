// @ts-check
// A column as a program: for curl, for Python with stream_server.client, and for JavaScript with client.js.

import { fill, h, icon } from "./dom.js";
import { aloneParameters } from "./filter.js";
import { choice } from "./forms.js";
import { copyText } from "./row_menu.js";

/** Quote a text for a POSIX shell: between apostrophes nothing is special but the apostrophe. @param {string} text */
export function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** @param {string} token */
const exported = (token) => `export TOKEN=${token || "…"}`;

/** @param {string} address @param {[string, any][]} given @param {string} token */
function curl(address, given, token) {
  const data = given.map(([name, value]) => `  --data-urlencode ${quoted(`${name}=${value}`)}`);
  return [exported(token), `curl -N -G -H "Authorization: Bearer $TOKEN" ${address}/v1/stream \\`, data.join(" \\\n")].join("\n");
}

/** A literal of Python: JSON has the same escapes, except that letters stay as they are. @param {string} text */
const literal = (text) => JSON.stringify(text);

/** A file made by the shell, so that one paste makes the program and runs it. @param {string} name @param {string[]} lines @param {string} command */
const file = (name, lines, command) => [`cat > ${name} <<'END'`, ...lines, "END", command].join("\n");

/** @param {string} address @param {[string, any][]} given @param {string} token */
function python(address, given, token) {
  const asked = given.map(([name, value]) => `${name}=${value === "true" ? "True" : typeof value === "number" ? value : literal(String(value))}`);
  const lines = [
    "import asyncio", "import os", "", "from stream_server.client import Client, Post", "", "",
    "async def main() -> None:",
    `    async with Client(${literal(address)}, token=os.environ["TOKEN"]) as client:`,
    `        async for event in client.stream(${asked.join(", ")}):`,
    "            if isinstance(event, Post):",
    "                print(event.status.login, event.status.text, flush=True)", "", "",
    "asyncio.run(main())",
  ];
  return [exported(token), file("listen.py", lines, ".venv/bin/python listen.py    # or the Python that has stream-server")].join("\n");
}

/** @param {string} address @param {[string, any][]} given @param {string} token */
function javascript(address, given, token) {
  const lines = [
    'import { Client } from "./client.mjs";', "",
    `const client = new Client(${JSON.stringify(address)}, { token: process.env.TOKEN, WebSocket });`,
    `for await (const event of client.stream(${JSON.stringify(Object.fromEntries(given), null, 2)})) {`,
    "  console.log(event.kind, event.status?.login, event.status?.message);", "}",
  ];
  const command = "node --experimental-websocket listen.mjs    # Node 20; newer ones need no option";
  return [exported(token), `curl -so client.mjs ${address}/console/client.js`, file("listen.mjs", lines, command)].join("\n");
}

const LANGUAGES = { curl, Python: python, JavaScript: javascript };

/** @param {keyof typeof LANGUAGES} language @param {string} address @param {Record<string, any>} parameters @param {string} token */
export const program = (language, address, parameters, token) =>
  LANGUAGES[language](address, Object.entries(parameters).filter(([, value]) => value !== undefined), token);

/** @param {any} app @param {import("./filter.js").Filter} filter */
export function showPrograms(app, filter) {
  const parameters = aloneParameters(filter);
  let shown = "curl";
  const text = h("pre", { class: "program", tabindex: "0" });
  const withToken = h("input", { type: "checkbox", onchange: () => show() });
  const show = (name = shown) => {
    shown = name;
    fill(text, program(/** @type {keyof typeof LANGUAGES} */ (name), location.origin + BASE, parameters, withToken.checked ? app.client.store.load()?.token ?? "" : ""));
  };
  app.dialog("Copy as code", h("div", { class: "stack" },
    choice({ class: "row", "aria-label": "Language" }, { curl: "curl", Python: "Python", JavaScript: "JavaScript" }, show),
    text,
    h("p", { class: "row" }, h("label", { class: "check" }, withToken, "with my token, which ends within the hour"), h("span", { class: "grow" }), h("button", { class: "primary", onclick: () => copyText(app, text.textContent ?? "") }, icon("copy"), "Copy"))), { wide: true });
  show();
}
