/**
 * The agent as a process: its prompt goes in, its lines come out, and it can be ended.
 *
 * Nothing here knows what a line says.
 */

import { spawn, type ChildProcessByStdio } from "node:child_process";
import type { Readable, Writable } from "node:stream";

import { AgentNotFoundError, ProcessError, type ExitDetails } from "./errors.js";
import { limits } from "./limits.js";
import { LineSplitter } from "./lines.js";
import { endTree } from "./processes.js";
import { guardAgent } from "./shutdown.js";

/** What is needed to start an agent. */
export interface Command {
  path: string;
  arguments: readonly string[];
  env: Readonly<Record<string, string>>;
  /** Written to its standard input, which is then closed. */
  input: string;
}

export class Child {
  readonly #process: ChildProcessByStdio<Writable, Readable, Readable>;
  readonly #letBe: () => void;
  readonly #splitter = new LineSplitter(limits.line);
  readonly #lines: string[] = [];
  readonly #stderr: Buffer[] = [];
  #stderrSize = 0;
  #exit: { exitCode: number | null; signal: NodeJS.Signals | null } | null = null;
  readonly #exited: Promise<void>;
  #ending: Promise<void> | null = null;
  #lingering: NodeJS.Timeout | null = null;
  /** Called when there may be more to read. */
  #wake: () => void = () => undefined;

  /** Start it. Throws AgentNotFoundError or ProcessError. */
  static async start(command: Command): Promise<Child> {
    try {
      const started = spawn(command.path, command.arguments, {
        env: command.env,
        stdio: ["pipe", "pipe", "pipe"],
        // A process group of its own, which can be ended with all that it holds.
        detached: true,
      });
      // Before anything is awaited: a child that reads nothing makes the pipe fail, which without a
      // listener would end this process. How the child ended is told by its exit.
      started.stdin.on("error", () => undefined);
      await new Promise<void>((resolve, reject) => {
        started.once("spawn", resolve).once("error", reject);
      });
      return new Child(started, command.input);
    } catch (error) {
      throw notStarted(error, command.path);
    }
  }

  private constructor(started: ChildProcessByStdio<Writable, Readable, Readable>, input: string) {
    this.#process = started;
    this.#letBe = guardAgent(this.#pid);
    this.#exited = new Promise((resolve) => {
      started.once("exit", (exitCode, signal) => {
        this.#exit = { exitCode, signal };
        this.#letBe();
        if (this.#lingering !== null) clearTimeout(this.#lingering);
        this.#wake();
        resolve();
      });
    });
    // An error of a process that runs: a signal could not be sent. Its exit tells what matters.
    started.on("error", () => undefined);
    started.stderr.on("error", () => undefined);
    started.stderr.on("data", (chunk: Buffer) => this.#keepStderr(chunk));
    for (const name of ["readable", "end", "close", "error"] as const) {
      started.stdout.on(name, () => this.#wake());
    }
    started.stdin.end(input);
  }

  /** The next line, or null when there is none to come. Throws RangeError for one too long. */
  async nextLine(): Promise<string | null> {
    for (;;) {
      const line = this.#lines.shift();
      if (line !== undefined) return line;
      const chunk = await this.#nextChunk();
      if (chunk === null) return this.#splitter.end()[0] ?? null;
      this.#lines.push(...this.#splitter.push(chunk));
    }
  }

  /** From now on the agent is expected to end by itself, and is ended if it does not. */
  expectEnd(): void {
    if (this.#exit !== null || this.#lingering !== null) return;
    this.#lingering = setTimeout(() => void this.end(), limits.linger);
  }

  /** Wait until it has ended by itself, and give how. */
  async exit(): Promise<ExitDetails> {
    this.expectEnd();
    await this.#exited;
    await this.#ending;
    await this.#closed(this.#process.stderr);
    this.#letGo();
    const stderr = Buffer.concat(this.#stderr).toString("utf8");
    return { exitCode: null, signal: null, ...this.#exit, stderr };
  }

  /** End it, with all that it started. Can be called again; resolves when it has ended. */
  end(): Promise<void> {
    this.#ending ??= this.#end();
    return this.#ending;
  }

  get #pid(): number {
    return this.#process.pid ?? 0;
  }

  async #end(): Promise<void> {
    if (this.#exit === null) {
      await endTree(this.#pid);
      await this.#exited;
    }
    this.#letGo();
  }

  /** Close the pipes, which a process that outlives the agent may hold. */
  #letGo(): void {
    this.#process.stdin.destroy();
    this.#process.stdout.destroy();
    this.#process.stderr.destroy();
  }

  async #nextChunk(): Promise<Buffer | null> {
    const { stdout } = this.#process;
    for (;;) {
      const chunk = stdout.read() as Buffer | null;
      if (chunk !== null) return chunk;
      if (stdout.readableEnded || stdout.destroyed) return null;
      if ((await this.#change()) === "quiet") return null;
    }
  }

  /** Wait for bytes or an end. "quiet": the agent has ended, and nothing came for a while. */
  #change(): Promise<"change" | "quiet"> {
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | null = null;
      this.#wake = () => {
        if (timer !== null) clearTimeout(timer);
        timer = null;
        resolve("change");
      };
      if (this.#exit !== null) timer = setTimeout(() => resolve("quiet"), limits.afterExit);
    });
  }

  #closed(stream: Readable): Promise<void> {
    return new Promise((resolve) => {
      if (stream.readableEnded || stream.destroyed) return resolve();
      const timer = setTimeout(done, limits.afterExit);
      function done() {
        clearTimeout(timer);
        stream.off("close", done).off("end", done);
        resolve();
      }
      stream.on("close", done).on("end", done);
    });
  }

  #keepStderr(chunk: Buffer): void {
    this.#stderr.push(chunk);
    this.#stderrSize += chunk.length;
    for (;;) {
      const [first] = this.#stderr;
      if (first === undefined || this.#stderrSize - first.length < limits.stderr) return;
      this.#stderr.shift();
      this.#stderrSize -= first.length;
    }
  }
}

function notStarted(error: unknown, path: string): Error {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "EACCES" || code === "ENOTDIR") {
    const why =
      code === "EACCES" ? "cannot be executed" : "is not there, or its interpreter is not";
    return new AgentNotFoundError(`the agent ${path} ${why} (${code})`, path, code, error);
  }
  const exit = { exitCode: null, signal: null, stderr: "" };
  return new ProcessError(`the agent ${path} could not be started: ${message}`, exit, error);
}
