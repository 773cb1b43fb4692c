/** A thread: turns that follow one another, each by an agent of its own. */

import { isThreadId, threadArguments, threadOverrides, turnArguments } from "./arguments.js";
import { AgentError, ConfigError, ProtocolError, TurnFailedError } from "./errors.js";
import type { ThreadEvent, Usage } from "./events.js";
import { prompt, type Input } from "./input.js";
import type { ThreadItem } from "./items.js";
import type { ThreadOptions, TurnOptions } from "./options.js";
import { schemaText } from "./schema_file.js";
import { TurnEvents } from "./stream.js";
import { harmless } from "./text.js";

/** What `run` gives. */
export interface RunResult {
  /** The text of the last message of the agent; JSON text, where there is an output schema. */
  finalResponse: string;
  /** The items that were completed, in their order. */
  items: ThreadItem[];
  usage: Usage | null;
}

/** What `runStreamed` gives. */
export interface RunStreamedResult {
  /**
   * The agent is started at the first step. Leaving the loop, or `return()`, ends it with all that
   * it started; so one or the other must happen once a step was taken.
   */
  events: AsyncIterableIterator<ThreadEvent>;
}

/** What a thread has from its client. */
export interface Launch {
  /** Arguments before those of the thread. */
  arguments: readonly string[];
  env(): Readonly<Record<string, string>>;
  /** The path of the binary. Throws AgentNotFoundError. */
  binary(): string;
  redact(text: string): string;
}

/** Made by `agent.startThread` and `agent.resumeThread`. */
export class Thread {
  readonly #launch: Launch;
  readonly #arguments: readonly string[];
  readonly #overrides: readonly string[];
  #id: string | null;
  #running: object | null = null;

  /** @internal */
  constructor(launch: Launch, options: ThreadOptions | undefined, id: string | null) {
    this.#launch = launch;
    this.#arguments = threadArguments(options);
    this.#overrides = threadOverrides(options);
    this.#id = id;
  }

  /** The id that `resumeThread` takes; null until the first turn has made the thread. */
  get id(): string | null {
    return this.#id;
  }

  /**
   * Run a turn to its end. Rejects with an AgentError: TurnFailedError where the turn fails,
   * AbortError where the signal is aborted; `errors.ts` has the others.
   */
  async run(input: Input, options?: TurnOptions): Promise<RunResult> {
    const events = this.#turn(input, options);
    const items: ThreadItem[] = [];
    let finalResponse = "";
    let usage: Usage | null = null;
    let completed = false;
    let failure: string | null = null;
    let lastError: string | null = null;
    for await (const event of events) {
      switch (event.type) {
        case "item.completed":
          items.push(event.item);
          if (event.item.type === "agent_message") finalResponse = event.item.text;
          break;
        case "turn.completed":
          completed = true;
          usage = event.usage ?? null;
          break;
        case "turn.failed":
          failure = event.error.message;
          break;
        case "error":
          // Not yet a failure of the turn: some agents report with it that they try again.
          lastError = event.message;
          break;
        default:
          break;
      }
    }
    if (completed && failure === null) return { finalResponse, items, usage };
    const message = this.#launch.redact(harmless(failure ?? lastError ?? "the turn failed"));
    throw new TurnFailedError(message, this.#id, items, events.exit);
  }

  /**
   * Run a turn and give its events as they come. A turn that fails yields `turn.failed`, or `error`
   * as its last event, and the iteration then ends. It rejects where there is no such event to give:
   * AbortError, ProcessError, ProtocolError, AgentNotFoundError.
   */
  async runStreamed(input: Input, options?: TurnOptions): Promise<RunStreamedResult> {
    return { events: this.#turn(input, options) };
  }

  #turn(input: Input, given: TurnOptions | undefined): TurnEvents {
    const { text, images } = prompt(input);
    const options: TurnOptions = given ?? {};
    const { outputSchema, signal } = options;
    if (signal !== undefined && typeof signal?.addEventListener !== "function") {
      throw new ConfigError("signal must be an AbortSignal");
    }
    const token = {};
    return new TurnEvents({
      schema: outputSchema === undefined ? null : schemaText(outputSchema),
      signal: signal ?? null,
      command: (schemaFile) => {
        if (this.#running !== null) {
          throw new AgentError("a turn of this thread is running: await it, or close its events");
        }
        this.#running = token;
        const turn = turnArguments({ threadId: this.#id, images, schemaFile });
        return {
          path: this.#launch.binary(),
          arguments: [
            ...this.#launch.arguments,
            ...this.#arguments,
            ...turn.options,
            ...this.#overrides,
            ...turn.rest,
          ],
          env: this.#launch.env(),
          input: text,
        };
      },
      seen: (event) => this.#seen(event),
      over: () => {
        if (this.#running === token) this.#running = null;
      },
      redact: (said) => this.#launch.redact(said),
    });
  }

  /** Learn the thread's id; refuse an event that lacks what this package itself reads of it. */
  #seen(event: ThreadEvent): void {
    const wrong = (what: string): ProtocolError => {
      const line = this.#launch.redact(JSON.stringify(event)).slice(0, 500);
      return new ProtocolError(`the agent wrote ${event.type} ${what}: ${line}`, line);
    };
    switch (event.type) {
      case "thread.started":
        if (!isThreadId(event.thread_id)) throw wrong("without a usable thread_id");
        if (this.#id !== null && this.#id !== event.thread_id) {
          throw wrong(`though it was told to resume ${this.#id}`);
        }
        this.#id = event.thread_id;
        break;
      case "item.completed":
        if (typeof event.item?.type !== "string") throw wrong("without an item");
        if (event.item.type === "agent_message" && typeof event.item.text !== "string") {
          throw wrong("without the text of the message");
        }
        break;
      case "turn.failed":
        if (typeof event.error?.message !== "string") throw wrong("without a message");
        break;
      case "error":
        if (typeof event.message !== "string") throw wrong("without a message");
        break;
      default:
        break;
    }
  }
}
