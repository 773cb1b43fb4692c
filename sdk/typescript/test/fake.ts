/** Fake agents: small programs that play a list of steps, and tell how they were started. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

/** What a fake agent does, one after the other. */
export type Step =
  /** Write a line: a string as it is, anything else as JSON. */
  | { say: unknown }
  /** Write this without a line's end. */
  | { write: string }
  | { stderr: string }
  /** Write that many bytes of `x` on standard error. */
  | { flood: number }
  /** Read standard input to its end. */
  | { read: true }
  /** Ignore SIGTERM and SIGINT from now on. */
  | { deaf: true }
  /** Start `sleep`, in this process group or in a session of its own, its output inherited. */
  | { sleep: "same group" | "own session" }
  /** Write an empty file, for a test to see that this step was reached. */
  | { touch: string }
  | { hang: true }
  | { closeOutput: true }
  | { die: NodeJS.Signals }
  | { exit: number };

/** How a fake agent was started. */
export interface Dump {
  argv: string[];
  env: Record<string, string>;
  cwd: string;
  pid: number;
  sleeper: number | null;
  stdin: string | null;
  schema: unknown;
}

const PROGRAM = String.raw`
import { spawn } from "node:child_process";
import fs from "node:fs";
const { steps, dump } = JSON.parse(fs.readFileSync(process.argv[1] + ".json", "utf8"));
const argv = process.argv.slice(2);
const at = argv.indexOf("--output-schema");
const seen = {
  argv, env: { ...process.env }, cwd: process.cwd(), pid: process.pid, sleeper: null, stdin: null,
  schema: at === -1 ? null : JSON.parse(fs.readFileSync(argv[at + 1], "utf8")),
};
const tell = () => {
  const fresh = dump + process.pid;
  fs.writeFileSync(fresh, JSON.stringify(seen));
  fs.renameSync(fresh, dump);
};
tell();
const write = (fd, text) => {
  for (let left = Buffer.from(text); left.length > 0; ) {
    try { left = left.subarray(fs.writeSync(fd, left)); }
    catch (error) { if (error.code === "EPIPE") process.exit(9); if (error.code !== "EAGAIN") throw error; }
  }
};
for (const step of steps) {
  if ("say" in step) write(1, (typeof step.say === "string" ? step.say : JSON.stringify(step.say)) + "\n");
  else if ("write" in step) write(1, step.write);
  else if ("stderr" in step) write(2, step.stderr);
  else if ("flood" in step) write(2, "x".repeat(step.flood));
  else if ("read" in step) {
    const parts = [];
    for await (const part of process.stdin) parts.push(part);
    seen.stdin = Buffer.concat(parts).toString();
    tell();
  }
  else if ("deaf" in step) for (const name of ["SIGTERM", "SIGINT"]) process.on(name, () => {});
  else if ("sleep" in step) {
    const detached = step.sleep === "own session";
    const child = spawn("sleep", ["600"], { detached, stdio: ["ignore", "inherit", "inherit"] });
    child.unref();
    seen.sleeper = child.pid;
    tell();
  }
  else if ("touch" in step) fs.writeFileSync(step.touch, "");
  else if ("hang" in step) await new Promise(() => setInterval(() => {}, 1 << 30));
  else if ("closeOutput" in step) fs.closeSync(1);
  else if ("die" in step) { process.kill(process.pid, step.die); await new Promise(() => setInterval(() => {}, 1000)); }
  else if ("exit" in step) process.exit(step.exit);
}
`;

const home = mkdtempSync(join(tmpdir(), "agent-sdk-test-"));
let made = 0;
after(() => rmSync(home, { recursive: true, force: true }));

/** Write a fake agent; give its path, and what it then tells of its start. */
export function fake(steps: Step[]): { path: string; dump(): Dump; folder: string } {
  const folder = mkdtempSync(join(home, `${made++}-`));
  const path = join(folder, "agent.mjs");
  const dump = join(folder, "dump.json");
  writeFileSync(path, `#!${process.execPath}\n${PROGRAM}`, { mode: 0o755 });
  writeFileSync(`${path}.json`, JSON.stringify({ steps, dump }));
  return { path, folder, dump: () => JSON.parse(readFileSync(dump, "utf8")) as Dump };
}

/**
 * The same as a shell script, which starts ten times as fast; it tells nothing of its start, and
 * knows not all steps.
 */
export function fakeScript(steps: Step[]): string {
  const folder = mkdtempSync(join(home, `${made++}-`));
  const commands = steps.map((step, at) => {
    const file = join(folder, `${at}`);
    if ("say" in step) {
      const line = typeof step.say === "string" ? step.say : JSON.stringify(step.say);
      writeFileSync(file, `${line}\n`);
      return `cat ${file}`;
    }
    if ("write" in step || "stderr" in step) {
      writeFileSync(file, "write" in step ? step.write : step.stderr);
      return "write" in step ? `cat ${file}` : `cat ${file} >&2`;
    }
    if ("flood" in step) return `head -c ${step.flood} /dev/zero | tr '\\0' x >&2`;
    if ("read" in step) return "cat > /dev/null";
    if ("hang" in step) return "exec sleep 600";
    if ("die" in step) return `kill -${step.die.slice(3)} $$`;
    if ("exit" in step) return `exit ${step.exit}`;
    throw new Error(`not for a script: ${JSON.stringify(step)}`);
  });
  const path = join(folder, "agent");
  writeFileSync(path, ["#!/bin/sh", ...commands, ""].join("\n"), { mode: 0o755 });
  return path;
}

export const STARTED = { say: { type: "thread.started", thread_id: "thread-1" } };
export const TURN = { say: { type: "turn.started" } };
export const USAGE = { input_tokens: 10, cached_input_tokens: 2, output_tokens: 3 };
export const COMPLETED = { say: { type: "turn.completed", usage: USAGE } };
export const READ: Step = { read: true };

/** An `item.completed` of the agent's message. */
export function message(text: string, id = "item_0"): Step {
  return { say: { type: "item.completed", item: { id, type: "agent_message", text } } };
}

/** The steps of a plain turn. */
export function turn(...items: Step[]): Step[] {
  return [READ, STARTED, TURN, ...items, COMPLETED];
}

/** Wait until something holds; it must within ten seconds. */
export async function until(holds: () => boolean, what: string): Promise<void> {
  const bound = performance.now() + 10_000;
  while (!holds()) {
    if (performance.now() > bound) throw new Error(`waited in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Whether a process lives; one that has ended and is not yet waited for does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return process.platform !== "linux";
  }
}

/** All events of an iteration. */
export async function all<T>(events: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const event of events) found.push(event);
  return found;
}
