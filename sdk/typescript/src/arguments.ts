/**
 * The command line of one turn.
 *
 * The prompt goes to the standard input and the key into the environment: neither is seen in a list
 * of processes. Options of the thread come after `config`, so that they win over it.
 */

import { override } from "./config.js";
import { ConfigError } from "./errors.js";
import type {
  ApprovalMode,
  ModelReasoningEffort,
  SandboxMode,
  ThreadOptions,
  WebSearchMode,
} from "./options.js";

const SANDBOX_MODES: readonly SandboxMode[] = [
  "read-only",
  "workspace-write",
  "danger-full-access",
];
const APPROVAL_MODES: readonly ApprovalMode[] = ["never", "on-request", "on-failure", "untrusted"];
const EFFORTS: readonly ModelReasoningEffort[] = ["minimal", "low", "medium", "high", "xhigh"];
const SEARCH_MODES: readonly WebSearchMode[] = ["disabled", "cached", "live"];

/** What one turn adds to the options of its thread. */
export interface TurnArguments {
  threadId: string | null;
  images: readonly string[];
  schemaFile: string | null;
}

/** The options of a thread, checked, as arguments. Throws ConfigError. */
export function threadArguments(given: ThreadOptions | undefined): string[] {
  const options: ThreadOptions = given ?? {};
  if (typeof options !== "object" || Array.isArray(options))
    throw new ConfigError("the options of a thread are an object");
  const found: string[] = [];
  const model = word(options.model, "model");
  if (model?.startsWith("-")) throw new ConfigError("model: must not begin with '-'");
  if (model !== undefined) found.push("--model", model);
  const sandbox = oneOf(SANDBOX_MODES, options.sandboxMode, "sandboxMode");
  if (sandbox !== undefined) found.push("--sandbox", sandbox);
  const directory = word(options.workingDirectory, "workingDirectory");
  if (directory !== undefined) found.push("--cd", notAnOption(directory));
  for (const extra of list(options.additionalDirectories, "additionalDirectories")) {
    found.push("--add-dir", notAnOption(extra));
  }
  if (flag(options.skipGitRepoCheck, "skipGitRepoCheck")) found.push("--skip-git-repo-check");
  return found;
}

/** The options of a thread that the agent takes as overrides of its configuration. */
export function threadOverrides(given: ThreadOptions | undefined): string[] {
  const options: ThreadOptions = given ?? {};
  const found: string[] = [];
  const add = (key: string, value: string | boolean | undefined) => {
    if (value !== undefined) found.push("--config", override(key, value));
  };
  add(
    "model_reasoning_effort",
    oneOf(EFFORTS, options.modelReasoningEffort, "modelReasoningEffort"),
  );
  add(
    "sandbox_workspace_write.network_access",
    flag(options.networkAccessEnabled, "networkAccessEnabled"),
  );
  add("web_search", oneOf(SEARCH_MODES, options.webSearchMode, "webSearchMode"));
  add("approval_policy", oneOf(APPROVAL_MODES, options.approvalPolicy, "approvalPolicy"));
  return found;
}

/** What stands after the options of the thread. */
export function turnArguments(turn: TurnArguments): { options: string[]; rest: string[] } {
  return {
    options: turn.schemaFile === null ? [] : ["--output-schema", turn.schemaFile],
    rest: [
      ...(turn.threadId === null ? [] : ["resume", turn.threadId]),
      ...turn.images.flatMap((path) => ["--image", notAnOption(path)]),
    ],
  };
}

/** Whether an id can be given to `resume`: no option, no empty word. */
export function isThreadId(id: unknown): id is string {
  return typeof id === "string" && id.trim() !== "" && !id.startsWith("-") && !id.includes("\0");
}

/** A path that an option cannot be mistaken for. */
function notAnOption(path: string): string {
  return path.startsWith("-") ? `./${path}` : path;
}

/** One of these words, or undefined. Throws ConfigError, with the word that was meant. */
function oneOf(words: readonly string[], value: unknown, name: string): string | undefined {
  const found = word(value, name);
  if (found === undefined || words.includes(found)) return found;
  const letters = (text: string) => text.toLowerCase().replace(/[^a-z]/g, "");
  const meant = words.find((one) => letters(one) === letters(found));
  const advice = meant === undefined ? "" : `; did you mean "${meant}"?`;
  const shown = JSON.stringify(found.slice(0, 80));
  throw new ConfigError(`${name}: must be one of ${words.join(", ")}, not ${shown}${advice}`);
}

/** A string that says something, or undefined. */
function word(value: unknown, name: string): string | undefined {
  if (value === undefined || value === "") return undefined;
  if (typeof value !== "string") throw new ConfigError(`${name}: must be a string`);
  if (value.includes("\0")) throw new ConfigError(`${name}: must not contain a NUL character`);
  return value;
}

function flag(value: unknown, name: string): boolean | undefined {
  if (value === undefined || typeof value === "boolean") return value;
  throw new ConfigError(`${name}: must be true or false`);
}

function list(value: unknown, name: string): string[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new ConfigError(`${name}: must be an array of strings`);
  return (value as unknown[]).map((entry, at) => {
    const path = word(entry, `${name}[${at}]`);
    if (path === undefined) throw new ConfigError(`${name}[${at}]: must not be empty`);
    return path;
  });
}
