// @ts-check
/** The view Operations: how the server does, asked every two seconds while somebody looks. See the contract in app.js. */

import { duration, fill, h } from "../dom.js";
import { ApiError } from "../client.js";
import { Clients, isHeld } from "../operations/clients.js";
import { History, sum } from "../operations/history.js";
import { bytes, errors, kinds, limits, milliseconds, plain, rate, refusals, share, workers } from "../operations/tables.js";
import { LinePlot } from "../operations/line_plot.js";
import { explain, problemBox } from "../forms.js";
import { moderationLink } from "../people/user_row.js";
import { QUIET_MS, showWorst } from "../voice.js";

const POLL_MS = 2000;
const LONGEST_WAIT_MS = 15_000;
const ANSWER_MS = 2 * QUIET_MS; // a stream that is silent is asked, and gives up, in this time

/**
 * The tiles: the name of a value, its title, how it is written, and a note beneath.
 * @type {[string, string, (value: number | null | undefined) => string, (state: any) => string][]}
 */
const TILES = [
  ["streams", "Open streams", plain, ({ workers: all }) => `${plain(total(all, "live"))} live, ${plain(total(all, "catching_up"))} catching up, ${plain(sum(all.map(({ streams }) => streams.poll ?? 0)))} polls`],
  ["published", "Events of the log", rate, ({ log }) => `number ${plain(log.number)}`],
  ["delivered", "Delivered", rate, ({ workers: all }) => `${plain(total(all, "events_delivered"))} since the start`],
  ["lag", "Lag behind the log", milliseconds, () => "of the slowest worker"],
  ["hold", "Longest loop hold", milliseconds, ({ workers: all }) => `in a minute; ${plain(total(all, "loop_blocked"))} holds over 50 ms`],
  ["requests", "Requests", rate, ({ workers: all }) => `${plain(total(all, "requests"))} since the start`],
  ["refusals", "Refusals", rate, () => "answers with an error"],
  ["cpu", "CPU", share, ({ workers: all }) => `of one core; ${all.length} ${all.length === 1 ? "worker" : "workers"}`],
  ["memory", "Memory of workers", bytes, () => "resident"],
  ["redis", "Memory of Redis", bytes, ({ redis }) => `${redis.memory_limit_bytes ? `of ${bytes(redis.memory_limit_bytes)}` : "without a limit"}; ${plain(redis.reconnects)} reconnects`],
  ["log", "Entries of the log", plain, ({ log }) => `${bytes(log.bytes)}, back to ${duration(log.age_seconds)} ago`],
  ["jobs", "Jobs", plain, ({ jobs }) => `${plain(jobs.due)} due, ${plain(jobs.parked)} parked`],
];

/** @param {any[]} all @param {string} name */
const total = (all, name) => sum(all.map((worker) => worker[name]));

/** @param {typeof TILES[number]} row */
function tile([name, title, write, note]) {
  const value = h("strong", { class: "ops-value" }, "–");
  const below = h("p", { class: "ops-note" });
  const plot = new LinePlot(name, title, write);
  const draw = (/** @type {History} */ { samples, last }) => {
    value.textContent = write(samples.at(-1)?.values[name]);
    below.textContent = note(last);
    plot.draw(samples);
  };
  return { root: h("section", { class: "card ops-tile", dataset: { tile: name } }, h("h2", {}, title), value, below, plot.root), draw };
}

class Operations {
  /** @param {HTMLElement} root @param {any} app */
  constructor(root, app) {
    this.app = app;
    this.root = root;
    this.history = new History();
    this.tiles = TILES.map(tile);
    this.alerts = h("div", { class: "ops-alerts", role: "status" });
    this.problem = problemBox();
    this.tables = h("div", { class: "ops-tables" });
    this.clients = new Clients(app);
    this.asking = false;
    this.failures = this.wholeAt = 0; // in a row; and until when the plots have all that happened
    this.state = { name: "connecting", retryAt: 0 };
    root.classList.add("ops");
    fill(root, h("div", { class: "row" }, h("h1", {}, "Operations"), moderationLink(app)), this.problem, this.alerts, h("div", { class: "ops-tiles" }, this.tiles.map((tile) => tile.root)), this.clients.root, this.tables);
    this.tick();
  }

  resume() { this.tick(); }

  /** Asks two seconds after an answer, and later after a failure; never while nobody looks. */
  tick() {
    this.tell(this.state);
    if (!this.asking && Date.now() >= this.state.retryAt) void this.poll();
  }

  async poll() {
    this.asking = true;
    if (this.failures) this.tell({ name: "connecting", attempt: this.failures + 1 });
    const ask = (more = "") => this.app.client.request("GET", `/v1/admin/operations${more}`, { within: ANSWER_MS });
    try {
      this.history.add(await ask());
      const isWhole = Date.now() - this.wholeAt < ANSWER_MS;
      const hour = isWhole ? null : await ask("/history").catch(() => null); // Redis may be away
      if (hour) this.history.fill(hour);
      if (isWhole || hour) this.wholeAt = Date.now();
      this.failures = 0;
      this.tell({ name: "live", retryAt: Date.now() + POLL_MS });
      fill(this.problem);
    } catch (error) {
      const { message, isTemporary = true, retryAfter = 0 } = /** @type {ApiError} */ (error);
      const wait = Math.min(LONGEST_WAIT_MS, Math.max(POLL_MS * 2 ** ++this.failures, 1000 * retryAfter));
      this.tell({ name: isTemporary ? "waiting" : "refused", attempt: this.failures, retryAt: Date.now() + wait, reason: message, error });
      fill(this.problem, explain(error), this.history.last ? " The numbers below are the last that arrived." : "");
    }
    this.asking = false;
    if (this.history.last) this.draw(this.history.last);
    void this.clients.refresh();
  }

  /** @param {any} state as of a stream */
  tell(state) {
    this.state = state;
    if (this.root.isConnected) showWorst(this.app, [this]);
  }

  /** @param {any} state */
  draw(state) {
    this.tiles.forEach((tile) => tile.draw(this.history));
    const alerts = alertsOf(state);
    if (this.alerts.textContent !== alerts.join("")) fill(this.alerts, ...alerts.map((text) => h("p", { class: "ops-alert" }, text)));
    if (isHeld(this.tables)) return;
    const scrolled = [...this.tables.querySelectorAll(".ops-scroll")].map((box) => box.scrollLeft);
    fill(this.tables, workers(state, this.history), kinds(state), limits(state), refusals(state, this.history), errors(state));
    [...this.tables.querySelectorAll(".ops-scroll")].forEach((box, at) => { box.scrollLeft = scrolled[at] ?? 0; });
  }
}

/** Return what an operator should look at first. @param {any} state @returns {string[]} */
function alertsOf(state) {
  const found = [];
  const away = state.workers.filter((worker) => !worker.ready).map((worker) => worker.worker);
  if (away.length) found.push(`Not ready: worker ${away.join(", ")}. Events may not reach its streams.`);
  if (state.redis.memory_alarm) found.push("Redis is nearly full: writes are refused.");
  if (state.jobs.parked) found.push(`Jobs that failed too often: ${plain(state.jobs.parked)}. The command "stream-server repair" runs them again.`);
  return found;
}

/** @param {HTMLElement} root @param {any} app */
export function mount(root, app) {
  if (app.can("admin")) return new Operations(root, app);
  fill(root, h("h1", {}, "Operations"), h("section", { class: "card ops-missing" },
    h("p", {}, "This view needs a session with the scope ", h("code", {}, "admin"), ". Yours has not got it."),
    h("p", {}, "On the machine of the server, run this command and open the link that it prints:"),
    h("pre", {}, `stream-server sign-in --user ${app.user.login} --scope "read write stream admin"`)));
}
