/** The agent's environment, and its binary. */

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";

import { AgentNotFoundError, ConfigError } from "./errors.js";
import type { AgentOptions } from "./options.js";

const API_KEY = "PROVIDER_API_KEY";
const BASE_URL = "PROVIDER_BASE_URL";

/**
 * The variables of the agent: those of `env` alone, or else this process's own; then the address
 * and the key of the client, which are in no argument, since arguments can be seen by all users.
 */
export function environment(options: AgentOptions): Record<string, string> {
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.env ?? process.env)) {
    if (value === undefined) continue;
    if (typeof value !== "string" || /[\0=]/.test(name) || value.includes("\0")) {
      throw new ConfigError(`env: ${JSON.stringify(name)} or its value cannot be a variable`);
    }
    found[name] = value;
  }
  if (options.baseUrl) found[BASE_URL] = options.baseUrl;
  if (options.apiKey) found[API_KEY] = options.apiKey;
  return found;
}

/** Replaces the key in texts that are told: errors are logged, and agents may repeat their key. */
export function redactor(env: Readonly<Record<string, string>>): (text: string) => string {
  const key = env[API_KEY]?.trim() ?? "";
  // A shorter one is a placeholder, and may well be a part of common words.
  return key.length < 6 ? (text) => text : (text) => text.replaceAll(key, "[api key]");
}

/**
 * Where the binary is. A bare name is looked for on the PATH of the agent's environment, then on
 * this process's own, which an `env` without PATH does not replace. Throws AgentNotFoundError.
 */
export function binary(name: string, env: Readonly<Record<string, string>>): string {
  if (name.includes("/")) return resolve(name);
  const paths = [env["PATH"], process.env["PATH"]].flatMap((path) => path?.split(delimiter) ?? []);
  for (const directory of paths) {
    // A relative entry would make it depend on where this process happens to be.
    if (!isAbsolute(directory)) continue;
    const candidate = join(directory, name);
    try {
      if (!statSync(candidate).isFile()) continue;
      accessSync(candidate, constants.X_OK);
      return candidate;
    } catch {
      continue;
    }
  }
  throw new AgentNotFoundError(
    `there is no program ${JSON.stringify(name)} on PATH; install the agent, or give its path as agentPathOverride`,
    name,
    "ENOENT",
  );
}
