/**
 * Ending an agent with all that it started.
 *
 * An agent is started as the leader of a process group, which is signalled as a whole. Its commands
 * may have groups of their own: on Linux they are found by their parents, in /proc.
 */

import { readdirSync, readFileSync } from "node:fs";

import { limits } from "./limits.js";

interface Seen {
  pid: number;
  /** When it was started: a later process may be given the same id. */
  since: string;
}

/** SIGTERM; then, for what is left after a while, SIGKILL. Resolves when that is done. */
export async function endTree(leader: number): Promise<void> {
  const ending = new Ending(leader);
  const until = performance.now() + limits.grace;
  for (
    let wait = 5;
    !ending.isOver() && performance.now() < until;
    wait = Math.min(2 * wait, 100)
  ) {
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
  ending.kill();
}

/** The same for a process that is about to end, and can wait for nothing but the clock. */
export function endTreesNow(leaders: readonly number[]): void {
  const endings = leaders.map((leader) => new Ending(leader));
  const until = performance.now() + limits.atExit;
  const clock = new Int32Array(new SharedArrayBuffer(4));
  while (!endings.every((ending) => ending.isOver()) && performance.now() < until) {
    Atomics.wait(clock, 0, 0, 10);
  }
  for (const ending of endings) ending.kill();
}

class Ending {
  readonly #leader: number;
  #seen: Seen[];
  #told = false;

  constructor(leader: number) {
    this.#leader = leader;
    this.#seen = descendants(leader);
    signal(-leader, "SIGTERM");
  }

  /** Whether nothing is left. What outlives the agent, which could have ended it, is told too. */
  isOver(): boolean {
    if (isGroupAlive(this.#leader)) return false;
    this.#seen = this.#seen.filter(isAlive);
    if (!this.#told) {
      this.#told = true;
      for (const { pid } of this.#seen) signal(pid, "SIGTERM");
    }
    return this.#seen.length === 0;
  }

  kill(): void {
    const left = [...this.#seen, ...descendants(this.#leader)].filter(isAlive);
    if (isGroupAlive(this.#leader)) signal(-this.#leader, "SIGKILL");
    for (const { pid } of left) signal(pid, "SIGKILL");
  }
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}

/** Whether a process of the group lives. Ended ones that nobody has waited for do not count. */
function isGroupAlive(group: number): boolean {
  try {
    process.kill(-group, 0);
  } catch {
    return false;
  }
  const table = processTable();
  return table === null || table.some((row) => row.group === group && row.state !== "Z");
}

function isAlive(seen: Seen): boolean {
  const row = read(seen.pid);
  return row !== null && row.since === seen.since && row.state !== "Z";
}

function descendants(leader: number): Seen[] {
  const table = processTable() ?? [];
  const found: Row[] = [];
  for (let parents = [leader]; parents.length > 0;) {
    const children = table.filter((row) => parents.includes(row.parent) && !found.includes(row));
    found.push(...children);
    parents = children.map((row) => row.pid);
  }
  return found;
}

interface Row extends Seen {
  state: string;
  parent: number;
  group: number;
}

/** All processes of the machine, or null where there is no /proc as Linux has it. */
function processTable(): Row[] | null {
  if (process.platform !== "linux") return null;
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((name) => read(Number(name)))
      .filter((row) => row !== null);
  } catch {
    return null;
  }
}

function read(pid: number): Row | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "latin1");
    // After the name, which stands in parentheses and may hold anything.
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    const [state = "", parent, group] = fields;
    return { pid, state, parent: Number(parent), group: Number(group), since: fields[19] ?? "" };
  } catch {
    return null;
  }
}
