/** Turns that are cut short: the agent ends, with all that it started, and nothing is left behind. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, test } from "node:test";

import { Agent, ProcessError } from "../src/index.js";
import { limits } from "../src/limits.js";
import {
  all,
  COMPLETED,
  fake,
  isAlive,
  message,
  READ,
  STARTED,
  TURN,
  turn,
  until,
  type Step,
} from "./fake.js";

const HANG: Step = { hang: true };
const RUNNING = [READ, STARTED, TURN];

beforeEach(() => {
  // Long enough for whoever ends by himself; a test that needs less says so.
  Object.assign(limits, { grace: 20_000, linger: 20_000, afterExit: 500 });
});

/** Whether an agent and what it started are gone. */
function isGone({ pid, sleeper }: { pid: number; sleeper: number | null }): boolean {
  return !isAlive(pid) && (sleeper === null || !isAlive(sleeper));
}

test("a signal aborted beforehand: run rejects with AbortError, nothing is started", async () => {
  const { path, folder } = fake(turn());
  const thread = new Agent({ agentPathOverride: path }).startThread();
  const reason = new Error("no longer wanted");
  const signal = AbortSignal.abort(reason);
  await assert.rejects(thread.run("x", { signal }), {
    name: "AbortError",
    code: "ABORT_ERR",
    cause: reason,
  });
  const { events } = await thread.runStreamed("x", { signal });
  await assert.rejects(events.next(), { name: "AbortError" });
  assert.deepEqual(await all(events), []);
  assert.ok(!existsSync(join(folder, "dump.json")));
  await thread.run("x");
});

for (const sleep of ["same group", "own session"] as const) {
  test(`a signal aborted meanwhile ends the agent and a command, ${sleep}`, async () => {
    const { path, dump } = fake([{ sleep }, ...RUNNING, HANG]);
    const controller = new AbortController();
    const { signal } = controller;
    const thread = new Agent({ agentPathOverride: path }).startThread();
    const run = thread.run("x", { signal, outputSchema: { type: "object" } });
    await until(() => thread.id !== null, "the turn runs");
    controller.abort();
    await assert.rejects(run, { name: "AbortError", cause: signal.reason });
    const started = dump();
    assert.ok(started.sleeper !== null && isGone(started));
    const file = started.argv[started.argv.indexOf("--output-schema") + 1] ?? "";
    assert.ok(file !== "" && !existsSync(file));
  });

  test(`an agent that is deaf to SIGTERM is killed, with its command, ${sleep}`, async () => {
    limits.grace = 300;
    const { path, dump } = fake([{ deaf: true }, { sleep }, ...RUNNING, HANG]);
    const controller = new AbortController();
    const thread = new Agent({ agentPathOverride: path }).startThread();
    const run = thread.run("x", { signal: controller.signal });
    await until(() => thread.id !== null, "the turn runs");
    controller.abort("enough");
    await assert.rejects(run, { name: "AbortError", cause: "enough" });
    await until(() => isGone(dump()), "all are gone");
  });
}

test("aborted at any event of the iteration, it rejects with AbortError once, then is over", async () => {
  for (const at of [1, 2, 3, 4]) {
    const { path, dump } = fake([...turn(message("hi")), HANG]);
    const controller = new AbortController();
    const { signal } = controller;
    const thread = new Agent({ agentPathOverride: path }).startThread();
    const { events } = await thread.runStreamed("x", { signal });
    for (let step = 0; step < at; step++) await events.next();
    controller.abort();
    await assert.rejects(events.next(), { name: "AbortError" });
    assert.ok(isGone(dump()));
    assert.deepEqual(await events.next(), { done: true, value: undefined });
  }
});

test("a signal aborted afterwards changes nothing, and is left without listeners", async () => {
  const { path } = fake(turn(message("hi")));
  const controller = new AbortController();
  let listeners = 0;
  const { signal } = controller;
  const { addEventListener, removeEventListener } = signal;
  signal.addEventListener = (...given: unknown[]) => {
    listeners++;
    addEventListener.apply(signal, given as Parameters<typeof addEventListener>);
  };
  signal.removeEventListener = (...given: unknown[]) => {
    listeners--;
    removeEventListener.apply(signal, given as Parameters<typeof removeEventListener>);
  };
  const thread = new Agent({ agentPathOverride: path }).startThread();
  const result = await thread.run("x", { signal });
  assert.equal(listeners, 0);
  controller.abort();
  assert.equal(result.finalResponse, "hi");
});

test("aborted in the very moment in which the agent starts", async () => {
  const { path, folder, dump } = fake([HANG]);
  const controller = new AbortController();
  const thread = new Agent({ agentPathOverride: path }).startThread();
  const run = thread.run("x", { signal: controller.signal });
  process.nextTick(() => controller.abort());
  await assert.rejects(run, { name: "AbortError" });
  if (existsSync(join(folder, "dump.json"))) assert.ok(isGone(dump()));
});

test("leaving the loop ends the agent before the loop is left", async () => {
  const { path, dump } = fake([{ sleep: "same group" }, ...RUNNING, HANG]);
  const thread = new Agent({ agentPathOverride: path }).startThread();
  const { events } = await thread.runStreamed("x");
  for await (const event of events) {
    if (event.type === "turn.started") break;
  }
  assert.ok(isGone(dump()));
  assert.deepEqual(await all(events), []);
});

test("an error in the loop ends the agent too, and is not hidden", async () => {
  const { path, dump } = fake([...RUNNING, HANG]);
  const { events } = await new Agent({ agentPathOverride: path }).startThread().runStreamed("x");
  const loop = async () => {
    for await (const _ of events) throw new RangeError("of the caller");
  };
  await assert.rejects(loop(), RangeError);
  assert.ok(isGone(dump()));
});

test("return ends a turn whose next event is waited for, also twice at once", async () => {
  const { path, dump } = fake([...RUNNING, HANG]);
  const { events } = await new Agent({ agentPathOverride: path }).startThread().runStreamed("x");
  await events.next();
  await events.next();
  const waiting = events.next();
  await Promise.all([events.return?.(), events.return?.()]);
  assert.ok(isGone(dump()));
  assert.deepEqual(await waiting, { done: true, value: undefined });
});

test("return while the agent is being started leaves nothing running", async () => {
  const { path, folder, dump } = fake([...RUNNING, HANG]);
  const { events } = await new Agent({ agentPathOverride: path }).startThread().runStreamed("x");
  const first = events.next();
  await events.return?.();
  assert.deepEqual(await first, { done: true, value: undefined });
  if (existsSync(join(folder, "dump.json"))) assert.ok(isGone(dump()));
});

test("an agent that lingers after its turn is ended, and the turn has ended well", async () => {
  limits.linger = 200;
  for (const last of [[COMPLETED], [COMPLETED, { closeOutput: true } as const]]) {
    const { path, dump } = fake([...RUNNING, message("hi"), ...last, HANG]);
    const result = await new Agent({ agentPathOverride: path }).startThread().run("x");
    assert.equal(result.finalResponse, "hi");
    assert.ok(isGone(dump()));
  }
});

test("an agent that closes its output and lingers is ended, and its turn is not over", async () => {
  limits.linger = 200;
  const { path, dump } = fake([...RUNNING, { closeOutput: true }, HANG]);
  const run = new Agent({ agentPathOverride: path }).startThread().run("x");
  await assert.rejects(run, ProcessError);
  assert.ok(isGone(dump()));
});

test("a process that outlives the agent and holds its output holds up nothing", async () => {
  for (const sleep of ["same group", "own session"] as const) {
    const { path, dump } = fake([{ sleep }, ...turn(message("hi")), { exit: 0 }]);
    const result = await new Agent({ agentPathOverride: path }).startThread().run("x");
    assert.equal(result.finalResponse, "hi");
    // It was started to stay, by an agent that ended as it should.
    const { sleeper } = dump();
    assert.ok(sleeper !== null && isAlive(sleeper));
    process.kill(sleeper, "SIGKILL");
  }
});

test("whoever reads slowly gets every event, though the agent has long ended", async () => {
  limits.afterExit = 1;
  const texts = Array.from({ length: 50 }, (_, at) => `${at}${"x".repeat(500)}`);
  const { path, dump } = fake(turn(...texts.map((text) => message(text))));
  const { events } = await new Agent({ agentPathOverride: path }).startThread().runStreamed("x");
  const first = await events.next();
  assert.equal(first.value?.type, "thread.started");
  // All of it fits into the pipe.
  await until(() => isGone(dump()), "the agent has ended");
  assert.equal((await all(events)).length, 52);
});

const PROGRAM = `
import { Agent } from ${JSON.stringify(new URL("../src/index.js", import.meta.url).href)};
const [path, how] = process.argv.slice(2);
if (how === "own handler") process.on("SIGTERM", () => setTimeout(() => process.exit(7), 100));
const { events } = await new Agent({ agentPathOverride: path }).startThread()
  .runStreamed("x", { outputSchema: {} });
for await (const event of events) {
  if (event.type !== "turn.started") continue;
  if (how === "exit") process.exit(5);
  if (how === "throw") throw new Error("of the program");
  console.log("running");
}
`;

const ENDS: [string, NodeJS.Signals | null, number | null, NodeJS.Signals | null][] = [
  ["exit", null, 5, null],
  ["throw", null, 1, null],
  ["SIGTERM", "SIGTERM", null, "SIGTERM"],
  ["SIGINT", "SIGINT", null, "SIGINT"],
  ["SIGHUP", "SIGHUP", null, "SIGHUP"],
  ["own handler", "SIGTERM", 7, null],
];
for (const [how, signal, exitCode, exitSignal] of ENDS) {
  for (const deaf of [false, true]) {
    test(`a program that ends by ${how} leaves no ${deaf ? "deaf " : ""}agent behind`, async () => {
      const steps: Step[] = [{ sleep: "own session" }, ...RUNNING, HANG];
      const { path, dump, folder } = fake(deaf ? [{ deaf: true }, ...steps] : steps);
      const program = join(folder, "program.mjs");
      writeFileSync(program, PROGRAM);
      const child = spawn(process.execPath, [program, path, how], {
        stdio: ["ignore", "pipe", "ignore"],
        env: { ...process.env, TMPDIR: folder },
      });
      child.stdout.once("data", () => signal !== null && child.kill(signal));
      const ended = await new Promise<[number | null, NodeJS.Signals | null]>((resolve) =>
        child.once("exit", (...end) => resolve(end)),
      );
      assert.deepEqual(ended, [exitCode, exitSignal]);
      await until(() => isGone(dump()), "the agent and its command are gone");
      const left = readdirSync(folder).filter((name) => name.startsWith("agent-output-schema"));
      assert.deepEqual(left, []);
    });
  }
}

test("a program is not kept from ending by a process that outlives the agent", async () => {
  const { path, dump, folder } = fake([{ sleep: "own session" }, ...turn(), { exit: 0 }]);
  const program = join(folder, "program.mjs");
  writeFileSync(program, PROGRAM);
  const child = spawn(process.execPath, [program, path, "to its end"], { stdio: "ignore" });
  try {
    await until(() => child.exitCode !== null, "the program has ended");
    assert.equal(child.exitCode, 0);
  } finally {
    const { sleeper } = dump();
    if (sleeper !== null) process.kill(sleeper, "SIGKILL");
    child.kill("SIGKILL");
  }
});

test("between turns no handlers of signals are left", async () => {
  const before = ["SIGINT", "SIGTERM", "SIGHUP", "exit"].map((name) => process.listenerCount(name));
  const { path } = fake(turn(message("hi")));
  const agent = new Agent({ agentPathOverride: path });
  await Promise.all([agent.startThread().run("x"), agent.startThread().run("y")]);
  assert.deepEqual(
    ["SIGINT", "SIGTERM", "SIGHUP", "exit"].map((name) => process.listenerCount(name)),
    before,
  );
});
