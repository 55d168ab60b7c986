// Listens with the JavaScript client: node client_js.mjs ADDRESS TOKEN TRANSPORT [MODULES]. Prints one JSON object a line.
// MODULES is a folder in which the package `ws` is installed, for a Node without a WebSocket.
import { createRequire } from "node:module";
import { Client } from "stream-server-client";

const [address, token, transport, modules] = process.argv.slice(2);
const WebSocket = modules ? createRequire(`${modules}/`)("ws") : globalThis.WebSocket;
const say = (value) => console.log(JSON.stringify(value));

const client = new Client(address, { token, WebSocket });
const onState = (state) => say({ [state.name.replace(" ", "_")]: state.reason ?? true });
const stream = client.stream({ rule: ["tea:tea", "cake:cake"] }, { transport, onState });
for await (const event of stream) {
  say({ [`event_${event.status.message.replace(" ", "_")}`]: event.matched.map((match) => match.tag) });
  if (event.status.message === "tea last") break;
  if (event.status.message === "cake twice") stream.update({ rule: ["scone:scone", "tea:tea"] });
}
say({ end: stream.state.name });
