/**
 * What `run`, `runStreamed` and the iteration of events reject with.
 *
 *     AgentError
 *     ├── ConfigError          an argument or an option that cannot be used; nothing was started
 *     ├── AgentNotFoundError   there is no binary to start
 *     ├── ProcessError         the agent ended without an end of the turn
 *     ├── ProtocolError        the agent wrote something that is no event
 *     ├── TurnFailedError      the turn failed, or a fatal error ended it
 *     └── AbortError           the signal of the turn was aborted
 *
 * The API key is taken out of every text before it gets here.
 */

import type { ThreadItem } from "./items.js";

/** How a process ended, and the end of what it wrote on its standard error. */
export interface ExitDetails {
  /** Null, where a signal ended it. */
  exitCode: number | null;
  /** Its name, for example `SIGKILL`. */
  signal: string | null;
  stderr: string;
}

/** The base of all errors of this package. */
export class AgentError extends Error {
  override name = "AgentError";
}

/** An argument or an option that cannot be used. */
export class ConfigError extends AgentError {
  override name = "ConfigError";
}

/** The agent's binary is not there, or cannot be executed. */
export class AgentNotFoundError extends AgentError {
  override name = "AgentNotFoundError";
  readonly path: string;
  /** `ENOENT` or `EACCES`. */
  readonly code: string;

  constructor(message: string, path: string, code: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.path = path;
    this.code = code;
  }
}

/** The agent ended, or could not be started, without a word on the end of the turn. */
export class ProcessError extends AgentError implements ExitDetails {
  override name = "ProcessError";
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stderr: string;

  constructor(message: string, exit: ExitDetails, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.exitCode = exit.exitCode;
    this.signal = exit.signal;
    this.stderr = exit.stderr;
  }
}

/** The agent wrote a line that is no event. */
export class ProtocolError extends AgentError {
  override name = "ProtocolError";
  /** The line, cut where it is long. */
  readonly line: string;

  constructor(message: string, line: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.line = line;
  }
}

/** The turn failed: the message is that of `turn.failed`, or of the fatal `error` event. */
export class TurnFailedError extends AgentError {
  override name = "TurnFailedError";
  readonly threadId: string | null;
  /** The items that were completed before. */
  readonly items: ThreadItem[];
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stderr: string;

  constructor(message: string, threadId: string | null, items: ThreadItem[], exit: ExitDetails) {
    super(message);
    this.threadId = threadId;
    this.items = items;
    this.exitCode = exit.exitCode;
    this.signal = exit.signal;
    this.stderr = exit.stderr;
  }
}

/** The turn was cancelled by its signal, whose reason is the `cause`. */
export class AbortError extends AgentError {
  override name = "AbortError";
  readonly code = "ABORT_ERR";

  constructor(reason: unknown) {
    super("The turn was aborted", { cause: reason });
  }
}
