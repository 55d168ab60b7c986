// @ts-check
// A column as a program: for curl, for Python with stream_server.client, and for JavaScript with client.js.

import { fill, h, icon } from "./dom.js";
import { choice, copyText } from "./forms.js";
import { BASE } from "./session.js";

/** Quote a text for a POSIX shell: between apostrophes nothing is special but the apostrophe. @param {string} text */
export const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Programs for a shell that has the token. @typedef {Record<string, (address: string, given: [string, any][]) => string>} Languages */

/** @param {string} address @param {[string, any][]} given */
function curl(address, given) {
  const data = given.map(([name, value]) => `  --data-urlencode ${quoted(`${name}=${value}`)}`);
  return [`curl -N -G -H "Authorization: Bearer $TOKEN" ${address}/v1/stream`, ...data].join(" \\\n");
}

/** A literal of Python: JSON has the same escapes, except that letters stay as they are. @param {string} text */
const literal = (text) => JSON.stringify(text);

/** A file made by the shell, so that one paste makes the program and runs it. @param {string} name @param {string[]} lines @param {string} command */
const file = (name, lines, command) => [`cat > ${name} <<'END'`, ...lines, "END", command].join("\n");

/** @param {string} address @param {[string, any][]} given */
function python(address, given) {
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
  return file("listen.py", lines, ".venv/bin/python listen.py    # or the Python that has stream-server");
}

/** @param {string} address @param {[string, any][]} given */
function javascript(address, given) {
  const lines = [
    'import { Client } from "./client.mjs";', "",
    `const client = new Client(${JSON.stringify(address)}, { token: process.env.TOKEN, WebSocket });`,
    `for await (const event of client.stream(${JSON.stringify(Object.fromEntries(given), null, 2)})) {`,
    "  console.log(event.kind, event.status?.login, event.status?.message);", "}",
  ];
  const command = "node --experimental-websocket listen.mjs    # Node 20; newer ones need no option";
  return `curl -so client.mjs ${address}/console/client.js\n${file("listen.mjs", lines, command)}`;
}

/** @type {Languages} */ const LANGUAGES = { curl, Python: python, JavaScript: javascript };

/** @param {string} language @param {string} address @param {Record<string, any>} parameters @param {string} token @param {Languages} [languages] */
export const program = (language, address, parameters, token, languages = LANGUAGES) =>
  `export TOKEN=${token || "…"}\n${languages[language](address, Object.entries(parameters).filter(([, value]) => value !== undefined))}`;

/** The request and the program that give the subscription `given.name` its webhook. @type {Languages} */
export const PUTS = {
  curl: (address, given) => {
    const { name, ...body } = Object.fromEntries(given);
    return [`curl -X PUT -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" ${address}/v1/subscriptions/${name} \\`, `  -d ${quoted(JSON.stringify(body))}`].join("\n");
  },
  Python: (address, given) => {
    const { name, parameters: more, deliver: { url: deliver, batch } } = Object.fromEntries(given);
    const asked = Object.entries({ deliver, batch, more }).map(([member, value]) => `, ${member}=${JSON.stringify(value)}`);
    const lines = ["import os", "", "from stream_server.client.sync import Client", "", `with Client(${literal(address)}, token=os.environ["TOKEN"]) as client:`, `    print(client.put_subscription(${literal(name)}${asked.join("")}))`];
    return file("put.py", lines, ".venv/bin/python put.py    # or the Python that has stream-server");
  },
};

/** Shows the programs that open a stream with these parameters, or others. @param {any} app @param {Record<string, any>} parameters @param {Languages} [languages] */
export function showPrograms(app, parameters, languages = LANGUAGES) {
  let shown = "curl";
  const text = h("pre", { class: "program", tabindex: "0" });
  const withToken = h("input", { type: "checkbox", onchange: () => show() });
  const show = (name = shown) => {
    shown = name;
    fill(text, program(name, location.origin + BASE, parameters, withToken.checked ? app.client.store.load()?.token ?? "" : "", languages));
  };
  app.dialog("Copy as code", h("div", { class: "stack" },
    choice({ class: "row", "aria-label": "Language" }, Object.fromEntries(Object.keys(languages).map((name) => [name, name])), show),
    text,
    h("p", { class: "row" }, h("label", { class: "check" }, withToken, "with my token, which ends within the hour"), h("span", { class: "grow" }), h("button", { class: "primary", onclick: () => copyText(app, text.textContent ?? "", text) }, icon("copy"), "Copy"))), { wide: true });
  show();
}
