// @ts-check
/** What the answers of the last hour say: sums over the workers, and rates from the differences of counters. What was before the first answer, the server tells. Pure. */

/** @typedef {{time: number, values: Record<string, number | null>}} Sample  time in ms since 1970; null if unknown */

export const HOUR_MS = 3_600_000;
const COUNTERS = ["events_published", "events_delivered", "requests"];
/** Names of values, as the server's record of the hour has them, and factors. @type {[string, string, number?][]} */
const RECORDED = [
  ["streams", "streams"], ["published", "events_published"], ["delivered", "events_delivered"], ["requests", "requests"], ["refusals", "refusals"], ["cpu", "cpu_percent"],
  ["lag", "lag_ms"], ["hold", "loop_blocked_seconds", 1000], ["memory", "memory_bytes"], ["redis", "redis_memory_bytes"], ["log", "log_entries"], ["jobs", "jobs"],
];

export class History {
  /** @type {Sample[]} */ samples = [];
  /** @type {any} the last answer */ last = null;
  /** Rates of each worker by its number, in units a second; null before the second answer. @type {Map<number, Record<string, number | null>>} */ rates = new Map();
  /** Refusals a second by code. @type {Record<string, number>} */ refusals = {};

  /** Take an answer of the server. @param {any} state */
  add(state) {
    const time = Date.parse(state.at);
    if (this.last && time <= Date.parse(this.last.at)) return;
    const seconds = this.last ? (time - Date.parse(this.last.at)) / 1000 : 0;
    this.rates = new Map(state.workers.map((worker) => [worker.worker, workerRates(this.before(worker), worker, seconds)]));
    this.refusals = this.refusalRates(state, seconds);
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

  /** Return the same process in the last answer. One that was restarted counts from zero, so it has no predecessor. @param {any} worker @returns {any} */
  before(worker) {
    const found = this.last?.workers.find((each) => each.worker === worker.worker);
    return found && worker.pid !== null && found.pid === worker.pid && found.started === worker.started ? found : null;
  }

  /** @param {any} state @param {number} seconds @returns {Record<string, number>} */
  refusalRates(state, seconds) {
    const rates = /** @type {Record<string, number>} */ ({});
    for (const worker of seconds ? state.workers : []) {
      const before = this.before(worker)?.refusals;
      if (before) for (const [code, count] of Object.entries(worker.refusals)) rates[code] = (rates[code] ?? 0) + Math.max(0, count - (before[code] ?? 0)) / seconds;
    }
    return rates;
  }

  /** @param {any} state @returns {Sample["values"]} */
  values({ workers, redis, log, jobs }) {
    const rate = (/** @type {string} */ name, /** @type {(rates: any[]) => number} */ join) => {
      const known = [...this.rates.values()].map((rates) => rates[name]).filter((rate) => rate !== null);
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

/** @param {any} before @param {any} now @param {number} seconds @returns {Record<string, number | null>} */
function workerRates(before, now, seconds) {
  const rate = (/** @type {string} */ name) => (before && seconds ? Math.max(0, now[name] - before[name]) / seconds : null);
  const cpu = rate("cpu_seconds");
  return { ...Object.fromEntries(COUNTERS.map((name) => [name, rate(name)])), cpu_percent: cpu === null ? null : cpu * 100 };
}

/** @param {number[]} values of which those of a worker that does not answer are null, and count as 0 */
export const sum = (values) => values.reduce((total, value) => total + value, 0);

/** Return the open streams and waiting polls of a worker. @param {any} worker */
export const streamCount = (worker) => sum(Object.values(worker.streams));
