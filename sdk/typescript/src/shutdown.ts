/**
 * What must not outlive this process: agents, which as leaders of groups of their own do not get
 * the terminal's Ctrl-C, and files of output schemas.
 *
 * Handlers of signals are there only while there is something to undo.
 */

import { rmSync } from "node:fs";

import { endTreesNow } from "./processes.js";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** Marks handlers of this package, also those of another copy that was loaded. */
const OURS = Symbol.for("agent-sdk.signal-handler");
const agents = new Set<number>();
const directories = new Set<string>();

/** Have an agent ended at the end of this process; give the function that lets it be. */
export function guardAgent(pid: number): () => void {
  return guard(agents, pid);
}

/** Have a directory removed at the end of this process; give the function that lets it be. */
export function guardDirectory(path: string): () => void {
  return guard(directories, path);
}

function guard<T>(set: Set<T>, member: T): () => void {
  if (agents.size + directories.size === 0) {
    process.on("exit", undo);
    for (const name of SIGNALS) process.on(name, onSignal);
  }
  set.add(member);
  return () => {
    if (set.delete(member) && agents.size + directories.size === 0) letBe();
  };
}

function letBe(): void {
  process.off("exit", undo);
  for (const name of SIGNALS) process.off(name, onSignal);
}

function undo(): void {
  endTreesNow([...agents]);
  for (const path of directories) rmSync(path, { recursive: true, force: true });
  agents.clear();
  directories.clear();
}

function onSignal(name: NodeJS.Signals): void {
  // With a handler of the program's own it is that one which says whether the program ends.
  if (process.listeners(name).some((listener) => !(OURS in listener))) return;
  undo();
  letBe();
  process.kill(process.pid, name);
}

Object.defineProperty(onSignal, OURS, { value: true });
