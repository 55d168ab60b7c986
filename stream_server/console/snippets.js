// @ts-check
// A column as a program: for curl, for Python with stream_server.client, and for JavaScript with client.js.

import { fill, h, icon } from "./dom.js";
import { choice, copyText } from "./forms.js";
import { BASE } from "./session.js";

/** Quote a text for a POSIX shell: between apostrophes nothing is special but the apostrophe. @param {string} text */
export const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

/** Programs for a shell that has the token. @typedef {Record<string, (address: string, given: [string, any][], tag: string) => string>} Languages `tag`: of the only rules whose matches they print, or "" */

/** @type {Languages[""]} */
function curl(address, given, tag) {
  const data = given.map(([name, value]) => `  --data-urlencode ${quoted(`${name}=${value}`)}`);
  return [`curl -N -G -H "Authorization: Bearer $TOKEN" ${address}/v1/stream`, ...data].join(" \\\n") + (tag && ` | grep --line-buffered -F ${quoted(`"tag":${JSON.stringify(tag)}`)}`);
}

/** A file made by the shell, so that one paste makes the program and runs it. @param {string} name @param {string[]} lines @param {string} command */
const file = (name, lines, command) => [`cat > ${name} <<'END'`, ...lines, "END", command].join("\n");

/** A literal of Python is written as in JSON. @type {Languages[""]} */
function python(address, given, tag) {
  const asked = given.map(([name, value]) => `${name}=${value === "true" ? "True" : typeof value === "number" ? value : JSON.stringify(String(value))}`);
  const lines = [
    "import asyncio", "import os", "", "from stream_server.client import Client, Post", "", "",
    "async def main() -> None:",
    `    async with Client(${JSON.stringify(address)}, token=os.environ["TOKEN"]) as client:`,
    `        async for event in client.stream(${asked.join(", ")}):`,
    `            if isinstance(event, Post)${tag && ` and ${JSON.stringify(tag)} in event.tags`}:`,
    "                print(event.status.login, event.status.text, flush=True)", "", "",
    "asyncio.run(main())",
  ];
  return file("listen.py", lines, ".venv/bin/python listen.py    # or the Python that has stream-server");
}

/** @type {Languages[""]} */
function javascript(address, given, tag) {
  const lines = [
    'import { Client } from "./client.mjs";', "",
    `const client = new Client(${JSON.stringify(address)}, { token: process.env.TOKEN, WebSocket });`,
    `for await (const event of client.stream(${JSON.stringify(Object.fromEntries(given), null, 2)})) {`,
    `  ${tag && `if (event.matched?.some(({ tag }) => tag === ${JSON.stringify(tag)})) `}console.log(event.kind, event.status?.login, event.status?.message);`, "}",
  ];
  const command = "node --experimental-websocket listen.mjs    # Node 20; newer ones need no option";
  return `curl -so client.mjs ${address}/console/client.js\n${file("listen.mjs", lines, command)}`;
}

/** @type {Languages} */ const LANGUAGES = { curl, Python: python, JavaScript: javascript };

/** @param {string} language @param {string} address @param {Record<string, any>} parameters @param {string} token @param {Languages} [languages] */
export const program = (language, address, { tag = "", ...parameters }, token, languages = LANGUAGES) =>
  `export TOKEN=${token || "…"}\n${languages[language](address, Object.entries(parameters).filter(([, value]) => value !== undefined), tag)}`;

/** The request and the program that give the subscription `given.name` its webhook. @type {Languages} */
export const PUTS = {
  curl: (address, given) => {
    const { name, ...body } = Object.fromEntries(given);
    return [`curl -X PUT -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" ${address}/v1/subscriptions/${name} \\`, `  -d ${quoted(JSON.stringify(body))}`].join("\n");
  },
  Python: (address, given) => {
    const { name, parameters: more, parts, deliver: { url: deliver, batch } } = Object.fromEntries(given);
    const asked = Object.entries({ deliver, batch, parts, more }).filter(([, value]) => value !== undefined).map(([member, value]) => `, ${member}=${JSON.stringify(value)}`);
    const lines = ["import os", "", "from stream_server.client.sync import Client", "", `with Client(${JSON.stringify(address)}, token=os.environ["TOKEN"]) as client:`, `    print(client.put_subscription(${JSON.stringify(name)}${asked.join("")}))`];
    return file("put.py", lines, ".venv/bin/python put.py    # or the Python that has stream-server");
  },
};

/** Shows the programs that open a stream with these parameters, or others; `tag` is none of the stream's. @param {any} app @param {Record<string, any>} parameters @param {Languages} [languages] */
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
