// @ts-check
// The JavaScript client of stream-server: one file, no dependencies, for browsers and for Node 20 and newer.
//
//   import { Client } from "./client.js";
//   const client = new Client("http://127.0.0.1:8000");
//   await client.signIn({ login: "ada", password: "…" });
//   for await (const event of client.stream({ track: "coffee" })) console.log(event.status?.message);
//
// A stream goes on by itself: it reconnects with back-off, continues after its last cursor, drops what it had, and tells
// of gaps. It ends with an error if the address has never answered; a server that answered once is tried for ever. Tokens
// are refreshed before they end. Node has no EventSource, and before version 22 no WebSocket: without both, a stream is
// read by `fetch`, unless you give one as an option, such as `{ WebSocket }` of the package `ws`. What is marked @internal
// is not in the types of the npm package.

/** @import { ClientOptions, Credentials, Gap, Goodbye, Hello, Message, OperationRefused, OwnUser, RequestOptions, RuleAnswer, SentWebhook, Session, SessionStore, StreamEvent, StreamOptions, StreamParameters, StreamState, Subscription, SubscriptionOptions, WebhookSecret } from "./types.d.ts" */

const REFRESH_SHARE = 0.8; // of a token's life, after which it is exchanged
const MIN_DELAY_MS = 500;
const MAX_DELAY_MS = 20_000;
const SPREAD = 0.25; // the server's wait grows by up to this share, since the server may name the same to all clients
const LIVED_MS = 1000; // a connection that lived so long is replaced at once if its token ended
const STEADY_MS = 30_000; // a connection that lived so long begins the back-off anew
const SILENCE_MS = 45_000; // what is asked for a stream has an answer by then
const BEAT_SECONDS = 15; // between two heartbeats, if `hello` does not tell
const PROBE_MS = 5000; // a server that is there answers a small request in this time
const ACK_MS = 1000; // between two acks of a stream; the highest cursor says it all
const ANSWER_MS = 90_000; // longer than the longest poll: a request that has no answer by then failed
const MAX_TIMER_MS = 2 ** 31 - 1; // a longer timer of JavaScript fires at once
const MAX_SERVER_DELAY_SECONDS = 3600; // the longest wait that a server may name; the Python client has the same bounds
const MAX_RECEIVED_BYTES = 16 * 2 ** 20; // of a message and of an answer, also when expanded
const MAX_REMEMBERED = 4096; // cursors of the latest events, to drop one that comes twice
const MAX_WAITING = 1000; // events that an iterator holds; with more, its stream waits, and continues by its cursor

const CONTROL_KINDS = new Set(["hello", "heartbeat", "warning", "gap", "effective", "goodbye", "error", "token"]);
/** @param {Message} message @returns {message is StreamEvent} */
const isOfEvent = (message) => "cursor" in message && !CONTROL_KINDS.has(message.kind); // a later server may send more kinds
const TEMPORARY_CODES = new Set(["rate_limited", "unavailable", "outcome_unknown"]); // of a refused operation
const TOKEN_ID = "token"; // of the operation that brings a new token; updates have numbers

/** A refusal by the server, in the one shape of its errors. `status` is 0 if the server could not be reached. */
export class ApiError extends Error {
  /** @param {number} status @param {{code: string, message: string, param?: string, column?: number, retry_after?: number}} error */
  constructor(status, error) {
    super(error.message);
    this.name = "ApiError";
    this.status = status;
    this.code = error.code;
    this.param = error.param;
    this.column = error.column;
    this.retryAfter = boundDelay(error.retry_after);
  }

  /** Whether the same request may succeed later. */
  get isTemporary() { return this.status === 0 || this.status === 429 || this.status >= 500; }
}

/** @returns {SessionStore} a session in memory, of this client alone. */
export function memoryStore() {
  /** @type {Session | null} */ let kept = null;
  /** @type {Promise<any>} */ let last = Promise.resolve();
  const lock = (/** @type {() => Promise<any>} */ work) => (last = last.then(work, work));
  return { load: () => kept, save: (session) => void (kept = session), lock };
}

/** Requests to one server, with a session whose token stays fresh. */
export class Client {
  /** @internal @type {Set<(session: Session | null, refusal?: ApiError) => void>} */ listeners = new Set();
  /** @internal @type {any} */ timer = undefined;
  /** @internal @type {Set<Stream>} */ streams = new Set();
  /** @internal Whether the address has ever answered; the page's own has, since it sent the page. */ hasAnswered;
  /** @internal @type {ClientOptions} */ options;

  /**
   * @param {string} [address] the server, such as `http://127.0.0.1:8000`; "" means the page's own.
   * @param {ClientOptions} [options] Throws ApiError `invalid_address` for an address that does not begin so, or has more
   *   than a path behind the host, and for none where there is no page.
   */
  constructor(address = "", options = {}) {
    const isValid = address ? /^https?:\/\/[^/?#@\s]+(\/[^?#\s]*)?$/i.test(address) : globalThis.location;
    if (!isValid) throw new ApiError(400, { code: "invalid_address", message: "write the address as http://127.0.0.1:8000" });
    this.address = address.replace(/\/+$/, "");
    this.hasAnswered = !address;
    this.options = options;
    this.store = options.store ?? memoryStore();
  }

  /** The user who is signed in, or null. */
  get user() { return this.store.load()?.user ?? null; }

  /**
   * Sends a request and returns the answer's JSON, or null for none. Throws ApiError. @template [T=any]
   * @param {string} method @param {string} path such as `/v1/statuses` @param {RequestOptions} [more] @returns {Promise<T>}
   */
  async request(method, path, more = {}) {
    const query = toQuery(more.query ?? {});
    let used = "";
    const send = async () => {
      const headers = { Accept: "application/json", ...more.headers };
      if (!more.open) Object.assign(headers, { Authorization: `Bearer ${(used = await this.token())}` });
      if (more.body !== undefined) Object.assign(headers, { "Content-Type": "application/json" });
      const body = more.body === undefined ? undefined : JSON.stringify(more.body);
      return this.send(`${path}${query && "?"}${query}`, { method, headers, body, signal: more.signal, keepalive: more.keepalive }, more.within);
    };
    try {
      return await send();
    } catch (error) {
      const isOver = error instanceof ApiError && error.status === 401 && used && !this.options.token;
      if (!isOver) throw error; // a token that the server no longer takes is exchanged, once, or the session has ended
      await this.refresh(used);
      return send();
    }
  }

  /** @internal @param {string} path @param {RequestInit} init @param {number} [within] */
  async send(path, init, within = ANSWER_MS) {
    const limit = timeLimit(within, init.signal);
    let response, text = "";
    try {
      response = await this.ask(path, { ...init, signal: limit.signal });
      text = await readText(response);
      if (response.ok) return text ? JSON.parse(text) : null;
    } catch (error) {
      if (init.signal?.aborted) throw init.signal.reason;
      if (error instanceof SyntaxError) throw notOfServer();
      if (!response || error instanceof ApiError) throw error;
      if (response.ok) throw this.unreachable(error);
    } finally {
      limit.end();
    }
    throw new ApiError(response.status, readError(response, text));
  }

  /** @internal Asks the server, and returns its answer as soon as its head is there. @param {string} path @param {RequestInit} init */
  async ask(path, init) {
    const ask = this.options.fetch ?? fetch;
    const response = await ask(this.address + path, { credentials: "omit", redirect: "error", ...init }).catch((error) => { throw this.unreachable(error); });
    this.hasAnswered = true;
    return response;
  }

  /** @internal The error of a request without an answer. Node says why; a browser hides whether CORS is why. @param {any} error */
  unreachable(error) {
    const { origin, href } = globalThis.location ?? {};
    const why = error?.cause?.message ?? (origin && this.address && new URL(this.address, href).origin !== origin ? `or does not allow pages of ${origin}` : "");
    const how = error?.name === "AbortError" ? "does not answer" : "cannot be reached";
    return new ApiError(0, { code: "unreachable", message: `${this.address || "the server"} ${how}${why && ` (${why})`}` });
  }

  /** Signs in with `{login, password}`, `{email, password}` or the `{code}` of a sign-in link; returns the user. @param {Credentials} credentials @returns {Promise<OwnUser>} */
  async signIn(credentials) {
    const answer = await this.request("POST", "/v1/sessions", { body: credentials, open: true });
    this.keep(toSession(answer));
    return answer.user;
  }

  /** Ends the session on the server, and forgets it here even if the server cannot be reached. */
  async signOut() {
    await this.request("DELETE", "/v1/sessions").catch(() => {}); // the session then ends by itself, when nobody refreshes it
    this.keep(null);
  }

  /** Returns a token that is valid now. Throws ApiError 401 `signed_out` without a session. */
  async token() {
    if (this.options.token) return this.options.token;
    const session = this.store.load();
    if (!session) throw signedOut();
    if (Date.now() < session.refreshAt) return session.token;
    try {
      return (await this.refresh(session.token)).token;
    } catch (error) {
      // In its last fifth the token is good for another while, if only the server is away.
      const isAway = error instanceof ApiError && error.isTemporary && Date.now() < session.expires;
      if (!isAway) throw error;
      return session.token;
    }
  }

  /**
   * @internal Exchanges the refresh token. It works once, and a second use ends the session: so one caller at a time
   * asks, among all that share the store, and the others take what it got.
   * @param {string} used the token that is too old; a session with another one is fresh already.
   */
  refresh(used) {
    return this.store.lock(async () => {
      const session = this.store.load();
      if (!session) throw signedOut();
      if (session.token !== used) return session;
      const body = { refresh_token: session.refreshToken };
      try {
        const fresh = toSession(await this.request("POST", "/v1/sessions", { body, open: true, within: SILENCE_MS }));
        this.keep(fresh);
        return fresh;
      } catch (error) {
        if (error instanceof ApiError && !error.isTemporary) this.keep(null, error);
        throw error;
      }
    });
  }

  /** Calls `listener` with each new session, and with null after the end of one, and with the refusal by which the server ended it. @param {(session: Session | null, refusal?: ApiError) => void} listener */
  onSession(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Saves a session and tells all who listen. @param {Session | null} session @param {ApiError} [refusal] */
  keep(session, refusal) {
    this.store.save(session);
    this.changed(refusal);
  }

  /** Reads the session again: another client of the same store may have changed it. @param {ApiError} [refusal] */
  changed(refusal) {
    const session = this.store.load();
    for (const listener of [...this.listeners]) listener(session, refusal);
    for (const stream of [...this.streams]) stream.sessionChanged(session);
    this.schedule();
  }

  /** @internal While streams are open, exchanges the token in time, so that they go on. */
  schedule() {
    clearTimeout(this.timer);
    const session = this.options.token ? null : this.store.load();
    if (!session || !this.streams.size) return;
    const wait = Math.max(1000, session.refreshAt - Date.now() + Math.random() * 500);
    const later = () => (this.timer = setTimeout(() => this.schedule(), 5000 + Math.random() * 5000));
    const again = () => (Date.now() < (this.store.load()?.refreshAt ?? Infinity) ? this.schedule() : later());
    this.timer = setTimeout(() => this.token().then(again, again), Math.min(wait, MAX_TIMER_MS));
  }

  /**
   * Opens a stream. @param {StreamParameters} parameters as of `GET /v1/stream`; a list repeats the parameter.
   * @param {StreamOptions} [options] @returns {Stream}
   */
  stream(parameters, options = {}) { return new Stream(this, parameters, options); }

  /**
   * Makes a named subscription. Of an existing one, changes the filters and where its events go, and keeps the cursor. The
   * answer that makes a webhook is the only one with its secret. @param {string} name
   * @param {StreamParameters} parameters @param {SubscriptionOptions} [options] @returns {Promise<Subscription>}
   */
  async putSubscription(name, parameters, { since, parts, deliver, batch, paused } = {}) {
    const body = { parameters, since, parts, deliver: deliver === undefined ? undefined : { url: deliver, batch, paused } };
    return this.request("PUT", subscriptionPath(name), { body });
  }

  /** Changes a saved rule, which keeps its id. Without a tag it has none afterwards. @param {string} id @param {string} rule @param {{ tag?: string, dryRun?: boolean }} [options] @returns {Promise<RuleAnswer>} */
  async changeRule(id, rule, { tag, dryRun } = {}) {
    return this.request("PUT", `/v1/rules/${encodeURIComponent(id)}`, { body: { rule, tag, dry_run: dryRun } });
  }

  /** Reads the user's named subscriptions, and how far behind each is. @returns {Promise<Subscription[]>} */
  async subscriptions() { return (await this.request("GET", "/v1/subscriptions")).subscriptions; }

  /** Reads one of the user's named subscriptions. @param {string} name @returns {Promise<Subscription>} */
  async subscription(name) { return this.request("GET", subscriptionPath(name)); }

  /** Deletes a named subscription, and ends the stream that reads it. @param {string} name @returns {Promise<void>} */
  async deleteSubscription(name) { await this.request("DELETE", subscriptionPath(name)); }

  /**
   * Says that everything up to a cursor is handled. A loop over a stream does it by itself. @param {string} name
   * @param {string} cursor @param {string} [connection] of a shared one: the `connection` by which the cursor came
   * @returns {Promise<void>}
   */
  async ack(name, cursor, connection) { await this.request("POST", subscriptionPath(name, "/ack"), { body: { cursor, connection } }); }

  /** Lets the server send a request without events to a webhook. @param {string} name @returns {Promise<SentWebhook>} how it went */
  async testWebhook(name) { return this.request("POST", subscriptionPath(name, "/test")); }

  /** Makes a new secret for a webhook. The one before it signs too, for a day. @param {string} name @returns {Promise<WebhookSecret>} */
  async replaceWebhookSecret(name) { return this.request("POST", subscriptionPath(name, "/secret")); }
}

const subscriptionPath = (/** @type {string} */ name, deed = "") => `/v1/subscriptions/${encodeURIComponent(name)}${deed}`;

const notOfServer = () => new ApiError(0, { code: "unreadable", message: "another program answered, such as a proxy" });
const signedOut = () => new ApiError(401, { code: "signed_out", message: "sign in first" });

/** @param {any} answer of `POST /v1/sessions` @returns {Session} */
function toSession(answer) {
  const life = (Number.isFinite(answer.expires_in) ? answer.expires_in : 0) * 1000;
  const { token, refresh_token: refreshToken, user } = answer;
  return { token, refreshToken, user, expires: Date.now() + life, refreshAt: Date.now() + life * REFRESH_SHARE };
}

/** @internal @param {Record<string, any>} parameters @returns {string} without the `?` */
export function toQuery(parameters) {
  const pairs = Object.entries(parameters).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  return new URLSearchParams(pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")).toString();
}

/** A signal that aborts after so many ms, with the other signal, and by `end`. @param {number} ms @param {AbortSignal | null} [other] */
function timeLimit(ms, other) {
  const controller = new AbortController();
  const timer = setTimeout(() => controller.abort(), ms);
  const end = () => (clearTimeout(timer), controller.abort());
  if (other?.aborted) end();
  other?.addEventListener("abort", end, { signal: controller.signal });
  return { signal: controller.signal, end };
}

/** The seconds that a server has named as a wait, 0 to the longest; undefined for what is no number. @param {unknown} seconds */
function boundDelay(seconds) {
  if (typeof seconds !== "number" || Number.isNaN(seconds)) return undefined;
  return Math.min(Math.max(seconds, 0), MAX_SERVER_DELAY_SECONDS);
}

/** The seconds of a `Retry-After`, a number or a date of HTTP. @param {string | null} header */
function readRetryAfter(header) {
  const text = (header ?? "").trim();
  if (/^\d+(\.\d+)?$/.test(text)) return boundDelay(Number(text));
  return /^[A-Z][a-z]+,.* GMT$/.test(text) ? boundDelay((Date.parse(text) - Date.now()) / 1000) : undefined; // a browser reads "-5" as a date
}

/** The text of an answer. Throws ApiError `too_large` for one with more bytes than a client takes. @param {Response} response */
async function readText(response) {
  if (!response.body?.getReader) return response.text(); // of a `fetch` that is not the standard's
  const [reader, decoder, parts] = [response.body.getReader(), new TextDecoder(), /** @type {string[]} */ ([])];
  for (let size = 0; ; ) {
    const { done, value } = await reader.read();
    if (done) return parts.join("") + decoder.decode();
    if ((size += value.length) > MAX_RECEIVED_BYTES) {
      reader.cancel().catch(() => {});
      throw tooLarge();
    }
    parts.push(decoder.decode(value, { stream: true }));
  }
}

const tooLarge = () => new ApiError(0, { code: "too_large", message: `the server sent more than ${MAX_RECEIVED_BYTES} bytes at once` });

/** The error of an answer. A proxy gives the wait only in the header. @param {Response} response @param {string} text */
function readError(response, text) {
  const retry_after = readRetryAfter(response.headers.get("Retry-After"));
  const unreadable = { code: "unreadable", message: `the server answered ${response.status}`, retry_after };
  try {
    const { error } = JSON.parse(text);
    return error?.code ? { retry_after, ...error } : unreadable;
  } catch {
    return unreadable;
  }
}

/** Kinds that an EventSource has to be told, since it hears only names that it knows. */
const EVENT_KINDS = ("hello heartbeat warning gap effective goodbye post edit delete like unlike comment uncomment follow " +
  "unfollow request unrequest block unblock mute unmute user_update user_delete protect unprotect notification message " +
  "list_create list_update list_delete list_add list_remove group_create group_update group_delete group_join group_leave count").split(" ");

/** One stream over changing connections. Use it by `for await`, or with `onMessage`. */
export class Stream {
  /** @internal @type {Client} */ client;
  /** @internal @type {StreamOptions} */ options;
  /** @internal @type {string} */ path;
  /** The filters; after a refused update those before it. @type {StreamParameters} */ parameters;
  /** @internal @type {StreamParameters} what the server was sent last */ sent;
  /** The position after the last message, to continue there. @type {string} */ cursor;
  /** When the message of the cursor happened, in ms by the server's clock, or NaN. */ cursorTime = NaN;
  /** The connection's id of `GET /v1/streams`, or "". */ connection = "";
  /** What to add to the server's time to get this machine's, in ms. */ clockOffset = 0;
  /** @type {StreamState} */ state = { name: "connecting" };
  /** @internal @type {any} */ transport = null;
  /** @internal @type {[StreamEvent | Gap, number, string][] | null} what an iterator has not taken yet, its size in characters, and the connection by which it came */ queue;
  /** @internal The sum of the sizes. */ held = 0;
  /** @internal The position after what it has taken. */ taken = "";
  /** @internal @type {((value?: any) => void)[]} of iterators that wait */ waiting = [];
  /** @internal Lets them look again. */ wake = () => this.waiting.splice(0).forEach((resolve) => resolve());
  /** @internal @type {Set<string>} */ seen = new Set();
  /** @internal Of connections; what belongs to another one is void. */ attempt = 0;
  /** @internal In a row, of any transport. */ failures = 0;
  /** @internal In a row. */ socketFailures = 0;
  /** @internal When this connection began, and brought something last, in ms since 1970. */ helloAt = 0; heardAt = 0;
  /** @internal Between its heartbeats, in ms. */ beat = 1000 * BEAT_SECONDS;
  /** @internal @type {StreamParameters | null} what the server has accepted last */ inForce = null;
  /** @internal Whose stream it is. */ uid = "";
  /** @internal Sent on this connection. */ updates = 0;
  /** @internal By `effective`, or by a refusal. @type {any} */ answered = 0;
  /** @internal @type {Record<string, any>} */ timers = {};
  /** @internal The last cursor that was to be acknowledged, and by which connection it, `cursor` and `taken` came. */ acked = ""; ackedBy = ""; cursorBy = ""; takenBy = "";
  /** @internal Until it is sent. @type {any} */ ackTimer = undefined;
  /** @internal By events of the page. That it is offline is a hint, in which browsers err. A page that is left may be kept for Back: its connection would count for the user while nobody reads it. */
  heeds = {
    online: () => void (this.isFinal || this.connection || this.connect()),
    offline: () => void (this.connection && this.check("offline")),
    pagehide: () => void (this.isFinal || this.drop()),
    pageshow: (/** @type {any} */ event) => void (event.persisted && this.retryNow()),
  };

  /** `client.stream` calls it. @param {Client} client @param {StreamParameters} parameters @param {StreamOptions} options */
  constructor(client, { since, ...parameters }, options) {
    [this.client, this.options, this.parameters, this.sent] = [client, options, parameters, parameters];
    this.path = options.path ?? "/v1/stream";
    this.cursor = options.since ?? since ?? "";
    this.queue = options.onMessage ? null : [];
    for (const [kind, listener] of Object.entries(this.heeds)) globalThis.addEventListener?.(kind, listener);
    client.streams.add(this);
    client.schedule();
    queueMicrotask(() => this.attempt || this.isFinal || this.connect());
  }

  /** Whether the stream has ended for good. */
  get isFinal() { return ["refused", "ended", "closed"].includes(this.state.name); }

  /** Ends the stream for good. The cursor stays, for a later stream. */
  close() { if (!this.isFinal) this.finish({ name: "closed" }); }

  /** Connects now instead of at `state.retryAt`. */
  retryNow() { if (!this.transport && !this.isFinal) this.connect(); }

  /**
   * Changes the filters. A socket stays open, and its stream changes at a place of the log, which `effective` tells; an
   * EventSource opens again after its cursor. Throws nothing: the server's refusal goes to `onRefusedUpdate`, and the
   * stream goes on with the filters that it had.
   * @param {Omit<StreamParameters, "since">} parameters
   */
  update(parameters) {
    this.parameters = { ...parameters };
    if (this.isFinal || !this.connection) return;
    if (this.transport?.send) this.sendUpdate();
    else this.connect();
  }

  /** @internal Sends the newest filters, one update at a time: the server refuses one while another is on its way. */
  sendUpdate() {
    if (this.sent === this.parameters || this.answered !== this.updates) return;
    this.sent = this.parameters;
    this.transport.send({ op: "update", id: ++this.updates, parameters: this.parameters });
  }

  /** Whether the connection is open, and `parameters` are in force there. */
  get isSettled() { return this.connection !== "" && this.sent === this.parameters && this.answered === this.updates; }

  /** @internal @param {StreamState} state */ tell(state) {
    this.state = state;
    call(this.options.onState, state);
    this.wake();
  }

  /** @internal Leaves the connection without a word to anybody. */
  drop() {
    this.attempt += 1; // whatever still comes from the old connection is void
    this.transport?.close();
    this.transport = null;
    this.connection = "";
    this.updates = this.answered = 0;
    for (const timer of Object.values(this.timers)) clearTimeout(timer);
  }

  /** @internal @param {StreamState} state */ finish(state) {
    this.drop();
    for (const [kind, listener] of Object.entries(this.heeds)) globalThis.removeEventListener?.(kind, listener);
    this.client.streams.delete(this);
    this.client.schedule();
    this.sendAck();
    this.tell(state);
  }

  /** @internal */ async connect() {
    this.drop();
    const mine = this.attempt;
    this.tell({ name: "connecting", attempt: this.failures + 1 });
    try {
      this.uid = this.client.user?.id ?? "";
      const { ticket } = await this.client.request("POST", "/v1/streams/ticket", { within: SILENCE_MS });
      if (mine === this.attempt) this.open(mine, ticket);
    } catch (error) {
      if (mine === this.attempt) this.failed(error);
    }
  }

  /** @internal @param {number} mine @param {string} ticket */
  open(mine, ticket) {
    const { WebSocket: Socket = globalThis.WebSocket, EventSource: Source = globalThis.EventSource } = this.client.options;
    const mayUseSocket = this.options.transport !== "events" && Socket && (this.socketFailures < 2 || !Source);
    this.sent = this.parameters;
    const path = `${this.path}?${toQuery({ ...this.parameters, since: this.since, ticket })}`;
    const url = new URL(this.client.address + path, globalThis.location?.href).href;
    const heard = (/** @type {string} */ data) => void (mine === this.attempt && this.hear(data));
    const lost = () => mine === this.attempt && this.lost();
    if (mayUseSocket) this.transport = openSocket(Socket, url, heard, lost);
    else if (Source) this.transport = openSource(Source, url, heard, lost);
    else this.transport = openLines((init) => this.client.ask(path, init), heard, lost);
    this.watch();
  }

  /** @internal Where to begin. The server knows it of a named subscription: behind what was acknowledged. */
  get since() { return this.parameters.subscription ? undefined : this.cursor || undefined; }

  /**
   * Says that everything up to a cursor of a named subscription is handled, within a second. A loop by `for await` does it
   * by itself: it has handled what it asks behind. Throws nothing: what is not acknowledged comes again.
   * @param {string} cursor @param {string} [connection] by which it came; the present one
   */
  ack(cursor, connection = this.connection) {
    if (!this.parameters.subscription || !cursor || (cursor === this.acked && connection === this.ackedBy)) return;
    [this.acked, this.ackedBy] = [cursor, connection];
    this.ackTimer ??= setTimeout(() => this.sendAck(), ACK_MS);
  }

  /** @internal */ sendAck() {
    if (this.ackTimer === undefined) return;
    clearTimeout(this.ackTimer);
    this.ackTimer = undefined;
    const path = subscriptionPath(this.parameters.subscription ?? "", "/ack");
    this.client.request("POST", path, { body: { cursor: this.acked, connection: this.ackedBy }, keepalive: true }).catch(() => (this.acked = "")); // the next one says it, too
  }

  /** @internal A connection without its heartbeat is doubted. One without the next is dead, whatever the system believes of it. */
  watch() {
    clearTimeout(this.timers.silence);
    this.heardAt = Date.now();
    if (this.connection) this.timers.silence = setTimeout(() => this.doubt(), this.beat + Math.max(2000, this.beat / 5));
    else this.timers.silence = setTimeout(() => this.lost(), SILENCE_MS);
  }

  /** @internal */ doubt() {
    this.timers.silence = setTimeout(() => this.lost(), this.beat + PROBE_MS);
    this.tell({ name: "silent", since: this.heardAt });
    this.check("waiting");
  }

  /** @internal Asks for little. Without an answer the connection is given up, unless it brings something meanwhile. @param {"waiting" | "offline"} state */
  async check(state) {
    const [mine, heardAt, limit] = [this.attempt, this.heardAt, timeLimit(PROBE_MS)];
    const isThere = await this.client.ask("/healthz", { signal: limit.signal }).then((answer) => answer.status < 500, () => false);
    limit.end();
    if (!isThere && mine === this.attempt && heardAt === this.heardAt) this.retry("the server does not answer", 0, undefined, state);
  }

  /** @internal What is no message, or too long, ends the connection as an answer of another program does. @param {string} data */
  hear(data) {
    let message;
    try {
      if (data.length > MAX_RECEIVED_BYTES) throw tooLarge();
      message = JSON.parse(data);
      if (typeof message?.kind !== "string") throw new SyntaxError("no kind");
    } catch (error) {
      return this.failed(error instanceof ApiError ? error : notOfServer());
    }
    this.receive(message, data.length);
  }

  /** @internal @param {Message} message @param {number} [size] in characters */ receive(message, size = 0) {
    this.watch();
    if (this.state.name === "silent") this.tell({ name: "live" });
    const [before, beforeBy] = [this.cursor, this.cursorBy];
    const isEvent = isOfEvent(message);
    if (isEvent && this.hadBefore(message.cursor)) return;
    if ("cursor" in message) [this.cursor, this.cursorTime, this.cursorBy] = [message.cursor, Date.parse(message.at), message.kind === "hello" ? message.connection : this.connection];
    if ((message.kind === "effective" || message.kind === "error") && message.id) this.answered = message.id;
    if (message.kind === "hello") this.greeted(message);
    else if (message.kind === "gap" && message.reason === "rolled_back") this.seen.clear();
    else if (message.kind === "error") this.operationRefused(message);
    else if (isEvent) this.showProgress(message.at);
    call(this.options.onMessage, message);
    if (this.queue && (isEvent || message.kind === "gap")) this.enqueue(message, before, beforeBy, size);
    else if (this.waiting.length && !this.queue?.length) this.ack(this.cursor, this.cursorBy); // a quiet stream moves on by its heartbeats
    if (message.kind === "effective" && message.id === this.updates) (this.inForce = this.sent), this.sendUpdate();
    if (message.kind === "goodbye") this.goodbye(message);
  }

  /** @internal An operation was refused: the filters in force stay, or are changed later. @param {OperationRefused} message */
  operationRefused(message) {
    if (message.id === TOKEN_ID) return; // the stream ends with the token that it has, and reconnects with the new one
    const isForNow = TEMPORARY_CODES.has(message.error.code);
    const refusal = new ApiError(isForNow ? 503 : 400, message.error);
    if (message.id === this.updates && this.inForce) {
      if (!isForNow && this.sent === this.parameters) this.parameters = this.inForce;
      this.sent = this.inForce;
      this.timers.update = setTimeout(() => this.sendUpdate(), isForNow ? 1000 * (refusal.retryAfter ?? 1) : 0);
    }
    if (!isForNow) call(this.options.onRefusedUpdate, refusal);
  }

  /** @internal @param {string} cursor */ hadBefore(cursor) {
    if (this.seen.has(cursor)) return true;
    this.seen.add(cursor);
    if (this.seen.size > MAX_REMEMBERED) this.seen.delete(this.seen.values().next().value ?? "");
    return false;
  }

  /** @internal @param {Hello} hello */ greeted(hello) {
    this.connection = hello.connection;
    this.helloAt = Date.now();
    this.beat = 1000 * Math.min(Math.max(hello.heartbeat_seconds ?? BEAT_SECONDS, 0) || BEAT_SECONDS, MAX_SERVER_DELAY_SECONDS);
    this.watch();
    this.clockOffset = this.helloAt - Date.parse(hello.at);
    this.inForce = this.sent;
    if (this.transport?.send) this.socketFailures = 0; // a working EventSource says nothing of sockets
    this.tell({ name: "live" });
    if (this.sent !== this.parameters) this.update(this.parameters);
  }

  /** @internal Tells how far a stream is that reads what happened while it was away. @param {string} at */
  showProgress(at) {
    const isLate = Date.now() - this.clockOffset - Date.parse(at) > 5000;
    clearTimeout(this.timers.progress);
    if (isLate) {
      this.tell({ name: "catching up", at });
      this.timers.progress = setTimeout(() => this.tell({ name: "live" }), 1500);
    } else if (this.state.name !== "live") this.tell({ name: "live" });
  }

  /** @internal @param {Goodbye} message */ goodbye(message) {
    const isOfToken = ["token_expired", "token_revoked"].includes(message.code);
    const isNamed = (message.retry_after ?? null) !== null;
    const wait = isNamed ? (boundDelay(message.retry_after) ?? 0) : isOfToken && !this.client.options.token ? 0 : null;
    if (wait === null) {
      this.finish({ name: "ended", reason: message.reason, error: new ApiError(403, { code: message.code, message: message.reason }) });
    } else if (isOfToken && Date.now() - this.helloAt > LIVED_MS) this.connect(); // whose ticket needs a fresh token, or ends the session
    else this.retry(message.reason, wait * 1000);
  }

  /** @internal The connection broke. One that never began may have been refused, which only an ordinary request can tell. */
  async lost() {
    const mine = this.attempt;
    if (this.connection) return this.retry("the connection was lost");
    if (this.transport?.send) this.socketFailures += 1;
    try {
      await this.probe();
      if (mine === this.attempt) this.retry("the connection could not be opened");
    } catch (error) {
      if (mine === this.attempt) this.failed(error);
    }
  }

  /** @internal Opens the same stream by an ordinary request, and leaves it after the head. Throws ApiError if it is refused. */
  async probe() {
    const limit = timeLimit(SILENCE_MS);
    const headers = { Authorization: `Bearer ${await this.client.token()}`, Accept: "application/x-ndjson" };
    const path = `${this.path}?${toQuery({ ...this.sent, since: this.since })}`;
    try {
      const answer = await this.client.ask(path, { headers, signal: limit.signal });
      if (!answer.ok) throw new ApiError(answer.status, readError(answer, await readText(answer).catch(() => "")));
    } finally {
      limit.end();
    }
  }

  /** @internal @param {unknown} error */ failed(error) {
    const refusal = error instanceof ApiError ? error : new ApiError(0, { code: "failed", message: String(error) });
    if (refusal.status === 401 && !this.client.options.token) {
      this.drop();
      this.tell({ name: "signed out", error: refusal });
    } else if (!this.client.hasAnswered && refusal.status === 0) this.finish({ name: "ended", reason: refusal.message, error: refusal });
    else if (refusal.isTemporary) this.retry(refusal.message, (refusal.retryAfter ?? 0) * 1000, refusal);
    else if (this.inForce && this.inForce !== this.parameters) {
      this.parameters = this.inForce; // an update that this connection would have brought is refused
      call(this.options.onRefusedUpdate, refusal);
      this.connect();
    } else this.finish({ name: "refused", error: refusal });
  }

  /** @internal Connects again after a random time that grows, and not before the `wait` ms that the server asked for. @param {string} reason @param {number} [wait] @param {ApiError} [error] @param {"waiting" | "offline"} [name] */
  retry(reason, wait = 0, error, name = "waiting") {
    if (this.helloAt && Date.now() - this.helloAt > STEADY_MS) this.failures = 0;
    this.helloAt = 0;
    this.drop();
    const ceiling = Math.min(MAX_DELAY_MS, MIN_DELAY_MS * 2 ** ++this.failures);
    const random = (this.client.options.random ?? Math.random)();
    const delay = Math.max(wait * (1 + SPREAD * random), MIN_DELAY_MS + random * (ceiling - MIN_DELAY_MS));
    this.timers.retry = setTimeout(() => this.connect(), delay);
    this.tell({ name, retryAt: Date.now() + delay, attempt: this.failures, reason, error });
  }

  /** @internal The client calls this: a new token prolongs the connection, none ends it. @param {Session | null} session */
  sessionChanged(session) {
    if (!session) {
      this.drop();
      this.tell({ name: "signed out" });
    } else if (this.state.name === "signed out" || (session.user?.id ?? "") !== this.uid) this.connect();
    else if (this.connection && this.transport?.send) this.transport.send({ op: "token", id: TOKEN_ID, token: session.token });
    else if (this.connection) this.client.request("POST", `/v1/streams/${this.connection}/token`).catch(() => {});
  }

  /** @internal @param {StreamEvent | Gap} message @param {string} before the position before it @param {string} beforeBy @param {number} size */
  enqueue(message, before, beforeBy, size) {
    if (!this.queue?.length) [this.taken, this.takenBy] = [before, beforeBy];
    const waiting = this.queue?.push([message, size, this.connection]) ?? 0;
    this.held += size;
    this.wake();
    if (waiting < MAX_WAITING && this.held < MAX_RECEIVED_BYTES) return;
    this.drop();
    this.tell({ name: "waiting", reason: "the reader is slower than the stream" });
  }

  /** @internal The next event for an iterator. @returns {Promise<IteratorResult<StreamEvent | Gap, undefined>>} */
  async take() {
    this.ack(this.queue?.length ? this.taken : this.cursor, this.queue?.length ? this.takenBy : this.cursorBy);
    while (!this.queue?.length) {
      const { name, error, retryAt } = this.state;
      if (this.isFinal || name === "signed out") {
        const end = this.leave();
        if (error || name === "signed out") throw error ?? signedOut();
        return end;
      }
      if (this.attempt && !this.transport && name === "waiting" && !retryAt) this.connect();
      await new Promise((resolve) => this.waiting.push(resolve));
    }
    const [value, size, connection] = /** @type {[StreamEvent | Gap, number, string]} */ (this.queue.shift());
    [this.taken, this.takenBy] = [value.cursor, connection];
    this.held -= size;
    return { done: false, value };
  }

  /** @internal A loop has ended: a later stream brings what it has left. @returns {IteratorReturnResult<undefined>} */
  leave() {
    if (this.queue?.length) this.cursor = this.taken;
    this.queue = null;
    this.held = 0;
    this.close();
    return { done: true, value: undefined };
  }

  /**
   * Yields events and gaps, from the first one if the stream has no `onMessage`. A reader that is too slow loses nothing:
   * the stream waits for it, and goes on by its cursor. The end of a loop closes it. @returns {AsyncIterableIterator<StreamEvent | Gap>}
   */
  [Symbol.asyncIterator]() {
    this.queue ??= [];
    // No async generator: its `return` would wait for the next event.
    const iterator = { next: () => this.take(), return: async () => this.leave(), [Symbol.asyncIterator]: () => iterator };
    return iterator;
  }
}

/** Calls what the program gave. An error of it is an uncaught one, and does not stop the stream. @template T @param {((value: T) => void) | undefined} listener @param {T} value */
function call(listener, value) {
  try {
    listener?.(value);
  } catch (error) {
    queueMicrotask(() => { throw error; });
  }
}

/** @param {new (url: string) => any} Socket @param {string} url @param {(data: string) => void} heard @param {() => void} lost */
function openSocket(Socket, url, heard, lost) {
  const socket = new Socket(url.replace(/^http/, "ws"));
  socket.onmessage = (/** @type {{data: any}} */ event) => heard(String(event.data));
  const end = () => void (socket.onclose === end && ((socket.onclose = null), lost()));
  socket.onclose = socket.onerror = end; // in Node before version 24 no `close` follows the error of an opening that failed
  const close = () => socket.close(1000);
  const closeQuietly = () => void (socket.readyState === 0 && globalThis.document ? (socket.onopen = close) : close()); // a browser reports the end of one that is not open yet as an error of the page
  return { send: (/** @type {object} */ message) => socket.send(JSON.stringify(message)), close: closeQuietly };
}

/** An EventSource would repeat its URL, whose ticket is spent: it is closed, and another one opened with another. @param {new (url: string) => any} Source @param {string} url @param {(data: string) => void} heard @param {() => void} lost */
function openSource(Source, url, heard, lost) {
  const source = new Source(url);
  for (const kind of EVENT_KINDS) source.addEventListener(kind, (/** @type {{data: string}} */ event) => heard(event.data));
  source.onerror = () => (source.close(), lost());
  return { close: () => source.close() };
}

/** A stream of lines, where there is neither class. What refuses it is asked by `lost`. @param {(init: RequestInit) => Promise<Response>} ask @param {(data: string) => void} heard @param {() => void} lost */
function openLines(ask, heard, lost) {
  const controller = new AbortController();
  const read = async () => {
    const { ok, body } = await ask({ headers: { Accept: "application/x-ndjson" }, signal: controller.signal });
    const [reader, decoder] = [ok && body?.getReader(), new TextDecoder()];
    for (let waiting = ""; reader; ) {
      const { done, value } = await reader.read();
      const lines = (waiting + decoder.decode(value, { stream: true })).split("\n");
      waiting = lines.pop() ?? "";
      if (waiting.length > MAX_RECEIVED_BYTES) lines.push(waiting); // it is refused
      for (const line of lines) if (line) heard(line);
      if (done) return;
    }
  };
  read().then(lost, lost);
  return { close: () => controller.abort() };
}
