// Reads as many posts of an author from a stream as it is told, by a client that `api.d.ts` types, and prints their texts.
// `api.d.ts` is made from the OpenAPI document of the server. What the compiler must refuse is marked.

import createClient from "openapi-fetch";
import type { components, paths } from "./api";

type Message = components["schemas"]["StreamMessage"];

declare const process: { argv: string[]; exit(code: number): never };

const [address, token, author, count] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: address, headers: { Authorization: `Bearer ${token}` } });

/** Return the text of a post, and nothing of other messages. */
function textOf(message: Message): string | null {
  // @ts-expect-error - not each message has a status
  void message.status;
  switch (message.kind) {
    case "post": {
      const likes: number = message.status.likes;
      return likes === 0 ? message.status.message : null;
    }
    case "block":
      return message.source.login;
    case "edit":
      return "left" in message ? message.left.id : message.status.message;
    case "gap":
      // @ts-expect-error - a gap has no status
      return message.status;
    // @ts-expect-error - there is no such kind
    case "unheard":
      return null;
    default:
      return null;
  }
}

async function* lines(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  for (let rest = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = parts.pop() ?? "";
    yield* parts;
  }
}

const polled = await client.GET("/v1/events", { params: { query: { follow: author, since: "-15m" } } });
const { data, error } = await client.GET("/v1/stream", {
  params: { query: { follow: author, since: "-15m" } },
  headers: { Accept: "application/x-ndjson" },
  parseAs: "stream",
});
if (error || polled.error) {
  console.error((error ?? polled.error)?.error.code);
  process.exit(1);
}
const read: string[] = [];
for await (const line of lines(data as unknown as ReadableStream<Uint8Array>)) {
  const text = textOf(JSON.parse(line) as Message);
  if (text !== null) read.push(text);
  if (read.length === Number(count)) break;
}
const texts = polled.data.events.map((event) => (event.kind === "post" ? event.status.message : event.kind));
console.log(JSON.stringify({ read, polled: texts }));
process.exit(0);
