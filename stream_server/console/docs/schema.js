// @ts-check
/** A JSON schema in words, and an example of it. Pure. */

import { follow, refName } from "./document.js";

/** Example values by member name, where the schema alone would give a dull one. */
const EXAMPLES = Object.freeze(/** @type {Record<string, unknown>} */ ({
  login: "ada", name: "Ada", email: "ada@example.org", password: "a good password", bio: "Bread, trains and programs.",
  new_password: "a better password", message: "good morning, #redis", rule: "coffee -is:reply", tag: "drinks",
  url: "https://…", display_url: "…", expanded_url: "https://…", lang: "en",
  lon: 13.4, lat: 52.5, country: "DE", description: "bread and more", text: "redis", note: "the same link ten times",
  cursor: "1795378516605-0.5", token: "eyJhbGciOiJIUzI1NiIsInR5…", token_type: "Bearer", expires_in: 3600,
  refresh_token: "374011150946304.Xk2Wq…", code: "invalid_parameter", param: "message", indices: [0, 5], minutes: 5,
}));
const MAX_DEPTH = 5;

/** Return the schema without the alternative `null`. @param {any} schema @returns {{schema: any, nullable: boolean}} */
export function withoutNull(schema) {
  if (!Array.isArray(schema.anyOf)) return { schema, nullable: false };
  const options = schema.anyOf.filter((option) => option.type !== "null");
  const nullable = options.length < schema.anyOf.length;
  return { schema: options.length === 1 ? { ...schema, anyOf: undefined, ...options[0] } : schema, nullable };
}

/** Return a schema's type and limits in words, such as `list of Status, at most 4`. @param {any} schema @returns {string} */
export function typeWords(schema) {
  const { schema: own, nullable } = withoutNull(schema);
  return plainWords(own) + (nullable ? " or null" : "");
}

/** @param {any} schema @returns {string} */
function plainWords(schema) {
  if (refName(schema)) return refName(schema);
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  const options = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(options)) return options.map(typeWords).join(" or ");
  if (Array.isArray(schema.prefixItems)) return `[${schema.prefixItems.map(typeWords).join(", ")}]`;
  if (schema.type === "array") return `list of ${typeWords(schema.items ?? {})}${limits(schema.minItems, schema.maxItems)}`;
  if (Array.isArray(schema.type)) return schema.type.join(" or ");
  if (schema.type === "string") return stringWords(schema);
  if (schema.type === "number" || schema.type === "integer") return schema.type + limits(schema.minimum, schema.maximum);
  return schema.type ?? "any JSON";
}

function stringWords(schema) {
  if (schema.format === "date-time") return "time";
  if (/^\^(\()?\[0-9\]/.test(schema.pattern ?? "")) return "id";
  return `string${limits(schema.minLength, schema.maxLength, " code points")}`;
}

/** @param {number | undefined} least @param {number | undefined} most @param {string} [unit] */
function limits(least, most, unit = "") {
  if (least !== undefined && most !== undefined) return `, ${least} to ${most}${unit}`;
  if (most !== undefined) return `, at most ${most}${unit}`;
  return least === undefined ? "" : `, at least ${least}${unit}`;
}

/** Return the schema of the object, or of the objects of which it is one, beneath a member: itself, its reference, or its list's items. @param {any} source @param {any} schema @returns {any} */
export function innerObject(source, schema) {
  const own = follow(source, withoutNull(schema).schema);
  if (own.properties || own.oneOf) return own;
  return own.type === "array" && own.items ? innerObject(source, own.items) : null;
}

/** Return an example of a schema. @param {any} source @param {any} schema @param {string} [name] @param {number} [depth] @returns {any} */
export function example(source, schema, name = "", depth = 0) {
  const own = withoutNull(schema).schema;
  const target = follow(source, own);
  if (target.properties) return depth > MAX_DEPTH ? {} : objectExample(source, target, depth);
  if (target.oneOf) return example(source, target.oneOf[0], name, depth);
  if (name in EXAMPLES) return EXAMPLES[name];
  if (target.prefixItems) return target.prefixItems.map((part) => example(source, part, name, depth + 1));
  if (target.type !== "array") return leafExample(target);
  return depth > 3 ? [] : [example(source, target.items ?? {}, name, depth + 1)];
}

/** @param {any} source @param {any} schema @param {number} depth */
function objectExample(source, schema, depth) {
  const members = Object.entries(schema.properties).filter(([name]) => depth < 3 || isRequired(schema, name));
  return Object.fromEntries(members.map(([name, part]) => [name, example(source, part, name, depth + 1)]));
}

/** @param {any} schema @returns {unknown} */
function leafExample(schema) {
  if (schema.default !== undefined && schema.default !== null) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (schema.format === "date-time") return "2026-11-22T20:15:15.473Z";
  if (stringWords(schema) === "id") return "374011150131200";
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  return { string: "…", integer: schema.minimum || 1, number: 1.5, boolean: true, object: {}, array: [] }[/** @type {string} */ (type)] ?? null;
}

/** @param {any} schema @param {string} name */
export const isRequired = (schema, name) => (schema.required ?? []).includes(name);

/** Return the first body to send: its required members, or else the first one. @param {any} source @param {any} schema @returns {any} */
export function startingBody(source, schema) {
  const own = follow(source, schema);
  const names = Object.keys(own.properties ?? {});
  const wanted = names.filter((name) => isRequired(own, name));
  const chosen = wanted.length ? wanted : names.slice(0, 1);
  return Object.fromEntries(chosen.map((name) => [name, example(source, own.properties[name], name)]));
}
