/** What callers are told of turns that go wrong: `run` rejects, `runStreamed` yields what there is. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";

import { Agent, AgentError, type AgentOptions, type ThreadEvent } from "../src/index.js";
import {
  all,
  COMPLETED,
  fake,
  fakeScript,
  message,
  READ,
  STARTED,
  TURN,
  turn,
  type Step,
} from "./fake.js";

const FAILED = { say: { type: "turn.failed", error: { message: "rate limited" } } };
const RETRY = { say: { type: "error", message: "Reconnecting... 1/5" } };
const FATAL = { say: { type: "error", message: "the key is wrong" } };

/** What `run` rejects with, and which events `runStreamed` gives before it ends or rejects. */
async function played(
  steps: Step[],
  options: AgentOptions = {},
  input = "hello",
): Promise<{ run: unknown; types: string[]; streamed: unknown }> {
  const path = fakeScript(steps);
  const agent = new Agent({ agentPathOverride: path, ...options });
  const run = await agent
    .startThread()
    .run(input)
    .catch((error: unknown) => error);
  const { events } = await agent.startThread().runStreamed(input);
  const types: string[] = [];
  let streamed: unknown = null;
  try {
    for await (const event of events) types.push(event.type);
  } catch (error) {
    streamed = error;
  }
  return { run, types, streamed };
}

function isError(error: unknown, name: string, members: object): void {
  assert.ok(error instanceof AgentError, inspect(error));
  assert.equal(error.name, name);
  for (const [key, value] of Object.entries(members)) {
    const actual: unknown = (error as unknown as Record<string, unknown>)[key];
    if (value instanceof RegExp) assert.match(String(actual), value);
    else assert.deepEqual(actual, value, key);
  }
}

for (const exit of [0, 1]) {
  test(`turn.failed, exit ${exit}: run rejects with its message, the iteration yields it`, async () => {
    const item = message("so far");
    const steps = [READ, STARTED, TURN, item, FAILED, { stderr: "a log" }, { exit }];
    const { run, types, streamed } = await played(steps);
    isError(run, "TurnFailedError", {
      message: "rate limited",
      threadId: "thread-1",
      items: [{ id: "item_0", type: "agent_message", text: "so far" }],
      exitCode: exit,
      signal: null,
      stderr: "a log",
    });
    const expected = ["thread.started", "turn.started", "item.completed", "turn.failed"];
    assert.deepEqual([types, streamed], [expected, null]);
  });

  test(`a fatal error, exit ${exit}: run rejects with its message, the iteration yields it`, async () => {
    const { run, types, streamed } = await played([READ, STARTED, FATAL, { exit }]);
    isError(run, "TurnFailedError", { message: "the key is wrong", exitCode: exit });
    assert.deepEqual([types, streamed], [["thread.started", "error"], null]);
  });
}

test("error, then turn.failed: the message of the failed turn counts", async () => {
  const { run, types } = await played([READ, STARTED, TURN, FATAL, FAILED, { exit: 1 }]);
  isError(run, "TurnFailedError", { message: "rate limited" });
  assert.deepEqual(types.slice(2), ["error", "turn.failed"]);
});

test("an error event that a turn gets over does not fail it", async () => {
  const { run, types, streamed } = await played([
    READ,
    STARTED,
    TURN,
    RETRY,
    message("hi"),
    COMPLETED,
  ]);
  assert.equal((run as { finalResponse: string }).finalResponse, "hi");
  assert.deepEqual(
    [types.slice(2), streamed],
    [["error", "item.completed", "turn.completed"], null],
  );
});

const UNFINISHED: [string, Step[], RegExp, object][] = [
  [
    "exits with a code and a message",
    [READ, { stderr: "Not inside a Git repository.\n" }, { exit: 1 }],
    /^the agent exited with code 1 before the turn was over: Not inside a Git repository\.$/,
    { exitCode: 1, signal: null, stderr: "Not inside a Git repository.\n" },
  ],
  [
    "exits with 0, without events",
    [READ],
    /^the agent exited with code 0 before the turn was over and wrote nothing on its standard error$/,
    { exitCode: 0 },
  ],
  ["exits with 0 in the midst", [READ, STARTED, TURN, message("hi")], /code 0/, { exitCode: 0 }],
  [
    "is killed",
    [READ, STARTED, { stderr: "last words" }, { die: "SIGKILL" }],
    /^the agent was ended by SIGKILL before the turn was over: last words$/,
    { exitCode: null, signal: "SIGKILL" },
  ],
  ["ends after an error it went on from", [READ, RETRY, TURN, { exit: 3 }], /code 3/, {}],
];
for (const [name, steps, text, members] of UNFINISHED) {
  test(`an agent that ${name}: both reject`, async () => {
    const { run, streamed } = await played(steps);
    isError(run, "ProcessError", { message: text, ...members });
    isError(streamed, "ProcessError", { message: text, ...members });
  });
}

test("an agent that exits with a code after turn.completed has completed its turn", async () => {
  const { run, streamed } = await played([...turn(message("hi")), { exit: 1 }]);
  assert.equal((run as { finalResponse: string }).finalResponse, "hi");
  assert.equal(streamed, null);
});

test("a long prompt to an agent that reads nothing: its own message is told", async () => {
  const steps: Step[] = [{ stderr: "bad --sandbox" }, { exit: 2 }];
  const { run } = await played(steps, {}, "x".repeat(1 << 20));
  isError(run, "ProcessError", { message: /code 2.*bad --sandbox/, exitCode: 2 });
});

test("a long prompt that is never read does not hold up the turn", async () => {
  const { run } = await played([STARTED, TURN, COMPLETED], {}, "x".repeat(8 << 20));
  assert.equal((run as { finalResponse: string }).finalResponse, "");
});

const LINES: [string, string][] = [
  ["no JSON", "Reading prompt from stdin..."],
  ["half of an event", '{"type":"turn.sta'],
  ["no object", "[1]"],
  ["null", "null"],
  ["no type", '{"thread_id":"t"}'],
  ["a type that is no string", '{"type":5}'],
  ["thread.started without an id", '{"type":"thread.started"}'],
  ["thread.started with an option for an id", '{"type":"thread.started","thread_id":"--last"}'],
  ["item.completed without an item", '{"type":"item.completed","item":null}'],
  ["a message without text", '{"type":"item.completed","item":{"type":"agent_message"}}'],
  ["turn.failed without an error", '{"type":"turn.failed"}'],
  ["turn.failed with a text", '{"type":"turn.failed","error":"x"}'],
  ["error without a message", '{"type":"error"}'],
];
for (const [name, line] of LINES) {
  test(`a line that is ${name}: both reject, and the agent is ended`, async () => {
    const { run, streamed } = await played([READ, { say: line }, { hang: true }]);
    for (const error of [run, streamed]) isError(error, "ProtocolError", { line });
    assert.ok((run as Error).message.endsWith(line));
  });
}

test("a resumed thread that turns out to be another one is an error", async () => {
  const { path } = fake(turn(message("who are you?")));
  const thread = new Agent({ agentPathOverride: path }).resumeThread("thread-0");
  await assert.rejects(thread.run("hello"), {
    name: "ProtocolError",
    message: /^the agent wrote thread\.started though it was told to resume thread-0: .*thread-1/,
  });
  assert.equal(thread.id, "thread-0");
});

test("the key is in no error, wherever the agent repeats it", async () => {
  const apiKey = "sk-secret-0123456789";
  const said = `Incorrect API key: ${apiKey}`;
  // So that a text which is cut would be cut within the key.
  const long = "x".repeat(490) + apiKey;
  const cases: Step[][] = [
    [READ, { stderr: said }, { exit: 1 }],
    [READ, STARTED, { stderr: said }, { say: { type: "turn.failed", error: { message: said } } }],
    [READ, { say: { type: "error", message: said } }],
    [READ, { say: said }],
    [READ, { say: apiKey }],
    [READ, { say: long }],
    [READ, { say: { type: "item.completed", item: said } }],
    [READ, { stderr: apiKey + "x".repeat(3_990) }, { exit: 1 }],
  ];
  for (const steps of cases) {
    for (const options of [
      { apiKey },
      { env: { PATH: "/bin:/usr/bin", PROVIDER_API_KEY: apiKey } },
    ]) {
      const { run, streamed } = await played(steps, options);
      for (const error of [run, streamed]) {
        if (error === null) continue;
        assert.ok(error instanceof AgentError);
        const shown = inspect(error, { showHidden: true, depth: 9 }) + error.stack;
        assert.doesNotMatch(shown, /sk-sec|456789/);
      }
    }
  }
});

test("what the agent says does not reach a terminal as more than text", async () => {
  const said = "\u001b[31mred\u001b[0m\u0007 \u001b]0;title\u0007a\tb\r\nc\u009b2J";
  const cases: Step[][] = [
    [READ, { stderr: said }, { exit: 1 }],
    [READ, STARTED, { say: { type: "turn.failed", error: { message: said } } }],
    [READ, { write: `${said.replace("\n", "")}\n` }],
  ];
  for (const steps of cases) {
    const { run } = await played(steps);
    assert.ok(run instanceof AgentError);
    assert.match(run.message, /red.*a\tb\n?c/);
    assert.doesNotMatch(run.message, /[^\P{Cc}\t\n]|title/u);
  }
});

test("a flood on standard error holds up nothing; its end is kept", async () => {
  const steps: Step[] = [READ, STARTED, { flood: 4 << 20 }, { stderr: "the end" }, { exit: 1 }];
  const { run } = await played(steps);
  isError(run, "ProcessError", { message: /the end$/ });
  const { stderr, message } = run as { stderr: string; message: string };
  assert.ok(stderr.endsWith("the end") && stderr.length <= 256 << 10);
  assert.ok(message.length < 5_000);
});

test("after a failed turn the thread goes on", async () => {
  const { path, dump } = fake([READ, STARTED, TURN, FAILED]);
  const thread = new Agent({ agentPathOverride: path }).startThread();
  for (const _ of [1, 2]) await assert.rejects(thread.run("x"), /rate limited/);
  assert.deepEqual(dump().argv.slice(-2), ["resume", "thread-1"]);
  const events: ThreadEvent[] = await all((await thread.runStreamed("x")).events);
  assert.equal(events.at(-1)?.type, "turn.failed");
});
