// @ts-check
/** The OpenAPI document as a list of routes that the page can draw. Pure: JSON in, plain objects out. */

/** @typedef {ReturnType<typeof routeOf>} Route */

const CODE = /`([a-z_]+)`/g;
const STREAM_TYPE = "text/event-stream";

/** Return the routes of an OpenAPI document, in its order. @param {any} source @returns {Route[]} */
export function routesOf(source) {
  return Object.entries(source.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => routeOf(source, path, method, operation)));
}

/** @param {any} source @param {string} path @param {string} method @param {any} operation */
function routeOf(source, path, method, operation) {
  const { operationId: id, tags: [tag], summary, description, security = [], parameters = [], requestBody, responses } = operation;
  const bearer = security.find((way) => "bearer" in way);
  const answers = answersOf(source, responses);
  return {
    id: /** @type {string} */ (id), // which is also the route's hash
    method: method.toUpperCase(),
    path,
    tag,
    summary,
    access: /** @type {string} the name of a scope, or */ (bearer === undefined ? "open" : (bearer.bearer[0] ?? "token")),
    ticket: security.some((way) => "ticket" in way), // in the query may stand for the token
    parameters: /** @type {any[]} of OpenAPI */ (parameters),
    bodies: contents(requestBody?.content),
    bodyRequired: requestBody?.required ?? false,
    answers,
    errors: errorsOf(source, responses),
    streams: answers.some((answer) => answer.media.includes(STREAM_TYPE)), // the answer lasts as long as the connection
    words: wordsOf([method, path, tag, id, summary, description, ...parameters.flatMap(({ name, description }) => [name, description]), ...Object.values(requestBody?.content ?? {}).flatMap((part) => membersOf(source, part.schema))].join(" ")),
  };
}

/** Return the bodies by their media types. That of items one behind another has the schema of an item. @param {any} content @returns {{media: string, schema: any}[]} */
const contents = (content) => Object.entries(content ?? {}).map(([media, part]) => ({ media, schema: part.schema ?? part.itemSchema }));

function answersOf(source, responses) {
  const found = Object.entries(responses).filter(([status]) => status.startsWith("2"));
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
  const found = Object.entries(responses).filter(([status]) => !status.startsWith("2"));
  return found.map(([status, answer]) => ({ status, codes: [...follow(source, answer).description.matchAll(CODE)].map((match) => match[1]) }));
}

/** Return what a `$ref` stands for, or the object itself. @param {any} source @param {any} object @returns {any} */
export function follow(source, object) {
  if (typeof object?.$ref !== "string") return object;
  return object.$ref.split("/").slice(1).reduce((/** @type {any} */ part, name) => part[name], source);
}

/** Return the name of the object to which a `$ref` points; empty if there is none. @param {any} object */
export const refName = (object) => typeof object?.$ref === "string" ? object.$ref.slice(object.$ref.lastIndexOf("/") + 1) : "";

/** Return the words of a text with a blank before each: so a search finds them by their beginnings. @param {string} text */
const wordsOf = (text) => ` ${text.toLowerCase()}`.replace(/[^\p{L}\p{N}]+/gu, " ");

/** Return the names and descriptions of the members of a body, and of those within them. @param {any} source @param {any} schema @returns {string[]} */
function membersOf(source, schema) {
  const { description, properties = {}, items, anyOf = [], oneOf = [] } = follow(source, schema) ?? {};
  const inner = [...Object.values(properties), ...anyOf, ...oneOf, ...(items ? [items] : [])];
  return [description, ...Object.keys(properties), ...inner.flatMap((one) => membersOf(source, one))];
}

/** Return the routes that have all words of a search. @param {Route[]} routes @param {string} search */
export function search(routes, search) {
  const words = search.split(/\s+/).map(wordsOf).filter((word) => word.trim());
  return routes.filter((route) => words.every((word) => route.words.includes(word.trimEnd())));
}
