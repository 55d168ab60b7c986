// @ts-check
/** Numbers as an operator reads them. Pure. */

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];

/** @param {number | null} value */
export function plain(value) {
  if (value === null) return "–";
  if (value >= 1000) return Math.round(value).toLocaleString();
  return String(value >= 100 || Number.isInteger(value) ? Math.round(value) : Number(value.toPrecision(2)));
}

/** @param {number | null} value */
export function rate(value) {
  return value === null ? "–" : `${plain(value)}/s`;
}

/** @param {number | null} value */
export function bytes(value) {
  if (value === null) return "–";
  const step = value < 1 ? 0 : Math.min(BYTES.length - 1, Math.floor(Math.log2(value) / 10));
  const scaled = value / 1024 ** step;
  return `${scaled >= 100 || step === 0 ? Math.round(scaled) : scaled.toFixed(1)} ${BYTES[step]}`;
}

/** @param {number | null} value */
export function milliseconds(value) {
  if (value === null) return "–";
  return value >= 10_000 ? `${plain(value / 1000)} s` : `${plain(value)} ms`;
}

/** @param {number | null} value */
export function share(value) {
  return value === null ? "–" : `${plain(value)} %`;
}

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** Return how long ago a time of the API was. @param {string} iso @param {string} now */
export function since(iso, now) {
  return duration(Math.max(0, (Date.parse(now) - Date.parse(iso)) / 1000));
}
