// Reads the own stream of a user: node client_js_own.mjs ADDRESS LOGIN PASSWORD. Prints each message as it is on the wire.
import { Client } from "stream-server-client";

const [address, login, password] = process.argv.slice(2);
const client = new Client(address);
await client.signIn({ login, password });
const stream = client.stream({}, { path: "/v1/stream/user", onMessage: (message) => console.log(JSON.stringify(message)) });
process.on("SIGINT", () => stream.close());
