// @ts-check
/** What the answers of the last hour say: sums over the workers, and rates from the differences of counters. What was before the first answer, the server tells. Pure. */

/** @typedef {{time: number, values: Record<string, number | null>}} Sample  time in ms since 1970; null if unknown */

export const HOUR_MS = 3_600_000;
/** Names of values, as the server's record of the hour has them, and factors. @type {[string, string, number?][]} */
const RECORDED = [
  ["streams", "streams"], ["published", "events_published"], ["delivered", "events_delivered"], ["requests", "requests"], ["refusals", "refusals"], ["cpu", "cpu_percent"],
  ["lag", "lag_ms"], ["hold", "loop_blocked_seconds", 1000], ["memory", "memory_bytes"], ["redis", "redis_memory_bytes"], ["log", "log_entries"], ["jobs", "jobs"],
];

export class History {
  /** @type {Sample[]} */ samples = [];
  /** @type {any} the last answer */ last = null;
  /** Rates of each worker by its number, in units a second; none before the second answer. @type {Map<number, Record<string, number>>} */ rates = new Map();
  /** Refusals a second by code. @type {Record<string, number>} */ refusals = {};

  /** Take an answer of the server. @param {any} state */
  add(state) {
    const time = Date.parse(state.at);
    if (this.last && time <= Date.parse(this.last.at)) return;
    this.rates = new Map(state.workers.map((worker) => [worker.worker, this.ratesOf(worker, time, counters)]));
    this.refusals = sums(state.workers.map((worker) => this.ratesOf(worker, time, (one) => one.refusals)));
    this.samples.push({ time, values: this.values(state) });
    while (this.samples[0].time < time - HOUR_MS) this.samples.shift();
    this.last = state;
  }

  /** Put what the server recorded in the place of what was asked until then. @param {any} hour the answer of `/v1/admin/operations/history` */
  fill(hour) {
    const times = hour.at.map((/** @type {string} */ at) => Date.parse(at));
    const recorded = times.map((/** @type {number} */ time, /** @type {number} */ at) =>
      ({ time, values: Object.fromEntries(RECORDED.map(([name, column, factor = 1]) => [name, hour[column][at] * factor])) }));
    this.samples = [...recorded, ...this.samples.filter(({ time }) => !times.length || time > times.at(-1))];
  }

  /** Return how fast counters rose since the same process was in the last answer. One that was restarted counts from zero, so it has none. @param {any} worker @param {number} time @param {(worker: any) => Record<string, number>} read */
  ratesOf(worker, time, read) {
    const last = this.last?.workers.find((each) => ["worker", "pid", "started"].every((name) => each[name] === worker[name]));
    if (!last || worker.pid === null) return {};
    const [before, seconds] = [read(last), (time - Date.parse(this.last.at)) / 1000];
    return Object.fromEntries(Object.entries(read(worker)).map(([name, count]) => [name, Math.max(0, count - (before[name] ?? 0)) / seconds]));
  }

  /** @param {any} state @returns {Sample["values"]} */
  values({ workers, redis, log, jobs }) {
    const rate = (/** @type {string} */ name, /** @type {(rates: any[]) => number} */ join) => {
      const known = [...this.rates.values()].map((rates) => rates[name]).filter((rate) => rate !== undefined);
      return known.length ? join(known) : null;
    };
    return {
      streams: sum(workers.map(streamCount)),
      published: rate("events_published", (rates) => Math.max(...rates)), // each worker is offered all entries of the log
      delivered: rate("events_delivered", sum),
      requests: rate("requests", sum),
      refusals: this.last ? sum(Object.values(this.refusals)) : null,
      cpu: rate("cpu_percent", sum),
      lag: Math.max(0, ...workers.map((worker) => worker.lag_ms)),
      hold: Math.max(0, ...workers.map((worker) => worker.loop_blocked_seconds * 1000)),
      memory: sum(workers.map((worker) => worker.memory_bytes)),
      redis: redis.memory_bytes,
      log: log.entries,
      jobs: jobs.due + jobs.parked,
    };
  }
}

const counters = (/** @type {any} */ { events_published, events_delivered, requests, cpu_seconds }) => ({ events_published, events_delivered, requests, cpu_percent: 100 * cpu_seconds });

/** @param {number[]} values of which those of a worker that does not answer are null, and count as 0 */
export const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Sums records member by member. @param {Record<string, number>[]} records @returns {Record<string, number>} */
export const sums = (records) => Object.fromEntries([...new Set(records.flatMap(Object.keys))].map((name) => [name, sum(records.map((one) => one[name] ?? 0))]));

/** Return the open streams and waiting polls of a worker. @param {any} worker */
export const streamCount = (worker) => sum(Object.values(worker.streams));
