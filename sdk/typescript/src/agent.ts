/** The client: how the agent is started, for all threads. */

import { isThreadId } from "./arguments.js";
import { overrides } from "./config.js";
import { binary, environment, redactor } from "./environment.js";
import { ConfigError } from "./errors.js";
import type { AgentOptions, ThreadOptions } from "./options.js";
import { Thread, type Launch } from "./thread.js";

/** Starts threads, and resumes them. It holds no process: each turn starts one of its own. */
export class Agent {
  readonly #launch: Launch;

  /** Throws ConfigError for options that cannot be used. */
  constructor(options?: AgentOptions) {
    // A copy: what the caller does to his object later changes nothing.
    const given: AgentOptions = { ...options };
    check(options ?? {});
    const config = given.config === undefined ? [] : overrides(given.config);
    // Asked at each turn: a variable that is set later counts as well.
    const env = () => environment(given);
    env();
    this.#launch = {
      arguments: [
        "exec",
        "--experimental-json",
        ...config.flatMap((setting) => ["--config", setting]),
      ],
      env,
      binary: () => binary(given.agentPathOverride || "agent", env()),
      redact: (text) => redactor(env())(text),
    };
  }

  /** A new thread; the agent makes it in its first turn. Throws ConfigError. */
  startThread(options?: ThreadOptions): Thread {
    return new Thread(this.#launch, options, null);
  }

  /** A thread of an earlier time, by the id that `thread.id` gave. Throws ConfigError. */
  resumeThread(id: string, options?: ThreadOptions): Thread {
    if (!isThreadId(id)) {
      throw new ConfigError(
        "the id of a thread is a non-empty string that does not begin with '-'",
      );
    }
    return new Thread(this.#launch, options, id);
  }
}

function check(given: AgentOptions): void {
  if (!isObject(given)) throw new ConfigError("the options of Agent are an object");
  for (const name of ["baseUrl", "apiKey", "agentPathOverride"] as const) {
    const value: unknown = given[name];
    if (value !== undefined && (typeof value !== "string" || value.includes("\0"))) {
      throw new ConfigError(`${name}: must be a string without NUL`);
    }
  }
  if (given.env !== undefined && !isObject(given.env)) {
    throw new ConfigError("env: must be an object of strings");
  }
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
