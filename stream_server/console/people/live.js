// @ts-check
/** The user's own stream, which tells all pages what happens. It comes back by itself where it was. */

import { explain } from "../session.js";

/** @typedef {Record<string, any>} Json */

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 20_000;

export class Live {
  /** @param {any} app */
  constructor(app) {
    this.app = app;
    this.stopper = new AbortController();
    this.cursor = "";
    this.wait = FIRST_WAIT_MS;
    /** @type {Map<string, Set<(event: Json) => void>>} */
    this.listeners = new Map();
  }

  /** Call `listener` for each event of a kind; returns what ends this. @param {string} kind @param {(event: Json) => void} listener */
  on(kind, listener) {
    const all = this.listeners.get(kind) ?? new Set();
    this.listeners.set(kind, all.add(listener));
    return () => void all.delete(listener);
  }

  start() {
    void this.run();
  }

  stop() {
    this.stopper.abort();
  }

  async run() {
    while (!this.stopper.signal.aborted) {
      try {
        await this.read();
      } catch (error) {
        if (this.stopper.signal.aborted) return;
        this.app.setStatus(`offline: ${explain(error)}`, "bad");
      }
      await new Promise((resolve) => setTimeout(resolve, this.wait * (0.5 + Math.random())));
      this.wait = Math.min(LONGEST_WAIT_MS, this.wait * 2);
    }
  }

  /** Read the stream until it ends. */
  async read() {
    this.app.setStatus("connecting", "wait");
    const headers = { Authorization: `Bearer ${await this.app.client.token()}`, Accept: "application/x-ndjson" };
    const path = `/v1/stream/user${this.cursor ? `?since=${encodeURIComponent(this.cursor)}` : ""}`;
    const response = await fetch(path, { headers, signal: this.stopper.signal });
    if (!response.ok || !response.body) throw new Error(`the server answered ${response.status}`);
    this.app.setStatus("live", "live");
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      const lines = (rest + part.value).split("\n");
      rest = lines.pop() ?? "";
      lines.filter(Boolean).forEach((line) => this.take(JSON.parse(line)));
    }
  }

  /** @param {Json} event */
  take(event) {
    this.cursor = event.cursor ?? this.cursor;
    this.wait = FIRST_WAIT_MS;
    for (const listener of [...(this.listeners.get(event.kind) ?? [])]) listener(event);
  }
}
