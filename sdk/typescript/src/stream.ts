/**
 * The events of one turn: an iterator that starts an agent at its first step and has ended it, with
 * all that it started, when the iteration is over, however it came to be over.
 */

import { AbortError, AgentError, ProcessError, ProtocolError, type ExitDetails } from "./errors.js";
import { Child, type Command } from "./child.js";
import type { ThreadEvent } from "./events.js";
import { writeSchema } from "./schema_file.js";
import { harmless } from "./text.js";

/** What a thread tells the stream of one of its turns. */
export interface Turn {
  /** Called at the first step; may throw. `schemaFile`: the path, where there is a schema. */
  command(schemaFile: string | null): Command;
  /** Called for each event, before it is given; may throw. */
  seen(event: ThreadEvent): void;
  /** Called once, at the end of the iteration. */
  over(): void;
  /** Takes secrets out of a text. */
  redact(text: string): string;
  schema: string | null;
  signal: AbortSignal | null;
}

const DONE = { done: true, value: undefined } as const;
const LINE_SHOWN = 500;
const STDERR_SHOWN = 4_000;

export class TurnEvents implements AsyncIterableIterator<ThreadEvent> {
  readonly #turn: Turn;
  #starting: Promise<Child> | null = null;
  #child: Child | null = null;
  #removeSchema: () => void = () => undefined;
  /** Steps are taken one after the other, also when they are asked for at once. */
  #last: Promise<unknown> = Promise.resolve();
  #state: "new" | "running" | "over" = "new";
  #finishing: Promise<void> | null = null;
  #event: string | null = null;
  #ended = false;
  #exit: ExitDetails = { exitCode: null, signal: null, stderr: "" };

  constructor(turn: Turn) {
    this.#turn = turn;
  }

  /** How the agent ended; for after the iteration. */
  get exit(): ExitDetails {
    return this.#exit;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<ThreadEvent, undefined>> {
    const step = this.#last.then(() => this.#step());
    this.#last = step.catch(() => undefined);
    return step;
  }

  /** End the turn, also while an event is waited for. Resolves when the agent has ended. */
  async return(): Promise<IteratorResult<ThreadEvent, undefined>> {
    this.#state = "over";
    await this.#finish();
    return DONE;
  }

  async throw(error?: unknown): Promise<IteratorResult<ThreadEvent, undefined>> {
    await this.return();
    throw error;
  }

  async #step(): Promise<IteratorResult<ThreadEvent, undefined>> {
    try {
      if (this.#state === "new") await this.#begin();
      if (this.#state === "over" || this.#child === null) return DONE;
      const event = await this.#next(this.#child);
      // It may have been closed or aborted meanwhile.
      if (this.#isOver()) return DONE;
      this.#throwIfAborted();
      if (event !== null) return { done: false, value: event };
    } catch (error) {
      if (this.#isOver()) return DONE;
      await this.#finish();
      this.#throwIfAborted();
      throw error;
    }
    await this.#finish();
    return DONE;
  }

  async #begin(): Promise<void> {
    this.#throwIfAborted();
    this.#state = "running";
    let schemaFile: string | null = null;
    if (this.#turn.schema !== null) {
      const written = writeSchema(this.#turn.schema);
      this.#removeSchema = written.remove;
      schemaFile = written.path;
    }
    const command = this.#turn.command(schemaFile);
    this.#turn.signal?.addEventListener("abort", this.#onAbort, { once: true });
    this.#starting = Child.start(command);
    this.#child = await this.#starting;
    // Aborted before there was a process that could be ended.
    if (this.#turn.signal?.aborted) await this.#child.end();
  }

  readonly #onAbort = () => void this.#child?.end();

  /** The next event, or null at the end of a turn that has ended as it should. */
  async #next(child: Child): Promise<ThreadEvent | null> {
    for (;;) {
      const line = await this.#line(child);
      if (line === null) break;
      if (line.trim() === "") continue;
      const event = this.#parse(line);
      this.#turn.seen(event);
      this.#event = event.type;
      if (event.type === "turn.completed" || event.type === "turn.failed") {
        this.#ended = true;
        child.expectEnd();
      }
      return event;
    }
    const exit = await child.exit();
    this.#exit = { ...exit, stderr: this.#turn.redact(exit.stderr) };
    this.#throwIfAborted();
    // An error that nothing follows was fatal, and has been told.
    if (!this.#ended && this.#event !== "error") throw this.#unfinished(this.#exit);
    return null;
  }

  async #line(child: Child): Promise<string | null> {
    try {
      return await child.nextLine();
    } catch (error) {
      throw new ProtocolError(`the agent wrote ${(error as Error).message}`, "", error);
    }
  }

  #parse(line: string): ThreadEvent {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      // Without the parser's own error, which quotes a part of the line.
      throw this.#noEvent("a line that is no JSON", line);
    }
    const type = (value as { type?: unknown } | null)?.type;
    if (typeof type !== "string") throw this.#noEvent("a line that is no event", line);
    return value as ThreadEvent;
  }

  #noEvent(what: string, line: string): ProtocolError {
    const shown = this.#shown(line);
    return new ProtocolError(`the agent wrote ${what}: ${this.#shown(harmless(line))}`, shown);
  }

  /** The beginning of a line. Secrets go before it is cut, which could leave a half of one. */
  #shown(line: string): string {
    const redacted = this.#turn.redact(line);
    return redacted.length > LINE_SHOWN ? `${redacted.slice(0, LINE_SHOWN)}…` : redacted;
  }

  #unfinished(exit: ExitDetails): AgentError {
    const { exitCode, signal, stderr } = exit;
    const how = signal === null ? `exited with code ${exitCode}` : `was ended by ${signal}`;
    const said = this.#turn.redact(harmless(stderr)).trim().slice(-STDERR_SHOWN);
    const what = said === "" ? " and wrote nothing on its standard error" : `: ${said}`;
    return new ProcessError(`the agent ${how} before the turn was over${what}`, exit);
  }

  #isOver(): boolean {
    return this.#state === "over";
  }

  #throwIfAborted(): void {
    const { signal } = this.#turn;
    if (signal?.aborted) throw new AbortError(signal.reason);
  }

  #finish(): Promise<void> {
    this.#finishing ??= this.#clean();
    return this.#finishing;
  }

  async #clean(): Promise<void> {
    this.#state = "over";
    try {
      const child = await this.#starting?.catch(() => null);
      await child?.end();
    } finally {
      this.#turn.signal?.removeEventListener("abort", this.#onAbort);
      this.#removeSchema();
      this.#turn.over();
    }
  }
}
