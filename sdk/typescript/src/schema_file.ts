/** The file in which the agent is given the output schema of a turn. */

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { isPlainObject } from "./config.js";
import { ConfigError } from "./errors.js";
import { guardDirectory } from "./shutdown.js";

/** A schema as JSON text. Throws ConfigError. */
export function schemaText(schema: unknown): string {
  if (!isPlainObject(schema)) throw new ConfigError("outputSchema must be a plain object");
  try {
    return JSON.stringify(schema);
  } catch (error) {
    throw new ConfigError(`outputSchema is no JSON: ${String(error)}`, { cause: error });
  }
}

/** Write it where only this user can read it; give the path, and what removes it again. */
export function writeSchema(text: string): { path: string; remove: () => void } {
  const directory = mkdtempSync(join(tmpdir(), "agent-output-schema-"));
  const letBe = guardDirectory(directory);
  const remove = () => {
    rmSync(directory, { recursive: true, force: true });
    letBe();
  };
  const path = join(directory, "schema.json");
  try {
    writeFileSync(path, text, { mode: 0o600 });
  } catch (error) {
    remove();
    throw error;
  }
  return { path, remove };
}
