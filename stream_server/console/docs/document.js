// @ts-check
/** The OpenAPI document as a list of routes that the page can draw. Pure: JSON in, plain objects out. */

/**
 * @typedef {object} Route
 * @property {string} id           the operationId, which is also the route's hash
 * @property {string} method       in capitals
 * @property {string} path
 * @property {string} tag
 * @property {string} summary
 * @property {string} access       `open`, `token`, or the name of a scope
 * @property {boolean} ticket      whether a ticket in the query may stand for the token
 * @property {any[]} parameters   OpenAPI parameter objects
 * @property {{media: string, schema: any}[]} bodies
 * @property {boolean} bodyRequired
 * @property {{status: string, description: string, media: string, schema: any, headers: string[]}[]} answers
 * @property {{status: string, codes: string[]}[]} errors
 * @property {boolean} streams     whether the answer lasts as long as the connection
 * @property {string} words        what the search looks through, in small letters
 */

const METHODS = ["get", "post", "put", "patch", "delete"];
const SUCCESS = /^2/;
const CODE = /`([a-z_]+)`/g;
const STREAM_TYPE = "text/event-stream";

/** Return the routes of an OpenAPI document, in its order. @param {any} source @returns {Route[]} */
export function routesOf(source) {
  return Object.entries(source.paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => method in methods).map((method) => routeOf(source, path, method, methods[method])));
}

/** @param {any} source @param {string} path @param {string} method @param {any} operation @returns {Route} */
function routeOf(source, path, method, operation) {
  const answers = answersOf(source, operation.responses);
  const tag = operation.tags[0];
  return {
    id: operation.operationId,
    method: method.toUpperCase(),
    path,
    tag,
    summary: operation.summary,
    ...accessOf(operation.security ?? []),
    parameters: operation.parameters ?? [],
    bodies: contents(operation.requestBody?.content),
    bodyRequired: operation.requestBody?.required ?? false,
    answers,
    errors: errorsOf(source, operation.responses),
    streams: answers.some((answer) => answer.media.includes(STREAM_TYPE)),
    words: `${method} ${path} ${tag} ${operation.operationId} ${operation.summary}`.toLowerCase(),
  };
}

/** @param {any[]} security @returns {{access: string, ticket: boolean}} */
function accessOf(security) {
  const bearer = security.find((way) => "bearer" in way);
  const access = bearer === undefined ? "open" : (bearer.bearer[0] ?? "token");
  return { access, ticket: security.some((way) => "ticket" in way) };
}

/** Return the bodies by their media types. That of items one behind another has the schema of an item. @param {any} content @returns {{media: string, schema: any}[]} */
function contents(content) {
  return Object.entries(content ?? {}).map(([media, part]) => ({ media, schema: part.schema ?? part.itemSchema }));
}

function answersOf(source, responses) {
  const found = Object.entries(responses).filter(([status]) => SUCCESS.test(status));
  return found.map(([status, answer]) => {
    const parts = contents(follow(source, answer).content);
    return {
      status,
      description: follow(source, answer).description,
      media: parts.map((part) => part.media).join(" or "),
      schema: parts.at(-1)?.schema ?? null, // of a stream, that of a line: it says more than that of a server-sent event
      headers: Object.keys(answer.headers ?? {}),
    };
  });
}

/** Return the error codes of answers by their status. @param {any} source @param {Record<string, any>} responses */
export function errorsOf(source, responses) {
  const found = Object.entries(responses).filter(([status]) => !SUCCESS.test(status));
  return found.map(([status, answer]) => ({ status, codes: [...follow(source, answer).description.matchAll(CODE)].map((match) => match[1]) }));
}

/** Return what a `$ref` stands for, or the object itself. @param {any} source @param {any} object @returns {any} */
export function follow(source, object) {
  if (typeof object?.$ref !== "string") return object;
  return object.$ref.split("/").slice(1).reduce((/** @type {any} */ part, name) => part[name], source);
}

/** Return the name of the object to which a `$ref` points; empty if there is none. @param {any} object */
export function refName(object) {
  return typeof object?.$ref === "string" ? object.$ref.slice(object.$ref.lastIndexOf("/") + 1) : "";
}

/** Return the routes that have all words of a search. @param {Route[]} routes @param {string} search */
export function search(routes, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return routes.filter((route) => words.every((word) => route.words.includes(word)));
}
