// Unit tests of the JavaScript client, run by `node --test`: the server, the sockets and chance are the test's own.
import assert from "node:assert/strict";
import test from "node:test";
import { ApiError, Client, memoryStore, toQuery } from "stream-server-client";

const NOW = () => new Date().toISOString();

/** Sockets that the test drives. */
function sockets() {
  const made = [];
  class Socket {
    constructor(url) {
      Object.assign(this, { url: new URL(url), sent: [], closed: false });
      made.push(this);
    }
    send(text) {
      this.sent.push(JSON.parse(text));
    }
    close() {
      this.closed = true;
    }
    say(message) {
      this.onmessage({ data: JSON.stringify({ at: NOW(), ...message }) });
    }
  }
  return { made, Socket };
}

/** A server that answers by a table of functions, and remembers what was asked. */
function server(answers) {
  const asked = [];
  const fetch = async (url, init = {}) => {
    const name = `${init.method ?? "GET"} ${new URL(url).pathname}`;
    asked.push([name, init.body ? JSON.parse(init.body) : null, init.headers?.Authorization]);
    const answer = await (answers[name] ?? (() => [404, { error: { code: "not_found", message: "no" } }]))(init);
    if (answer instanceof Response) return answer;
    const [status, body] = answer;
    return new Response(body === null ? null : JSON.stringify(body), { status });
  };
  return { asked, fetch };
}

const TICKET = { "POST /v1/streams/ticket": () => [201, { ticket: "t", expires_in: 30 }] };
const until = async (check) => {
  for (let turn = 0; turn < 4000 && !check(); turn++) await new Promise((done) => setTimeout(done, 1));
  assert.ok(check(), `waited for ${check}`);
};

/** Lets no time pass for the client until the end of the test, however slow the machine is. */
const stopClock = (context) => {
  const now = Date.now();
  context.mock.method(Date, "now", () => now);
};

function streaming(answers = {}, options = {}, streamOptions = {}) {
  const { made, Socket } = sockets();
  const { asked, fetch } = server({ ...TICKET, "GET /v1/stream": () => [200, null], ...answers });
  const client = new Client("http://host", { token: "a", WebSocket: Socket, fetch, random: () => 0, ...options });
  const heard = [];
  const states = [];
  const stream = client.stream({ track: "tea" }, { onMessage: (one) => heard.push(one), onState: (one) => states.push(one.name), ...streamOptions });
  return { made, asked, client, heard, states, stream };
}

test("a list repeats a parameter, and nothing is left out of it but nothing", () => {
  assert.equal(toQuery({ rule: ["a:b", "c"], since: undefined, sample: 0, track: "" }), "rule=a%3Ab&rule=c&sample=0");
});

test("a refusal has the members of the error", async () => {
  const { fetch } = server({ "GET /x": () => [400, { error: { code: "invalid_parameter", message: "no", param: "p", column: 3 } }] });
  const refused = await new Client("http://host", { token: "a", fetch }).request("GET", "/x").catch((error) => error);
  assert.ok(refused instanceof ApiError);
  assert.deepEqual([refused.status, refused.code, refused.param, refused.column, refused.isTemporary], [400, "invalid_parameter", "p", 3, false]);
});

test("many requests refresh an old token once, also those of another client of the same store", async (context) => {
  stopClock(context);
  let used = 0;
  const answers = {
    "POST /v1/sessions": (init) => [201, { token: `new${++used}`, expires_in: 100, refresh_token: "r2", user: { id: "1" }, got: init.body }],
    "GET /v1/users/me": () => [200, {}],
  };
  const { asked, fetch } = server(answers);
  const store = memoryStore();
  store.save({ token: "old", refreshToken: "r1", user: { id: "1" }, expires: Date.now() + 5000, refreshAt: Date.now() - 1 });
  const [one, other] = [new Client("http://host", { fetch, store }), new Client("http://host", { fetch, store })];
  await Promise.all([one, other, one, other].map((client) => client.request("GET", "/v1/users/me")));
  assert.equal(used, 1);
  assert.deepEqual(asked.find(([name]) => name === "POST /v1/sessions"), ["POST /v1/sessions", { refresh_token: "r1" }, undefined]);
  assert.deepEqual(asked.filter(([name]) => name === "GET /v1/users/me").map((each) => each[2]), Array(4).fill("Bearer new1"));
  assert.ok(store.load().refreshAt - Date.now() > 79_000 && store.load().refreshAt - Date.now() <= 80_000, "at 80 % of its life");
});

test("a refresh token that is refused ends the session; a server that is away does not", async () => {
  let status = 503;
  const { fetch } = server({ "POST /v1/sessions": () => [status, { error: { code: "x", message: "x" } }] });
  const client = new Client("http://host", { fetch });
  const session = { token: "old", refreshToken: "r", user: { id: "1" }, expires: Date.now() + 5000, refreshAt: 0 };
  client.store.save(session);
  assert.equal(await client.token(), "old");
  status = 401;
  const told = [];
  client.onSession((one) => told.push(one));
  await assert.rejects(client.token(), { status: 401 });
  assert.deepEqual([client.user, told], [null, [null]]);
});

test("it reconnects after its cursor with another ticket, and drops what it had", async () => {
  const { made, heard, stream, states } = streaming({}, {}, { since: "c0" });
  await until(() => made.length === 1);
  assert.equal(made[0].url.search, "?track=tea&since=c0&ticket=t");
  made[0].say({ kind: "hello", cursor: "c0", connection: "x" });
  made[0].say({ kind: "post", cursor: "c1", status: {} });
  made[0].say({ kind: "post", cursor: "c2", status: {} });
  made[0].onclose({ code: 1006 });
  await until(() => made.length === 2);
  assert.equal(made[1].url.searchParams.get("since"), "c2");
  made[1].say({ kind: "hello", cursor: "c2", connection: "y" });
  made[1].say({ kind: "post", cursor: "c2", status: {} });
  made[1].say({ kind: "gap", cursor: "c5", reason: "trimmed", count: 2 });
  made[1].say({ kind: "post", cursor: "c6", status: {} });
  made[0].say({ kind: "post", cursor: "c7", status: {} }); // of a connection that is over
  assert.deepEqual(heard.map((one) => one.cursor), ["c0", "c1", "c2", "c2", "c5", "c6"]);
  assert.deepEqual(heard.filter((one) => one.kind === "post").map((one) => one.cursor), ["c1", "c2", "c6"]);
  assert.deepEqual(states, ["connecting", "live", "waiting", "connecting", "live"]);
  stream.close();
  assert.ok(made[1].closed);
});

test("the waits grow by full jitter from 0.5 to 20 s, and begin anew after 30 steady seconds", (context) => {
  stopClock(context);
  const { stream } = streaming({}, { random: () => 0.999999 });
  const waits = [];
  for (let n = 0; n < 8; n++) {
    stream.retry("test");
    waits.push(Math.round((stream.state.retryAt - Date.now()) / 100) / 10);
  }
  assert.deepEqual(waits, [1, 2, 4, 8, 16, 20, 20, 20]);
  stream.helloAt = Date.now() - 31_000;
  stream.retry("test");
  assert.equal(Math.round((stream.state.retryAt - Date.now()) / 100) / 10, 1);
  stream.retry("test", 7000);
  assert.equal(Math.round((stream.state.retryAt - Date.now()) / 50) / 20, 8.75, "the server's wait wins, and a quarter of it spreads the clients");
  for (let n = 0; n < 8; n++) stream.retry("test", 1000);
  assert.equal(Math.round((stream.state.retryAt - Date.now()) / 1000), 20, "a server that always asks for a second is asked less and less");
  stream.close();
});

test("a goodbye is final, or says when to come back", async (context) => {
  stopClock(context);
  for (const [code, name] of [["suspended", "ended"], ["token_revoked", "ended"], ["too_many_streams", "ended"], ["closed_by_user", "ended"], ["closed_by_operator", "ended"], ["token_expired", "ended"], ["shutdown", "waiting"], ["too_slow", "waiting"], ["resync", "waiting"]]) {
    const { made, stream } = streaming();
    await until(() => made.length === 1);
    made[0].say({ kind: "hello", cursor: "c", connection: "x" });
    made[0].say({ kind: "goodbye", cursor: "c", code, reason: "r", retry_after: name === "waiting" ? 9 : null });
    assert.equal(stream.state.name, name, code);
    if (name === "waiting") assert.ok(Math.abs(stream.state.retryAt - Date.now() - 9000) < 500, code);
    stream.close();
  }
});

test("a goodbye that this client does not know is final unless it says when to come back", async () => {
  for (const [retry_after, name] of [[null, "ended"], [undefined, "ended"], [0, "waiting"], [3, "waiting"]]) {
    const { made, stream } = streaming();
    await until(() => made.length === 1);
    made[0].say({ kind: "hello", cursor: "c", connection: "x" });
    made[0].say({ kind: "goodbye", cursor: "c", code: "of_a_later_server", reason: "r", retry_after });
    assert.equal(stream.state.name, name, String(retry_after));
    stream.close();
  }
});

test("a token that ends at once does not let the stream reconnect without a wait", async () => {
  const store = memoryStore();
  store.save({ token: "a", refreshToken: "r", user: { id: "1" }, expires: Date.now() + 9e6, refreshAt: Date.now() + 8e6 });
  const { made, stream } = streaming({}, { token: undefined, store });
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  made[0].say({ kind: "goodbye", cursor: "c", code: "token_expired", reason: "r", retry_after: null });
  assert.equal(stream.state.name, "waiting");
  stream.retryNow();
  await until(() => made.length === 2);
  made[1].say({ kind: "hello", cursor: "c", connection: "y" });
  stream.helloAt -= 2000;
  made[1].say({ kind: "goodbye", cursor: "c", code: "token_expired", reason: "r", retry_after: null });
  assert.equal(stream.state.name, "connecting", "one that lived is replaced at once");
  stream.close();
});

test("what cannot be opened is refused for good only if an ordinary request says so", async (context) => {
  stopClock(context);
  const refused = streaming({ "GET /v1/stream": () => [400, { error: { code: "invalid_parameter", message: "bad", param: "track" } }] });
  await until(() => refused.made.length === 1);
  refused.made[0].onclose({ code: 1006 });
  await until(() => refused.stream.state.name === "refused");
  assert.equal(refused.stream.state.error.param, "track");
  const limited = streaming({ "POST /v1/streams/ticket": () => [429, { error: { code: "rate_limited", message: "slow", retry_after: 12 } }] });
  await until(() => limited.stream.state.name === "waiting");
  assert.ok(limited.stream.state.retryAt - Date.now() > 11_000);
  limited.stream.close();
});

test("after two sockets that could not be opened, an EventSource is tried", async () => {
  const opened = [];
  class Source {
    constructor(url) {
      opened.push(this);
      Object.assign(this, { url, listeners: {} });
    }
    addEventListener(kind, listener) {
      this.listeners[kind] = listener;
    }
    close() {}
  }
  const { made, stream, heard } = streaming({}, { EventSource: Source });
  for (let n = 1; n <= 2; n++) {
    await until(() => made.length === n);
    made[n - 1].onclose({ code: 1006 });
    await until(() => stream.state.name === "waiting");
    stream.retryNow();
  }
  await until(() => opened.length === 1);
  opened[0].listeners.hello({ data: JSON.stringify({ kind: "hello", cursor: "c", at: NOW(), connection: "x" }) });
  assert.equal(heard.length, 1);
  stream.update({ track: "cake" }); // has no socket, so it opens again
  await until(() => opened.length === 2);
  assert.match(opened[1].url, /track=cake&since=c&ticket=t/);
  stream.close();
});

test("without a WebSocket and an EventSource, the lines of a fetch are read, wherever they are cut", async () => {
  const bytes = new TextEncoder().encode(
    [{ kind: "hello", cursor: "c", connection: "x" }, { kind: "post", cursor: "d", status: { message: "tea 🍵" } }]
      .map((one) => JSON.stringify({ at: NOW(), ...one }) + "\n").join("\n"),
  );
  const opened = [];
  const answer = ({ headers, signal }) => {
    let feed;
    const body = new ReadableStream({ start: (controller) => (feed = controller) });
    opened.push({ feed, signal, headers });
    signal.addEventListener("abort", () => feed.error(signal.reason));
    return new Response(body);
  };
  const without = { WebSocket: null, EventSource: null };
  const { asked, stream, heard, states } = streaming({ "GET /v1/stream": answer }, without);
  await until(() => opened.length === 1);
  assert.equal(opened[0].headers.Accept, "application/x-ndjson");
  for (const byte of bytes) opened[0].feed.enqueue(new Uint8Array([byte]));
  await until(() => heard.length === 2);
  assert.equal(heard[1].status.message, "tea 🍵");
  opened[0].feed.close(); // the server has gone
  await until(() => stream.state.name === "waiting");
  stream.retryNow();
  await until(() => opened.length === 2);
  stream.update({ track: "cake" }); // before `hello`: it opens again when it is there
  opened[1].feed.enqueue(new Uint8Array(16 * 2 ** 20 + 1).fill(120));
  await until(() => stream.state.error?.code === "too_large");
  assert.equal(opened[1].signal.aborted, true);
  stream.close();
  assert.equal(states.at(-1), "closed");
  const refused = streaming({ "GET /v1/stream": () => [400, { error: { code: "invalid_parameter", message: "no" } }] }, without);
  await until(() => refused.stream.state.name === "refused");
  assert.equal(refused.stream.state.error.code, "invalid_parameter");
  assert.ok(asked.length > 3);
});

test("other filters and a new token go up the open socket", async () => {
  const store = memoryStore();
  store.save({ token: "a", refreshToken: "r", user: { id: "1" }, expires: Date.now() + 9e6, refreshAt: Date.now() + 8e6 });
  const refusals = [];
  const { made, stream, client } = streaming({}, { token: undefined, store }, { onRefusedUpdate: (error) => refusals.push(error.param) });
  await until(() => made.length === 1);
  stream.update({ track: "early" }); // before the hello: sent with it
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  stream.update({ rule: ["a:b"] });
  made[0].say({ kind: "effective", id: 1, cursor: "d" });
  assert.equal(stream.isSettled, false);
  made[0].say({ kind: "effective", id: 2, cursor: "e" });
  assert.equal(stream.isSettled, true);
  client.keep({ ...store.load(), token: "b" });
  made[0].say({ kind: "error", error: { code: "invalid_parameter", message: "no", param: "rule" } });
  assert.deepEqual(made[0].sent, [
    { op: "update", id: 1, parameters: { track: "early" } }, { op: "update", id: 2, parameters: { rule: ["a:b"] } }, { op: "token", id: "token", token: "b" },
  ]);
  assert.deepEqual([refusals, stream.state.name], [["rule"], "live"]);
  client.keep(null);
  assert.deepEqual([stream.state.name, made[0].closed], ["signed out", true]);
  stream.close();
});

/** A live stream whose small requests are answered by `answer`, with timers that the test turns. */
async function watched(context, answer) {
  const { made, Socket } = sockets();
  const { fetch } = server({ ...TICKET, "GET /healthz": answer });
  const client = new Client("http://host", { token: "a", WebSocket: Socket, fetch });
  const stream = client.stream({ track: "tea" }, { onMessage: () => {} });
  await until(() => made.length === 1);
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const settle = async () => { for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate); };
  return { socket: made[0], stream, pass: async (ms) => (context.mock.timers.tick(ms), settle()), settle };
}
const AWAY = () => { throw new TypeError("fetch failed"); };

test("a connection without its heartbeat is doubted, and a server that does not answer then is away", async (context) => {
  for (const [seconds, doubted] of [[undefined, 18_000], [10, 12_000], [0.2, 2200], [-1, 18_000], ["x", 18_000], [0, 18_000]]) {
    const { socket, stream, pass } = await watched(context, AWAY);
    socket.say({ kind: "hello", cursor: "c", connection: "x", heartbeat_seconds: seconds });
    await pass(doubted - 10);
    socket.say({ kind: "heartbeat", cursor: "c" });
    await pass(doubted - 10);
    assert.equal(stream.state.name, "live", `${seconds}`);
    context.mock.timers.tick(11);
    assert.equal(stream.state.name, "silent", `${seconds}`);
    assert.ok(Date.now() - stream.state.since >= 0);
    await pass(0);
    assert.deepEqual([stream.state.name, stream.state.reason, socket.closed], ["waiting", "the server does not answer", true]);
    stream.close();
    context.mock.timers.reset();
  }
});

test("a silent connection lives as long as the server answers, until its next heartbeat is missing too", async (context) => {
  const { socket, stream, pass } = await watched(context, () => [200, { ok: true }]);
  socket.say({ kind: "hello", cursor: "c", connection: "x", heartbeat_seconds: 10 });
  await pass(12_001);
  assert.equal(stream.state.name, "silent");
  socket.say({ kind: "heartbeat", cursor: "c" });
  assert.equal(stream.state.name, "live");
  await pass(12_001);
  await pass(14_990);
  assert.equal(stream.state.name, "silent");
  await pass(20);
  assert.deepEqual([stream.state.name, stream.state.reason], ["waiting", "the connection was lost"]);
  stream.close();
});

test("a probe without an answer ends after five seconds, and a message that comes meanwhile saves the connection", async (context) => {
  for (const saved of [false, true]) {
    const hangs = () => new Promise((_, reject) => setTimeout(reject, 5000, new TypeError("aborted")));
    const { socket, stream, pass, settle } = await watched(context, hangs);
    socket.say({ kind: "hello", cursor: "c", connection: "x", heartbeat_seconds: 10 });
    await pass(12_001);
    const now = Date.now;
    Date.now = () => now() + 12_001; // the mocked timers have a clock of their own
    if (saved) socket.say({ kind: "heartbeat", cursor: "c" });
    context.mock.timers.tick(5001);
    await settle();
    Date.now = now;
    assert.equal(stream.state.name, saved ? "live" : "waiting");
    stream.close();
    context.mock.timers.reset();
  }
});

/** A body that breaks off. */
const brokenOff = () => new ReadableStream({ start: (it) => (it.enqueue(new TextEncoder().encode('{"a":')), it.error(new Error("cut"))) });

test("an answer that breaks off, or is of another program, is a failure and not an empty answer", async () => {
  const bodies = [brokenOff(), "<html>"];
  const { fetch } = server({ "POST /x": () => new Response(bodies.shift(), { status: 200 }) });
  const client = new Client("http://host", { token: "a", fetch });
  for (const code of ["unreachable", "unreadable"]) {
    const failure = await client.request("POST", "/x", { body: {} }).then((answer) => assert.fail(`answered ${answer}`), (error) => error);
    assert.deepEqual([failure.code, failure.isTemporary], [code, true]);
  }
});

test("the wait in the header of a proxy's error page counts", async (context) => {
  stopClock(context);
  const { stream } = streaming({ "POST /v1/streams/ticket": () => new Response("<html>", { status: 503, headers: { "Retry-After": "12" } }) });
  await until(() => stream.state.name === "waiting");
  assert.ok(stream.state.retryAt - Date.now() > 11_000);
  stream.close();
});

test("a browser that says offline or online is asked to prove it", async (context) => {
  for (const [answer, name] of [[() => [200, {}], "live"], [() => [404, {}], "live"], [() => [502, {}], "offline"], [AWAY, "offline"]]) {
    const { socket, stream, pass, settle } = await watched(context, answer);
    socket.say({ kind: "hello", cursor: "c", connection: "x" });
    stream.heeds.offline();
    await settle();
    assert.equal(stream.state.name, name);
    if (name === "offline") {
      const { retryAt } = stream.state;
      assert.ok(retryAt > Date.now());
      await pass(1001); // it does not wait for `online` alone
    }
    assert.equal(stream.state.name, name === "live" ? "live" : "connecting");
    stream.heeds.online();
    assert.equal(stream.state.name, name === "live" ? "live" : "connecting");
    stream.close();
    context.mock.timers.reset();
  }
});

test("a request without an answer fails in the end, and its stream goes on", async (context) => {
  let gone = 0;
  const hangs = (url, init) => new Promise((_, reject) => init.signal.addEventListener("abort", () => reject((gone++, new Error("aborted")))));
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const { stream, client } = streaming({}, { fetch: hangs });
  client.hasAnswered = true; // an answer would need timers
  const asked = new Client("http://host", { token: "a", fetch: hangs }).request("GET", "/x").catch((error) => error);
  await new Promise(setImmediate);
  context.mock.timers.tick(45_001);
  await new Promise(setImmediate);
  assert.deepEqual([stream.state.name, gone], ["waiting", 1]);
  stream.close();
  context.mock.timers.tick(45_001);
  assert.equal((await asked).code, "unreachable");
});

test("an address that never answers ends the stream; one that answered once is tried for ever", async () => {
  const nowhere = async () => { throw new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED") }); };
  const { stream } = streaming({}, { fetch: nowhere });
  await until(() => stream.isFinal);
  assert.deepEqual([stream.state.name, stream.state.error.code, stream.state.error.status], ["ended", "unreachable", 0]);
  assert.equal(stream.state.reason, "http://host cannot be reached (connect ECONNREFUSED)");
  let isAway = false;
  const { fetch } = server({ "POST /v1/streams/ticket": () => [503, { error: { code: "unavailable", message: "no" } }] });
  const later = streaming({}, { fetch: (...all) => (isAway ? nowhere() : fetch(...all)) });
  await until(() => later.stream.state.name === "waiting");
  isAway = true;
  later.stream.retryNow();
  await until(() => later.stream.state.attempt === 2 && later.stream.state.name === "waiting");
  assert.match(later.stream.state.reason, /cannot be reached/);
  await assert.rejects((async () => { for await (const _ of new Client("http://host", { token: "a", fetch: nowhere }).stream({})); })(), { code: "unreachable" });
});

test("an address without a scheme is refused at once", () => {
  for (const address of ["127.0.0.1:8000", "localhost", "ws://host", "http://", "http://host/#code=1", "http://u:p@host"]) {
    assert.throws(() => new Client(address), { code: "invalid_address", isTemporary: false }, address);
  }
  assert.equal(new Client("https://host/below/").address, "https://host/below");
});

test("a caller's own signal still ends its request", async () => {
  const leave = new AbortController();
  const hangs = (url, init) => new Promise((_, reject) => init.signal.addEventListener("abort", () => reject(init.signal.reason)));
  const asked = new Client("http://host", { token: "a", fetch: hangs }).request("GET", "/x", { signal: leave.signal });
  await new Promise(setImmediate);
  leave.abort();
  await assert.rejects(asked, { name: "AbortError" });
});

test("updates go up one at a time, and one that is refused for now goes again", async () => {
  const refusals = [];
  const { made, stream } = streaming({}, {}, { onRefusedUpdate: (error) => refusals.push(error.code) });
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  stream.update({ track: "one" });
  stream.update({ track: "two" });
  stream.update({ track: "three" });
  assert.deepEqual(made[0].sent.map((each) => each.parameters.track), ["one"]);
  made[0].say({ kind: "effective", id: 1, cursor: "d" });
  assert.deepEqual(made[0].sent.map((each) => each.parameters.track), ["one", "three"]);
  made[0].say({ kind: "error", id: 2, error: { code: "rate_limited", message: "later", retry_after: 0.01 } });
  assert.equal(stream.isSettled, false);
  await until(() => made[0].sent.length === 3);
  assert.deepEqual(made[0].sent[2], { op: "update", id: 3, parameters: { track: "three" } });
  made[0].say({ kind: "effective", id: 3, cursor: "e" });
  assert.deepEqual([stream.isSettled, refusals], [true, []]);
  stream.close();
});

test("after a refused update the stream keeps its filters, also on the next connection", async () => {
  const refusals = [];
  const { made, stream } = streaming({}, {}, { onRefusedUpdate: (error) => refusals.push(error.code) });
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  stream.update({ track: "good" });
  made[0].say({ kind: "effective", id: 1, cursor: "d" });
  stream.update({ sample: 101 });
  made[0].say({ kind: "error", id: 2, error: { code: "invalid_parameter", message: "no", param: "sample" } });
  assert.deepEqual([stream.parameters, stream.isSettled, refusals], [{ track: "good" }, true, ["invalid_parameter"]]);
  made[0].onclose({ code: 1006 });
  await until(() => made.length === 2);
  assert.equal(made[1].url.searchParams.get("track"), "good");
  stream.close();
});

test("an update that only the next connection brings is refused there, and the filters before it stay", async () => {
  const refusals = [];
  let answer = [200, null];
  const { made, stream } = streaming({ "GET /v1/stream": () => answer }, {}, { onRefusedUpdate: (error) => refusals.push(error.code) });
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  made[0].onclose({ code: 1006 });
  stream.update({ sample: 101 });
  answer = [400, { error: { code: "invalid_parameter", message: "no", param: "sample" } }];
  await until(() => made.length === 2);
  made[1].onclose({ code: 1006 });
  await until(() => made.length === 3);
  assert.deepEqual([made[2].url.searchParams.get("track"), made[2].url.searchParams.get("sample"), refusals], ["tea", null, ["invalid_parameter"]]);
  stream.close();
});

test("a token that the server does not take is no refused update", async () => {
  const refusals = [];
  const { made, stream } = streaming({}, {}, { onRefusedUpdate: (error) => refusals.push(error.code) });
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  made[0].say({ kind: "error", id: "token", error: { code: "token_expired", message: "old" } });
  assert.deepEqual([stream.state.name, refusals], ["live", []]);
  stream.close();
});

test("the stream of one user does not go on with the session of another", async () => {
  const store = memoryStore();
  const session = { token: "a", refreshToken: "r", user: { id: "1" }, expires: Date.now() + 9e6, refreshAt: Date.now() + 8e6 };
  store.save(session);
  const { made, stream, client, asked } = streaming({}, { token: undefined, store });
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  client.keep({ ...session, token: "b", user: { id: "2" } });
  await until(() => made.length === 2);
  assert.deepEqual([made[0].closed, made[0].sent, asked.at(-1)[2]], [true, [], "Bearer b"]);
  stream.close();
});

test("while the server is away, an old token is not exchanged every second", async (context) => {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const store = memoryStore();
  store.save({ token: "a", refreshToken: "r", user: { id: "1" }, expires: Date.now() + 9e6, refreshAt: Date.now() - 1 });
  const { stream, asked } = streaming({ "POST /v1/sessions": () => [503, { error: { code: "unavailable", message: "away" } }] }, { token: undefined, store });
  const exchanges = () => asked.filter(([name]) => name === "POST /v1/sessions").length;
  for (let second = 0; second < 30; second++) {
    await new Promise(setImmediate);
    context.mock.timers.tick(1000);
    await new Promise(setImmediate);
  }
  assert.ok(exchanges() >= 3 && exchanges() <= 9, `${exchanges()} exchanges in 30 s`);
  stream.close();
});

test("events that came before the loop are in it, and those that it left are behind the cursor", async () => {
  const { made, stream } = streaming({}, {}, { onMessage: undefined });
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c0", connection: "x" });
  for (const n of [1, 2, 3]) made[0].say({ kind: "post", cursor: `c${n}`, status: {} });
  const got = [];
  for await (const event of stream) {
    got.push(event.cursor);
    if (got.length === 2) break;
  }
  assert.deepEqual([got, stream.cursor, stream.state.name], [["c1", "c2"], "c2", "closed"]);
});

test("a refused stream stays refused when its loop ends", async () => {
  const { made, stream, states } = streaming({ "GET /v1/stream": (init) => (assert.equal(init.redirect, "error"), [400, { error: { code: "invalid_parameter", message: "bad" } }]) });
  const reading = (async () => {
    for await (const event of stream) assert.fail(event.kind);
  })();
  await until(() => made.length === 1);
  made[0].onclose({ code: 1006 });
  await assert.rejects(reading, { code: "invalid_parameter" });
  assert.deepEqual([stream.state.name, states], ["refused", ["connecting", "refused"]]);
});

test("an iterator that is slow loses nothing: the stream waits, and goes on by its cursor", async () => {
  const { made, stream } = streaming();
  const got = [];
  const reading = (async () => {
    for await (const event of stream) {
      got.push(event.cursor);
      if (got.length === 1) await until(() => stream.state.name === "waiting");
      if (got.length === 1001) break;
    }
  })();
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  for (let n = 0; n < 1000; n++) made[0].say({ kind: "post", cursor: `p${n}`, status: {} });
  made[0].say({ kind: "post", cursor: "never", status: {} });
  await until(() => made.length === 2);
  assert.equal(made[1].url.searchParams.get("since"), "p999");
  made[1].say({ kind: "hello", cursor: "p999", connection: "y" });
  made[1].say({ kind: "post", cursor: "p1000", status: {} });
  await reading;
  assert.deepEqual(got, Array.from({ length: 1001 }, (_, n) => `p${n}`));
  assert.equal(stream.state.name, "closed");
});

test("a socket that fails to open is tried again, also where no close follows the error, and counts once where one does", async () => {
  const { made, stream } = streaming();
  await until(() => made.length === 1);
  made[0].onerror({});
  await until(() => stream.state.name === "waiting");
  made[0].onclose?.({ code: 1006 });
  assert.deepEqual([stream.socketFailures, stream.failures], [1, 1]);
  stream.close();
});

test("the sockets of a server below a path are below it too", async () => {
  const { made, Socket } = sockets();
  const { asked, fetch } = server({ "POST /below/v1/streams/ticket": () => [201, { ticket: "t" }] });
  const stream = new Client("https://host/below/", { token: "a", fetch, WebSocket: Socket }).stream({ track: "tea" });
  await until(() => made.length === 1);
  assert.equal(made[0].url.href, "wss://host/below/v1/stream?track=tea&ticket=t");
  assert.deepEqual(asked.map(([name]) => name), ["POST /below/v1/streams/ticket"]);
  stream.close();
});

test("a `since` among the parameters is where the stream begins, and not a filter", async () => {
  const { made, Socket } = sockets();
  const stream = new Client("http://host", { token: "a", fetch: server(TICKET).fetch, WebSocket: Socket }).stream({ track: "tea", since: "-15m" });
  await until(() => made.length === 1);
  assert.equal(made[0].url.search, "?track=tea&since=-15m&ticket=t");
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  made[0].onclose({ code: 1006 });
  await until(() => stream.state.name === "waiting");
  stream.retryNow();
  await until(() => made.length === 2);
  assert.equal(made[1].url.search, "?track=tea&since=c&ticket=t");
  stream.close();
});

test("without a page an address is needed", () => {
  assert.throws(() => new Client(), { code: "invalid_address" });
});

test("an iterator that waits can be left, and two of them share the events", async () => {
  const { made, stream } = streaming({}, {}, { onMessage: undefined });
  const [one, other] = [stream[Symbol.asyncIterator](), stream[Symbol.asyncIterator]()];
  const waiting = [one.next(), other.next()];
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  for (const cursor of ["c1", "c2"]) made[0].say({ kind: "post", cursor, status: {} });
  assert.deepEqual((await Promise.all(waiting)).map((each) => each.value.cursor), ["c1", "c2"]);
  const pending = [one.next(), other.next()];
  assert.deepEqual(await one.return(), { done: true, value: undefined });
  assert.deepEqual(await Promise.all(pending), [{ done: true, value: undefined }, { done: true, value: undefined }]);
  assert.deepEqual([stream.state.name, made[0].closed], ["closed", true]);
});

test("the answers to operations are no events, and neither is a message without a place", async () => {
  const { made, stream } = streaming({}, {}, { onMessage: undefined });
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  for (const cursor of ["c1", "c2"]) {
    made[0].say({ kind: "token", id: "token", expires: NOW() });
    made[0].say({ kind: "of a later version" });
    made[0].say({ kind: "post", cursor, status: {} });
  }
  const [one, other] = [stream[Symbol.asyncIterator](), stream[Symbol.asyncIterator]()];
  assert.deepEqual([(await one.next()).value.cursor, (await other.next()).value.cursor, stream.cursor], ["c1", "c2", "c2"]);
  stream.close();
});

test("a loop ends with an error when the session does", async () => {
  const store = memoryStore();
  store.save({ token: "a", refreshToken: "r", user: { id: "1" }, expires: Date.now() + 9e6, refreshAt: Date.now() + 8e6 });
  const { made, stream, client } = streaming({}, { token: undefined, store }, { onMessage: undefined });
  const reading = stream[Symbol.asyncIterator]().next();
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  client.keep(null);
  await assert.rejects(reading, { code: "signed_out", status: 401 });
  assert.equal(stream.state.name, "closed");
});

test("a page hears that CORS may be why a server of another origin cannot be reached", async () => {
  const nowhere = async () => { throw new TypeError("Failed to fetch"); };
  globalThis.location = { origin: "http://page", href: "http://page/x" };
  try {
    const failure = (address) => new Client(address, { token: "a", fetch: nowhere }).request("GET", "/x").catch((error) => error.message);
    assert.equal(await failure("http://host/below"), "http://host/below cannot be reached (or does not allow pages of http://page)");
    assert.equal(await failure("http://page"), "http://page cannot be reached");
    assert.equal(await failure(""), "the server cannot be reached");
  } finally {
    delete globalThis.location;
  }
});

test("an error of the program's own functions is told as uncaught, and the stream goes on", async () => {
  const uncaught = [];
  process.prependListener("uncaughtException", (error) => uncaught.push(error.message));
  const runners = process.listeners("uncaughtException").slice(1); // the test runner's own would fail this test
  for (const each of runners) process.off("uncaughtException", each);
  const fails = (what) => () => { throw new Error(what); };
  const { made, stream } = streaming({}, {}, { onState: fails("state"), onMessage: fails("message") });
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  made[0].say({ kind: "post", cursor: "c1", status: {} });
  assert.deepEqual([stream.state.name, stream.cursor], ["live", "c1"]);
  stream.close();
  await until(() => uncaught.length === 5);
  process.removeAllListeners("uncaughtException");
  for (const each of runners) process.on("uncaughtException", each);
  assert.deepEqual(uncaught, ["state", "state", "message", "message", "state"]);
});

const LONGEST_WAIT = 3600; // in seconds, as in the Python client
const MOST_BYTES = 16 * 2 ** 20;

test("absurd waits of a refusal are not taken", async () => {
  const future = new Date(Date.now() + 9000 * 86_400_000).toUTCString();
  const waits = [
    ["9".repeat(5000), LONGEST_WAIT], ["3196800", LONGEST_WAIT], ["3601", LONGEST_WAIT], ["3600", 3600], ["1.5", 1.5], ["0", 0], [future, LONGEST_WAIT],
    ["Wed, 21 Oct 2015 07:28:00 GMT", 0], ["Fri, 31 Dec 99999999999 23:59:59 GMT"], ["-5"], ["NaN"], ["Infinity"], ["1e9"], ["0x10"], ["soon"], [""],
  ];
  for (const [text, expected] of waits) {
    const answers = { "GET /x": () => new Response("", { status: 503, headers: { "Retry-After": text } }) };
    const refused = await new Client("http://host", { token: "a", fetch: server(answers).fetch }).request("GET", "/x").catch((error) => error);
    assert.equal(refused.retryAfter, expected, text.slice(0, 40));
  }
  for (const [member, expected] of [[1e300, LONGEST_WAIT], [-1, 0], ["soon", undefined], [[5], undefined], [null, undefined], [2, 2]]) {
    assert.equal(new ApiError(429, { code: "c", message: "m", retry_after: member }).retryAfter, expected, String(member));
  }
});

test("absurd waits of a stream are waited for once and not long, and never spin", async (context) => {
  stopClock(context);
  for (const retry_after of [2 ** 31 / 1000, 2 ** 53, 1e308, -1e308, "soon", {}, true]) {
    const { made, asked, stream } = streaming({}, { random: () => 0.5 });
    await until(() => made.length === 1);
    made[0].say({ kind: "hello", cursor: "c", connection: "x" });
    made[0].say({ kind: "goodbye", cursor: "c", code: "shutdown", reason: "r", retry_after });
    assert.equal(stream.state.name, "waiting");
    const wait = (stream.state.retryAt - Date.now()) / 1000;
    assert.ok(wait > 0.1 && wait <= LONGEST_WAIT * 1.25, `${String(retry_after)}: ${wait}`);
    const begun = performance.now(); // a slow machine may not take longer than the wait
    for (let turn = 0; turn < 30 && performance.now() - begun < 50; turn++) await new Promise((done) => setTimeout(done, 1));
    assert.deepEqual([made.length, asked.length], [1, 1], String(retry_after));
    stream.close();
  }
});

test("an absurd wait of a refused update does not send it again and again", async () => {
  const { made, stream } = streaming();
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  stream.update({ track: "cake" });
  made[0].say({ kind: "error", id: 1, error: { code: "rate_limited", message: "later", retry_after: 2 ** 31 } });
  for (let turn = 0; turn < 30; turn++) await new Promise((done) => setTimeout(done, 1));
  assert.equal(made[0].sent.length, 1);
  stream.close();
});

test("a session with an absurd life is not exchanged again and again", async () => {
  for (const expires_in of [-1, 0, "soon", undefined, 1e308]) {
    const answers = { "POST /v1/sessions": () => [201, { token: "t", expires_in, refresh_token: "r", user: { id: "1" } }] };
    const { asked, client, stream } = streaming(answers, { token: undefined });
    await client.signIn({ login: "ada", password: "p" });
    const count = () => asked.filter(([name]) => name === "POST /v1/sessions").length;
    await until(() => asked.some(([name]) => name === "POST /v1/streams/ticket"));
    const before = count();
    for (let turn = 0; turn < 50; turn++) await new Promise((done) => setTimeout(done, 1));
    assert.ok(count() - before <= 1 && before <= 3, `${String(expires_in)}: ${before}, ${count()}`);
    stream.close();
  }
});

test("no more of an answer is read than a client takes", async () => {
  let pulled = 0;
  const endless = () => new ReadableStream({ pull: (controller) => (pulled++, controller.enqueue(new Uint8Array(2 ** 20).fill(32))) });
  for (const status of [200, 400]) {
    pulled = 0;
    const { fetch } = server({ "GET /x": () => new Response(endless(), { status }) });
    const failure = await new Client("http://host", { token: "a", fetch }).request("GET", "/x").catch((error) => error);
    assert.ok(failure instanceof ApiError);
    assert.equal(failure.code, "too_large");
    assert.ok(pulled <= MOST_BYTES / 2 ** 20 + 3, String(pulled));
  }
  const umlaut = new Response(new ReadableStream({ start: (c) => (c.enqueue(new Uint8Array([34, 195])), c.enqueue(new Uint8Array([164, 34])), c.close()) }));
  assert.equal(await new Client("http://host", { token: "a", fetch: server({ "GET /x": () => umlaut }).fetch }).request("GET", "/x"), "ä");
});

test("what is no message, or too long, is a lost connection that is tried again", async () => {
  for (const data of ["{", "[]", "null", '"text"', '{"kind":7}', "[".repeat(100_000), `{"kind":"post","text":"${"x".repeat(MOST_BYTES)}"}`]) {
    const { made, heard, stream } = streaming();
    await until(() => made.length === 1);
    made[0].say({ kind: "hello", cursor: "c", connection: "x" });
    made[0].onmessage({ data });
    assert.deepEqual([stream.state.name, heard.length, made[0].closed, stream.cursor], ["waiting", 1, true, "c"], data.slice(0, 20));
    stream.close();
  }
});

test("an iterator holds few bytes, and the stream waits for it", async () => {
  const { made, stream } = streaming({}, {}, { onMessage: undefined });
  const iterator = stream[Symbol.asyncIterator]();
  await until(() => made.length === 1);
  made[0].say({ kind: "hello", cursor: "c", connection: "x" });
  const text = "x".repeat(MOST_BYTES / 4);
  for (let nth = 1; nth <= 8; nth++) made[0].say({ kind: "post", cursor: `c${nth}`, status: { text } });
  assert.deepEqual([stream.state.name, made[0].closed], ["waiting", true]);
  const cursors = [];
  for (let nth = 1; nth <= 4; nth++) cursors.push((await iterator.next()).value.cursor);
  assert.deepEqual(cursors, ["c1", "c2", "c3", "c4"]);
  const next = iterator.next();
  await until(() => made.length === 2);
  assert.equal(made[1].url.searchParams.get("since"), "c4");
  made[1].say({ kind: "hello", cursor: "c4", connection: "x" });
  made[1].say({ kind: "post", cursor: "c5", status: { text } });
  assert.equal((await next).value.cursor, "c5");
  stream.close();
});

test("a loop over a subscription acknowledges what it has left behind, joined, and again after a failure", async () => {
  const acks = [];
  let isAway = false;
  const answers = {
    "POST /v1/subscriptions/a%20b/ack": ({ body }) => (acks.push(JSON.parse(body).cursor), isAway ? [503, { error: { code: "unavailable", message: "no" } }] : [204, null]),
  };
  const { client, made } = streaming(answers);
  const stream = client.stream({ subscription: "a b" });
  const iterator = stream[Symbol.asyncIterator]();
  await until(() => made.length === 2);
  const socket = made.find((one) => one.url.searchParams.has("subscription"));
  assert.deepEqual([socket.url.searchParams.get("subscription"), socket.url.searchParams.get("since")], ["a b", null]);
  socket.say({ kind: "hello", cursor: "c0", connection: "x" });
  for (const nth of [1, 2, 3]) socket.say({ kind: "post", cursor: `c${nth}` });
  for (const nth of [1, 2, 3]) assert.equal((await iterator.next()).value.cursor, `c${nth}`);
  await until(() => acks.length === 1);
  assert.deepEqual(acks, ["c2"], "the last one is still being handled");
  isAway = true;
  const next = iterator.next();
  await until(() => acks.length === 2);
  await until(() => stream.acked === "");
  isAway = false;
  socket.say({ kind: "heartbeat", cursor: "c9" });
  await until(() => acks.length === 3);
  assert.deepEqual(acks, ["c2", "c3", "c9"], "a quiet stream moves on by its heartbeats");
  socket.say({ kind: "post", cursor: "c10" });
  assert.equal((await next).value.cursor, "c10");
  stream.ack("c10");
  stream.close();
  await until(() => acks.length === 4);
  assert.equal(acks[3], "c10", "the end sends what waits");
  client.stream({ track: "tea" }).ack("c1");
  assert.equal(acks.length, 4);
});

test("each call about subscriptions is one request, as in the Python client", async () => {
  const asked = [];
  const note = (name, answer) => ({ body }) => (asked.push([name, body === undefined ? null : JSON.parse(body)]), [answer === null ? 204 : 200, answer]);
  const one = "/v1/subscriptions/a%20b";
  const kept = { name: "a b", parameters: {}, cursor: "c" };
  const answers = { [`PUT ${one}`]: kept, [`GET ${one}`]: kept, [`DELETE ${one}`]: null, [`POST ${one}/ack`]: null, [`POST ${one}/test`]: { status: 204 }, [`POST ${one}/secret`]: { secret: "whsec_x" } };
  const routes = Object.fromEntries(Object.entries(answers).map(([name, answer]) => [name, note(name, answer)]));
  const client = new Client("http://host", { token: "a", fetch: server({ ...routes, "GET /v1/subscriptions": () => [200, { subscriptions: [kept] }] }).fetch });
  assert.deepEqual(await client.putSubscription("a b", { track: ["x", "y"] }, { parts: 2, deliver: "https://h.example", batch: 5 }), kept);
  await client.putSubscription("a b", { firehose: true });
  assert.deepEqual(await client.subscriptions(), [kept]);
  assert.deepEqual(await client.subscription("a b"), kept);
  await client.ack("a b", "c", "x");
  assert.equal((await client.testWebhook("a b")).status, 204);
  assert.equal((await client.replaceWebhookSecret("a b")).secret, "whsec_x");
  assert.equal(await client.deleteSubscription("a b"), undefined);
  assert.deepEqual(asked, [
    [`PUT ${one}`, { parameters: { track: ["x", "y"] }, parts: 2, deliver: { url: "https://h.example", batch: 5 } }],
    [`PUT ${one}`, { parameters: { firehose: true } }],
    [`GET ${one}`, null],
    [`POST ${one}/ack`, { cursor: "c", connection: "x" }],
    [`POST ${one}/test`, null],
    [`POST ${one}/secret`, null],
    [`DELETE ${one}`, null],
  ]);
});

test("an ack names the connection by which the event came", async () => {
  const acks = [];
  const answers = { "POST /v1/subscriptions/work/ack": ({ body }) => (acks.push(JSON.parse(body)), [204, null]) };
  const { client, made } = streaming(answers);
  const stream = client.stream({ subscription: "work", worker: "a" });
  const iterator = stream[Symbol.asyncIterator]();
  await until(() => made.length === 2);
  const first = made.find((one) => one.url.searchParams.get("worker") === "a");
  first.say({ kind: "hello", cursor: "c0", connection: "x" });
  for (const nth of [1, 2]) first.say({ kind: "post", cursor: `c${nth}` });
  assert.equal((await iterator.next()).value.cursor, "c1");
  first.say({ kind: "goodbye", cursor: "c2", code: "rebalanced", retry_after: 0.01 });
  const isSecond = (one) => one !== first && one.url.searchParams.get("worker") === "a";
  await until(() => made.some(isSecond));
  const second = made.find(isSecond);
  second.say({ kind: "hello", cursor: "c0", connection: "y" });
  second.say({ kind: "post", cursor: "c3" });
  assert.equal((await iterator.next()).value.cursor, "c2");
  assert.equal((await iterator.next()).value.cursor, "c3");
  await until(() => acks.length > 0);
  const next = iterator.next();
  await until(() => acks.at(-1).cursor === "c3");
  assert.deepEqual(acks.map((one) => one.connection), acks.map((one) => (one.cursor === "c3" ? "y" : "x")));
  stream.close();
  await next;
});
