// @ts-check
/** One route and its values as a request, and as a line for a shell. Pure; a token is only ever named, never shown. */

/** @typedef {import("./document.js").Route} Route */
/**
 * @typedef {object} Values
 * @property {Record<string, string>} path
 * @property {Record<string, string>} query   empty values are left out
 * @property {Record<string, string>} headers empty values are left out
 * @property {string} body
 */

/** Return the path and query of a request. An empty path parameter stays as `{name}`. @param {Route} route @param {Values} values */
export function target(route, values) {
  const path = route.path.replace(/\{(\w+)\}/g, (whole, name) =>
    values.path[name] ? encodeURIComponent(values.path[name]) : whole);
  const query = new URLSearchParams(given(values.query)).toString();
  return query ? `${path}?${query}` : path;
}

/** Return the entries that have a value. @param {Record<string, string>} values @returns {[string, string][]} */
export function given(values) {
  return Object.entries(values).filter(([, value]) => value !== "");
}

/** Return the request as a curl command. `$TOKEN` stands for the token. @param {Route} route @param {Values} values @param {string} origin */
export function curl(route, values, origin) {
  const parts = [`curl ${route.streams ? "-sSN" : "-sS"}${route.method === "GET" ? "" : ` -X ${route.method}`} ${quoted(origin + target(route, values))}`];
  if (route.access !== "open") parts.push('-H "Authorization: Bearer $TOKEN"');
  for (const [name, value] of given(values.headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (route.bodies.length && values.body.trim()) parts.push("-H 'Content-Type: application/json'", `-d ${quoted(values.body)}`);
  return parts.join(" \\\n  ");
}

/** Quote a text for a POSIX shell: between apostrophes nothing is special but the apostrophe. @param {string} text */
export function quoted(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
