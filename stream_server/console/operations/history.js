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
  constructor() {
    /** @type {Sample[]} */
    this.samples = [];
    /** @type {any} */
    this.last = null;
    /** Rates of each worker by its number, in units a second; null before the second answer. @type {Map<number, Record<string, number | null>>} */
    this.rates = new Map();
    /** Refusals a second by code. @type {Record<string, number>} */
    this.refusals = {};
  }

  /** Take an answer of the server. @param {any} state */
  add(state) {
    const time = Date.parse(state.at);
    if (this.last && time <= Date.parse(this.last.at)) return;
    const seconds = this.last ? (time - Date.parse(this.last.at)) / 1000 : 0;
    this.rates = new Map(state.workers.map((worker) => [worker.worker, workerRates(this.before(worker), worker, seconds)]));
    this.refusals = this.refusalRates(state, seconds);
    this.samples.push({ time, values: valuesOf(state, this.rates, this.refusals, seconds > 0) });
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
    if (!seconds) return rates;
    for (const worker of state.workers) {
      const before = this.before(worker);
      for (const [code, count] of Object.entries(worker.refusals)) {
        if (before) rates[code] = (rates[code] ?? 0) + Math.max(0, count - (before.refusals[code] ?? 0)) / seconds;
      }
    }
    return rates;
  }
}

/** @param {any} before @param {any} now @param {number} seconds @returns {Record<string, number | null>} */
function workerRates(before, now, seconds) {
  const rate = (/** @type {string} */ name) => (before && seconds ? Math.max(0, now[name] - before[name]) / seconds : null);
  const cpu = rate("cpu_seconds");
  return { ...Object.fromEntries(COUNTERS.map((name) => [name, rate(name)])), cpu_percent: cpu === null ? null : cpu * 100 };
}

/** @param {any} state @param {Map<number, Record<string, number | null>>} rates @param {Record<string, number>} refusals @param {boolean} hasRates */
function valuesOf(state, rates, refusals, hasRates) {
  const { workers, redis, log, jobs } = state;
  const total = (/** @type {string} */ name) => sum([...rates.values()].map((rate) => rate[name]));
  return {
    streams: sum(workers.map((worker) => streamCount(worker))),
    published: newest(rates, "events_published"),
    delivered: total("events_delivered"),
    requests: total("requests"),
    refusals: hasRates ? sum(Object.values(refusals)) : null,
    cpu: total("cpu_percent"),
    lag: Math.max(0, ...workers.map((worker) => worker.lag_ms)),
    hold: Math.max(0, ...workers.map((worker) => worker.loop_blocked_seconds * 1000)),
    memory: sum(workers.map((worker) => worker.memory_bytes)),
    redis: redis.memory_bytes,
    log: log.entries,
    jobs: jobs.due + jobs.parked,
  };
}

/** Each worker is offered all entries of the log, so the rate of the log is the highest of theirs. @param {Map<number, Record<string, number | null>>} rates @param {string} name */
function newest(rates, name) {
  const known = [...rates.values()].map((rate) => rate[name]).filter((rate) => rate !== null);
  return known.length ? Math.max(.../** @type {number[]} */ (known)) : null;
}

/** @param {(number | null)[]} values */
function sum(values) {
  const known = values.filter((value) => value !== null);
  return known.length || !values.length ? known.reduce((total, value) => total + /** @type {number} */ (value), 0) : null;
}

/** Return the open streams and waiting polls of a worker. @param {any} worker */
export function streamCount(worker) {
  return Object.values(worker.streams).reduce((total, count) => total + count, 0);
}
