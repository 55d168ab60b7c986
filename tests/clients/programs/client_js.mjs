// Listens with the JavaScript client: node client_js.mjs ADDRESS TOKEN TRANSPORT CLIENT_JS. Prints one JSON object a line.
import { pathToFileURL } from "node:url";

const [address, token, transport, clientJs] = process.argv.slice(2);
const { Client } = await import(pathToFileURL(clientJs));
const say = (value) => console.log(JSON.stringify(value));

const client = new Client(address, { token });
const onState = (state) => say({ [state.name.replace(" ", "_")]: state.reason ?? true });
const stream = client.stream({ rule: ["tea:tea", "cake:cake"] }, { transport, onState });
for await (const event of stream) {
  say({ [`event_${event.status.message.replace(" ", "_")}`]: event.matched.map((match) => match.tag) });
  if (event.status.message === "tea last") break;
  if (event.status.message === "cake twice") stream.update({ rule: ["scone:scone", "tea:tea"] });
}
say({ end: stream.state.name });
