/**
 * `config` of the client as `--config` overrides: nested objects become dotted paths, values TOML.
 *
 * What TOML cannot say is refused here, before anything is started, with its path.
 */

import { ConfigError } from "./errors.js";

/** Give `path=value` for each value that is no table, in the order of the members. */
export function overrides(config: unknown): string[] {
  if (!isPlainObject(config)) {
    throw new ConfigError("config must be a plain object");
  }
  const found: string[] = [];
  for (const [key, value] of members(config, "config")) {
    flatten(value, keyText(key, "config"), [config], found);
  }
  return found;
}

/** One override for a key that needs no quotes. */
export function override(key: string, value: string | boolean): string {
  return `${key}=${toml(value, key, [])}`;
}

/** Whether it is an object as `{…}` makes one; an array, a Date or a Map is not. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  // An object of another realm (a vm context, a test runner's sandbox) has another Object.prototype.
  return (
    Object.getPrototypeOf(prototype) === null &&
    Object.prototype.toString.call(value) === "[object Object]"
  );
}

function flatten(value: unknown, path: string, within: object[], found: string[]): void {
  if (!isPlainObject(value)) {
    found.push(`${path}=${toml(value, path, within)}`);
    return;
  }
  const deeper = into(value, path, within);
  const inside = members(value, path);
  // An empty table says that the table is there; an empty `config` says nothing.
  if (inside.length === 0) found.push(`${path}={}`);
  for (const [key, member] of inside) {
    flatten(member, `${path}.${keyText(key, path)}`, deeper, found);
  }
}

function members(table: Record<string, unknown>, path: string): [string, unknown][] {
  const given = Object.entries(table).filter(([, value]) => value !== undefined);
  if (given.some(([key]) => key === "")) {
    throw new ConfigError(`${path}: a key must be a non-empty string`);
  }
  return given;
}

function into(value: object, path: string, within: object[]): object[] {
  if (within.includes(value)) throw new ConfigError(`${path}: the value contains itself`);
  return [...within, value];
}

function keyText(key: string, path: string): string {
  if (/^[A-Za-z0-9_-]+$/.test(key)) return key;
  // A literal string has no escapes, which some readers of overrides do not know in keys.
  if (/["\\]/.test(key) && !/['\p{Cc}\p{Cs}]/u.test(key)) return `'${key}'`;
  return basicString(key, path);
}

function toml(value: unknown, path: string, within: object[]): string {
  switch (typeof value) {
    case "string":
      return basicString(value, path);
    case "boolean":
      return String(value);
    case "bigint":
      if (BigInt.asIntN(64, value) !== value) {
        throw new ConfigError(`${path}: ${value} does not fit in 64 bits`);
      }
      return String(value);
    case "number":
      if (!Number.isFinite(value)) throw new ConfigError(`${path}: must be a finite number`);
      if (Object.is(value, -0)) return "-0.0";
      // A whole number beyond these bounds is written as a float: TOML's integers end at 64 bits.
      if (Number.isSafeInteger(value)) return String(value);
      return Number.isInteger(value) ? value.toExponential() : String(value);
    case "object":
      break;
    default:
      throw new ConfigError(`${path}: cannot be ${typeof value}`);
  }
  if (value === null) throw new ConfigError(`${path}: cannot be null`);
  if (Array.isArray(value)) {
    const deeper = into(value, path, within);
    const parts = Array.from(value, (part, at) => toml(part, `${path}[${at}]`, deeper));
    return `[${parts.join(", ")}]`;
  }
  if (!isPlainObject(value)) {
    throw new ConfigError(`${path}: must be a string, number, boolean, array or plain object`);
  }
  const deeper = into(value, path, within);
  const parts = members(value, path).map(
    ([key, member]) => `${keyText(key, path)} = ${toml(member, `${path}.${key}`, deeper)}`,
  );
  return parts.length === 0 ? "{}" : `{${parts.join(", ")}}`;
}

function basicString(text: string, path: string): string {
  if (/\p{Cs}/u.test(text)) throw new ConfigError(`${path}: half of a surrogate pair`);
  // A JSON string is one of TOML, but for this character.
  return JSON.stringify(text).replaceAll("\u007f", "\\u007f");
}
