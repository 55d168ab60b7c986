// @ts-check
/** The user's own stream, which tells all pages what happens. It comes back by itself where it was. */

import { explain } from "../forms.js";

export class Live {
  constructor(app) {
    this.app = app;
    /** @type {Map<string, Set<(event: any) => void>>} */
    this.listeners = new Map();
  }

  /** Call `listener` for each message of a kind; returns what ends this. @param {string} kind @param {(event: any) => void} listener */
  on(kind, listener) {
    const all = this.listeners.get(kind) ?? new Set();
    this.listeners.set(kind, all.add(listener));
    return () => void all.delete(listener);
  }

  start() {
    this.stream = this.app.client.stream({}, {
      path: "/v1/stream/user",
      onMessage: (message) => this.take(message),
      onState: (/** @type {import("../client.js").StreamState} */ state) => this.show(state),
    });
  }

  stop() {
    this.stream?.close();
    this.app.setStatus("");
  }

  take(message) {
    for (const listener of [...(this.listeners.get(message.kind) ?? [])]) listener(message);
  }

  /** @param {import("../client.js").StreamState} state */
  show(state) {
    if (state.name === "closed") return;
    const kind = state.name === "live" ? "live" : ["refused", "ended", "signed out", "offline"].includes(state.name) ? "bad" : "wait";
    const reason = state.error ? `: ${explain(state.error)}` : state.reason ? `: ${state.reason}` : "";
    this.app.setStatus(state.name + reason, kind);
  }
}
