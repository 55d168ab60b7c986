// What the types of the package allow, and below `@ts-expect-error` what they refuse. TypeScript compiles it; nothing runs it.
import { ApiError, Client, memoryStore } from "stream-server-client";
import type { Message, OwnUser, Post, Session, Status, StreamEvent, StreamState, Webhook } from "stream-server-client";

declare module "stream-server-client" {
  interface StreamParameters {
    mood?: "good" | "bad";
  }
}

class Socket {
  constructor(readonly url: string) {}
}

/** Checks that a type is no wider and no narrower than another one; `any` is neither. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <T extends true>() => undefined as T | undefined;

export async function use(token: string): Promise<void> {
  const client = new Client("http://127.0.0.1:8000", { token, store: memoryStore(), WebSocket: Socket, random: () => 0.5 });
  const me: OwnUser = await client.signIn({ login: "ada", password: "secret" });
  same<Same<typeof me.email, string | null>>();
  const status = await client.request<Status>("POST", "/v1/statuses", { body: { message: "hello" } });
  same<Same<typeof status.original, Status["original"]>>();
  const stream = client.stream({ track: ["tea", "cake"], sample: 10, explain: true, mood: "good", since: "-15m" });
  for await (const event of stream) {
    same<Same<typeof event.cursor, string>>();
    switch (event.kind) {
      case "post":
        same<Same<typeof event, Post>>();
        console.log(event.status.login, event.status.place?.box?.[0], event.matched?.map((match) => match.tag));
        break;
      case "delete":
        // @ts-expect-error only the ids are left
        console.log(event.status.message);
        break;
      case "gap":
        same<Same<typeof event.count, number | null>>();
        break;
      case "list_add":
      case "list_remove":
        console.log(event.list.name, event.user?.login);
        break;
      // @ts-expect-error an iterator yields no control messages but gaps
      case "heartbeat":
    }
    // @ts-expect-error not each event has a status
    console.log(event.status);
  }
  stream.update({ track: "scone" });
  stream.close();
  const made = await client.putSubscription("work", { track: "tea" }, { since: "-15m", parts: 4, deliver: "https://a.example", batch: 10 });
  same<Same<typeof made.parameters, Record<string, string>>>();
  same<Same<typeof made.deliver, Webhook | undefined>>();
  const outcome = await client.testWebhook("work");
  console.log(outcome.status, outcome.error, outcome.part, (await client.replaceWebhookSecret("work")).secret);
  for (const one of await client.subscriptions()) console.log(one.parts?.[0]?.worker, one.deliver?.outcomes[0]?.milliseconds);
  await client.ack("work", (await client.subscription("work")).cursor, "connection");
  await client.deleteSubscription("work");
  const rule: string = (await client.changeRule("7", "tea", { tag: "drinks", dryRun: true })).rule;
  console.log(rule);
  // @ts-expect-error no number of parts
  void client.putSubscription("work", {}, { parts: "four" });
}

export function wrong(client: Client): void {
  // @ts-expect-error no such parameter
  client.stream({ trak: "tea" });
  // @ts-expect-error no number
  client.stream({ track: 5 });
  // @ts-expect-error the only value is "saved"
  client.stream({ rules: "mine" });
  // @ts-expect-error not a transport
  client.stream({ track: "tea" }, { transport: "carrier pigeon" });
  // @ts-expect-error a place is for the beginning of a stream
  client.stream({ track: "tea" }).update({ since: "-15m" });
  // @ts-expect-error the address is a text
  new Client(8000);
  // @ts-expect-error no class
  new Client("", { WebSocket: "ws" });
  // @ts-expect-error no password
  void client.signIn({ login: "ada" });
  // @ts-expect-error what is inside is not offered
  client.stream({ track: "tea" }).connect();
}

export function handled(client: Client): void {
  client.stream({ firehose: true }, {
    onMessage: (message: Message) => {
      if (message.kind === "goodbye") console.log(message.code, message.retry_after);
      if (message.kind === "error") console.log(message.error.code);
    },
    onState: (state: StreamState) => console.log(state.name === "waiting" && state.retryAt),
    onRefusedUpdate: (error: ApiError) => console.log(error.param, error.column, error.isTemporary),
  });
  client.onSession((session: Session | null) => console.log(session?.user.login));
}

/** Each kind has a case, or this does not compile. */
export function kindOf(event: StreamEvent): string {
  switch (event.kind) {
    case "post": case "delete": case "like": case "unlike": case "comment": case "uncomment": return "status";
    case "edit": return event.left ? event.left.uid : event.status.message;
    case "follow": case "unfollow": case "request": case "unrequest": case "block": case "unblock": case "mute": case "unmute": return "relation";
    case "user_update": case "protect": case "unprotect": return event.user.login;
    case "user_delete": return event.user.id;
    case "count": return event.to;
    case "message": return event.message.talk;
    case "notification": return event.notification.kind;
    case "list_create": case "list_update": case "list_delete": case "list_add": case "list_remove": return event.list.id;
    case "group_create": case "group_update": case "group_delete": case "group_join": case "group_leave": return event.group.uid;
  }
}
