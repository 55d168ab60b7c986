// @ts-check
// The place where the server trims its log, as any user can find it: a poll from before all time begins with a `gap` if
// the log was trimmed, and the first post after it is the oldest that is left. Only administrators may ask for the age.

import { clock } from "./streams/brush.js";

const ASK_MS = 30_000; // one small request in this time, and only while a column is paused
const QUESTION = { since: "1970-01-01T00:00:00Z", sample: "100", limit: "2", wait: "0" };
const NEAR = 1 / 5; // of the log's reach: a pause that lies in its oldest part is told that it ends

export class LogFloor {
  /** @param {import("./client.js").Client} client */
  constructor(client) {
    this.client = client;
    /** When the oldest post was posted, in ms by the server's clock; NaN if nothing was trimmed yet. */ this.at = NaN;
    this.askedAt = 0;
  }

  /** Asks, unless it did lately. What cannot be asked now stays as it was: a warning is no promise. */
  async follow() {
    if (Date.now() - this.askedAt < ASK_MS) return;
    this.askedAt = Date.now();
    const answer = await this.client.request("POST", "/v1/events", { body: QUESTION }).catch(() => null);
    if (!answer) return;
    const [first, oldest] = answer.events;
    this.at = first?.kind === "gap" && oldest ? Date.parse(oldest.at) : NaN;
  }

  /** What to tell whoever paused at `from`, or "". @param {number} from @param {number} now both in ms by the server's clock */
  warn(from, now) {
    if (this.at > from) return `Posts from before ${clock(this.at, "medium")} are no longer on the server's log; the later ones are.`;
    if (this.at + NEAR * (now - this.at) > from) return `The server's log goes back to ${clock(this.at, "medium")} only, so posts of this pause will be missing soon.`;
    return "";
  }
}
