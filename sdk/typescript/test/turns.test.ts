/** What `run` and `runStreamed` give of turns that go well. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Agent } from "../src/index.js";
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
  USAGE,
} from "./fake.js";

const ITEMS = [
  { id: "item_0", type: "reasoning", text: "**Thinking**" },
  {
    id: "item_1",
    type: "command_execution",
    command: "ls",
    aggregated_output: "a\n",
    exit_code: 0,
    status: "completed",
  },
  {
    id: "item_2",
    type: "file_change",
    changes: [{ kind: "add", path: "/w/a" }],
    status: "completed",
  },
  {
    id: "item_3",
    type: "mcp_tool_call",
    server: "s",
    tool: "t",
    arguments: { a: 1 },
    result: { content: [], structured_content: null },
    status: "completed",
  },
  { id: "item_4", type: "web_search", query: "q" },
  { id: "item_5", type: "todo_list", items: [{ text: "one", completed: false }] },
  { id: "item_6", type: "error", message: "a warning" },
  { id: "item_7", type: "agent_message", text: "done" },
];

test("run gives the completed items, the last message and the usage", async () => {
  const path = fakeScript(
    turn(
      message("first"),
      { say: { type: "item.started", item: { ...ITEMS[1], status: "in_progress" } } },
      ...ITEMS.map((item) => ({ say: { type: "item.completed", item } })),
    ),
  );
  const thread = new Agent({ agentPathOverride: path }).startThread();
  const result = await thread.run("hello");
  assert.deepEqual(result, {
    finalResponse: "done",
    items: [{ id: "item_0", type: "agent_message", text: "first" }, ...ITEMS],
    usage: USAGE,
  });
});

test("startThread and resumeThread give a thread at once", () => {
  const agent = new Agent();
  assert.equal(agent.startThread().id, null);
  assert.equal(agent.resumeThread("thread-1").id, "thread-1");
});

test("the id of the thread is known from its first event", async () => {
  const path = fakeScript(turn());
  const thread = new Agent({ agentPathOverride: path }).startThread();
  const { events } = await thread.runStreamed("hello");
  assert.equal(thread.id, null);
  await events.next();
  assert.equal(thread.id, "thread-1");
  await events.return?.();
  assert.equal(thread.id, "thread-1");
});

test("runStreamed gives a promise of all events, as the agent wrote them", async () => {
  const said = [
    STARTED,
    TURN,
    { say: { type: "item.updated", item: { id: "item_0", type: "todo_list", items: [] } } },
    { say: { type: "item.completed", item: { id: "item_1", type: "hologram", depth: 3 } } },
    { say: { type: "turn.paused", reason: { code: 7 } } },
    { say: { type: "turn.completed", usage: { ...USAGE, reasoning_output_tokens: 1 } } },
  ];
  const path = fakeScript([READ, ...said]);
  const promise = new Agent({ agentPathOverride: path }).startThread().runStreamed("hello");
  assert.ok(promise instanceof Promise);
  const { events } = await promise;
  assert.deepEqual(
    await all(events),
    said.map(({ say }) => say),
  );
  assert.deepEqual(await all(events), [], "an iteration that is over stays so");
});

test("item types that nobody knows are in the result of run too", async () => {
  const item = { id: "item_1", type: "hologram", depth: 3 };
  const path = fakeScript(turn({ say: { type: "item.completed", item } }));
  const result = await new Agent({ agentPathOverride: path }).startThread().run("hello");
  assert.deepEqual(result.items, [item]);
  assert.equal(result.finalResponse, "");
});

test("a second turn resumes the thread of the first, with the same options", async () => {
  const { path, dump } = fake(turn(message("hi")));
  const thread = new Agent({ agentPathOverride: path }).startThread({ model: "m" });
  await thread.run("one");
  const first = dump();
  await thread.run("two");
  const second = dump();
  assert.deepEqual(first.argv, ["exec", "--experimental-json", "--model", "m"]);
  assert.deepEqual(second.argv, [...first.argv, "resume", "thread-1"]);
  assert.deepEqual([first.stdin, second.stdin], ["one", "two"]);
  assert.equal(thread.id, "thread-1");
});

test("a turn of a thread that runs another one is refused, and harms it not", async () => {
  const path = fakeScript(turn(message("hi")));
  const thread = new Agent({ agentPathOverride: path }).startThread();
  const first = thread.run("one");
  await assert.rejects(thread.run("two"), /a turn of this thread is running/);
  assert.equal((await first).finalResponse, "hi");
  assert.equal((await thread.run("three")).finalResponse, "hi");
});

test("two threads run at once", async () => {
  const path = fakeScript(turn(message("hi")));
  const agent = new Agent({ agentPathOverride: path });
  const results = await Promise.all([1, 2, 3].map(() => agent.startThread().run("hello")));
  assert.deepEqual(
    results.map(({ finalResponse }) => finalResponse),
    ["hi", "hi", "hi"],
  );
});

test("with an output schema finalResponse stays a string", async () => {
  const schema = { type: "object", properties: { a: { type: "number" } } };
  const { path, dump } = fake(turn(message('{"a": 1}')));
  const thread = new Agent({ agentPathOverride: path }).startThread();
  const { finalResponse } = await thread.run("hello", { outputSchema: schema });
  assert.equal(finalResponse, '{"a": 1}');
  assert.deepEqual(dump().schema, schema);
});

test("usage is null where the agent tells none", async () => {
  const path = fakeScript([READ, STARTED, TURN, { say: { type: "turn.completed" } }]);
  const result = await new Agent({ agentPathOverride: path }).startThread().run("hello");
  assert.deepEqual(result, { finalResponse: "", items: [], usage: null });
});

test("steps that are asked for at once come in order", async () => {
  const path = fakeScript(turn());
  const { events } = await new Agent({ agentPathOverride: path }).startThread().runStreamed("x");
  const steps = await Promise.all([events.next(), events.next(), events.next(), events.next()]);
  assert.deepEqual(
    steps.map(({ value, done }) => (done ? "done" : value.type)),
    ["thread.started", "turn.started", COMPLETED.say.type, "done"],
  );
});
