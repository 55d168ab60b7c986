// @ts-check
// The JavaScript client of stream-server: one file, no dependencies, for browsers and for Node 20 and newer.
//
//   import { Client } from "./client.js";
//   const client = new Client("http://127.0.0.1:8000");
//   await client.signIn({ login: "ada", password: "…" });
//   for await (const event of client.stream({ track: "coffee" })) console.log(event.status?.message);
//
// A stream goes on by itself: it reconnects with back-off, continues after its last cursor, drops what it had, and tells
// of gaps. Tokens are refreshed before they end. Node has no EventSource, and before version 22 no WebSocket: give
// implementations as options, such as `{ WebSocket }` of the package `ws`.

const REFRESH_SHARE = 0.8; // of a token's life, after which it is exchanged
const MIN_DELAY_MS = 500;
const MAX_DELAY_MS = 20_000;
const STEADY_MS = 30_000; // a connection that lived so long begins the back-off anew
const SILENCE_MS = 45_000; // three heartbeats: a connection that was silent for longer is dead
const MAX_TIMER_MS = 2 ** 31 - 1; // a longer timer of JavaScript fires at once
const MAX_REMEMBERED = 4096; // cursors of the latest events, to drop one that comes twice
const MAX_WAITING = 1000; // events that an iterator holds; with more, its stream waits, and continues by its cursor

const CONTROL_KINDS = new Set(["hello", "heartbeat", "warning", "gap", "effective", "goodbye", "error"]);
const FINAL_GOODBYES = new Set(["token_revoked", "suspended", "closed_by_user", "too_many_streams"]);

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
    this.retryAfter = error.retry_after;
  }

  /** Whether the same request may succeed later. */
  get isTemporary() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/**
 * @typedef {{token: string, refreshToken: string, expires: number, refreshAt: number, user: any}} Session
 *   `expires` and `refreshAt` are in ms since 1970, by this machine's clock.
 * @typedef {{load: () => Session | null, save: (session: Session | null) => void, lock: <T>(work: () => Promise<T>) => Promise<T>}} SessionStore
 *   Where the session is. Clients that share one share it by `load`; `lock` runs one `work` at a time among them all.
 */

/** @returns {SessionStore} a session in memory, of this client alone. */
export function memoryStore() {
  /** @type {Session | null} */ let kept = null;
  /** @type {Promise<any>} */ let last = Promise.resolve();
  const lock = (/** @type {() => Promise<any>} */ work) => (last = last.then(work, work));
  return { load: () => kept, save: (session) => void (kept = session), lock };
}

/** Requests to one server, with a session whose token stays fresh. */
export class Client {
  /**
   * @param {string} [address] the server, such as `http://127.0.0.1:8000`; "" means the page's own.
   * @param {{token?: string, store?: SessionStore, fetch?: typeof fetch, WebSocket?: any, EventSource?: any,
   *   random?: () => number}} [options] `token`: a fixed token instead of a session. The others replace the globals.
   */
  constructor(address = "", options = {}) {
    this.address = address.replace(/\/$/, "");
    this.options = options;
    this.store = options.store ?? memoryStore();
    /** @type {Set<(session: Session | null) => void>} */ this.listeners = new Set();
    /** @type {any} */ this.timer = undefined;
    /** @type {Set<Stream>} */ this.streams = new Set();
  }

  /** The user who is signed in, or null. */
  get user() {
    return this.store.load()?.user ?? null;
  }

  /**
   * Sends a request and returns the answer's JSON, or null for none. Throws ApiError.
   * @param {string} method @param {string} path such as `/v1/statuses`
   * @param {{query?: Record<string, any>, body?: any, signal?: AbortSignal, open?: boolean, headers?: Record<string, string>}} [more]
   *   `open`: without a token.
   * @returns {Promise<any>}
   */
  async request(method, path, more = {}) {
    const query = toQuery(more.query ?? {});
    const send = async () => {
      const headers = { Accept: "application/json", ...more.headers };
      if (!more.open) Object.assign(headers, { Authorization: `Bearer ${await this.token()}` });
      if (more.body !== undefined) Object.assign(headers, { "Content-Type": "application/json" });
      const body = more.body === undefined ? undefined : JSON.stringify(more.body);
      return this.send(`${path}${query && "?"}${query}`, { method, headers, body, signal: more.signal });
    };
    try {
      return await send();
    } catch (error) {
      const ended = error instanceof ApiError && error.code === "token_expired" && !more.open && !this.options.token;
      if (!ended) throw error; // a token that this machine's clock believed alive is exchanged, once
      await this.refresh(this.store.load()?.token);
      return send();
    }
  }

  /** @param {string} path @param {RequestInit} init */
  async send(path, init) {
    const ask = this.options.fetch ?? fetch;
    let response;
    try {
      response = await ask(this.address + path, { credentials: "omit", redirect: "error", ...init });
    } catch (error) {
      if (init.signal?.aborted) throw error;
      throw new ApiError(0, { code: "unreachable", message: "the server cannot be reached" });
    }
    const text = await response.text().catch(() => "");
    if (response.ok) return text ? JSON.parse(text) : null;
    throw new ApiError(response.status, readError(response, text));
  }

  /** Signs in with `{login, password}`, `{email, password}` or the `{code}` of a sign-in link; returns the user. @param {Record<string, string>} credentials */
  async signIn(credentials) {
    const answer = await this.request("POST", "/v1/sessions", { body: credentials, open: true });
    this.keep(toSession(answer));
    return answer.user;
  }

  /** Ends the session on the server, and forgets it here even if the server cannot be reached. */
  async signOut() {
    try {
      await this.request("DELETE", "/v1/sessions");
    } catch {
      // The session then ends by itself, when nobody refreshes it.
    }
    this.keep(null);
  }

  /** Returns a token that is valid now. Throws ApiError 401 `signed_out` without a session. */
  async token() {
    if (this.options.token) return this.options.token;
    const session = this.store.load();
    if (!session) throw new ApiError(401, { code: "signed_out", message: "sign in first" });
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
   * Exchanges the refresh token. It works once, and a second use ends the session: so one caller at a time asks, among
   * all that share the store, and the others take what it got.
   * @param {string} [used] the token that is too old; a session with another one is fresh already.
   */
  refresh(used) {
    return this.store.lock(async () => {
      const session = this.store.load();
      if (!session) throw new ApiError(401, { code: "signed_out", message: "sign in first" });
      if (session.token !== used) return session;
      const body = { refresh_token: session.refreshToken };
      try {
        const fresh = toSession(await this.request("POST", "/v1/sessions", { body, open: true }));
        this.keep(fresh);
        return fresh;
      } catch (error) {
        if (error instanceof ApiError && !error.isTemporary) this.keep(null);
        throw error;
      }
    });
  }

  /** Calls `listener` with each new session, and with null after the end of one. @param {(session: Session | null) => void} listener */
  onSession(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Saves a session and tells all who listen. @param {Session | null} session */
  keep(session) {
    this.store.save(session);
    this.changed();
  }

  /** Reads the session again: another client of the same store may have changed it. */
  changed() {
    const session = this.store.load();
    for (const listener of [...this.listeners]) listener(session);
    for (const stream of [...this.streams]) stream.sessionChanged(session);
    this.schedule();
  }

  /** While streams are open, exchanges the token in time, so that they go on. */
  schedule() {
    clearTimeout(this.timer);
    const session = this.options.token ? null : this.store.load();
    if (!session || !this.streams.size) return;
    const wait = Math.max(1000, session.refreshAt - Date.now() + Math.random() * 500);
    const refresh = () => this.token().then(() => this.schedule(), () => this.scheduleLater());
    this.timer = setTimeout(refresh, Math.min(wait, MAX_TIMER_MS));
  }

  scheduleLater() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.schedule(), 5000 + Math.random() * 5000);
  }

  /**
   * Opens a stream. @param {Record<string, any>} parameters as of `GET /v1/stream`; a list repeats the parameter.
   * @param {StreamOptions} [options] @returns {Stream}
   */
  stream(parameters, options = {}) {
    return new Stream(this, parameters, options);
  }
}

/** @param {any} answer of `POST /v1/sessions` @returns {Session} */
function toSession(answer) {
  const life = answer.expires_in * 1000;
  const { token, refresh_token: refreshToken, user } = answer;
  return { token, refreshToken, user, expires: Date.now() + life, refreshAt: Date.now() + life * REFRESH_SHARE };
}

/** @param {Record<string, any>} parameters @returns {string} without the `?` */
export function toQuery(parameters) {
  const pairs = Object.entries(parameters).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  return new URLSearchParams(pairs.filter(([, value]) => value !== undefined && value !== null && value !== "")).toString();
}

/** @param {Response} response @param {string} text */
function readError(response, text) {
  try {
    return JSON.parse(text).error ?? JSON.parse("");
  } catch {
    return { code: "unreadable", message: `the server answered ${response.status}` };
  }
}

/** A stream; see below. */
export class Stream {
  /** @param {Client} client @param {Record<string, any>} parameters @param {StreamOptions} options */
  constructor(client, parameters, options) {
    Object.assign(this, { client, parameters, options });
  }

  sessionChanged() {}
}
/** @typedef {Record<string, any>} StreamOptions */
