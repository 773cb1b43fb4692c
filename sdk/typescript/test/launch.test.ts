/** How the agent is started: its arguments, its environment, its standard input; row by row. */

import assert from "node:assert/strict";
import { existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { inspect } from "node:util";

import {
  Agent,
  AgentNotFoundError,
  ConfigError,
  type AgentOptions,
  type Input,
  type ThreadOptions,
} from "../src/index.js";
import { all, fake, message, turn, type Dump } from "./fake.js";

/** Play a turn; give how the agent was started. */
async function started(
  options: AgentOptions,
  thread: ThreadOptions = {},
  input: Input = "hello",
): Promise<Dump> {
  const { path, dump } = fake(turn());
  await new Agent({ agentPathOverride: path, ...options }).startThread(thread).run(input);
  return dump();
}

/** The arguments after those that are always there. */
async function told(thread: ThreadOptions, input?: Input): Promise<string[]> {
  const { argv } = await started({}, thread, input);
  assert.deepEqual(argv.slice(0, 2), ["exec", "--experimental-json"]);
  return argv.slice(2);
}

const ROWS: [keyof ThreadOptions, ThreadOptions, string[]][] = [
  ["workingDirectory", { workingDirectory: "/w x" }, ["--cd", "/w x"]],
  ["sandboxMode", { sandboxMode: "read-only" }, ["--sandbox", "read-only"]],
  ["model", { model: "m" }, ["--model", "m"]],
  ["skipGitRepoCheck", { skipGitRepoCheck: true }, ["--skip-git-repo-check"]],
  [
    "modelReasoningEffort",
    { modelReasoningEffort: "high" },
    ["--config", 'model_reasoning_effort="high"'],
  ],
  [
    "networkAccessEnabled",
    { networkAccessEnabled: false },
    ["--config", "sandbox_workspace_write.network_access=false"],
  ],
  ["webSearchMode", { webSearchMode: "live" }, ["--config", 'web_search="live"']],
  [
    "approvalPolicy",
    { approvalPolicy: "on-request" },
    ["--config", 'approval_policy="on-request"'],
  ],
  [
    "additionalDirectories",
    { additionalDirectories: ["/a", "b"] },
    ["--add-dir", "/a", "--add-dir", "b"],
  ],
];
for (const [name, options, expected] of ROWS) {
  test(`${name} is an argument`, async () => assert.deepEqual(await told(options), expected));
}

test("what is left out, empty or false says nothing", async () => {
  assert.deepEqual(await told({}), []);
  assert.deepEqual(
    await told({
      model: "",
      workingDirectory: "",
      skipGitRepoCheck: false,
      additionalDirectories: [],
      sandboxMode: undefined,
      networkAccessEnabled: undefined,
    }),
    [],
  );
});

test("all at once, in the order that the agent takes", async () => {
  const { path, dump } = fake(turn());
  const agent = new Agent({ agentPathOverride: path, config: { a: { b: 1 }, c: "d" } });
  const thread = agent.resumeThread("thread-1", Object.assign({}, ...ROWS.map((row) => row[1])));
  const input: Input = [
    { type: "text", text: "look" },
    { type: "local_image", path: "./one.png" },
    { type: "text", text: "at these" },
    { type: "local_image", path: "/two.png" },
  ];
  await thread.run(input, { outputSchema: { type: "object" } });
  const { argv, stdin } = dump();
  const schema = argv[argv.indexOf("--output-schema") + 1] ?? "";
  assert.deepEqual(argv, [
    ...["exec", "--experimental-json", "--config", "a.b=1", "--config", 'c="d"'],
    ...["--model", "m", "--sandbox", "read-only", "--cd", "/w x"],
    ...["--add-dir", "/a", "--add-dir", "b", "--skip-git-repo-check", "--output-schema", schema],
    ...["--config", 'model_reasoning_effort="high"'],
    ...["--config", "sandbox_workspace_write.network_access=false"],
    ...["--config", 'web_search="live"', "--config", 'approval_policy="on-request"'],
    ...["resume", "thread-1", "--image", "./one.png", "--image", "/two.png"],
  ]);
  assert.equal(stdin, "look\n\nat these");
});

test("the prompt is on standard input, as it is, and in no argument", async () => {
  for (const input of ["-", "--model x", "a\0b", "ü\u2028\n", "", "  "]) {
    const { argv, stdin } = await started({}, {}, input);
    assert.equal(stdin, input);
    assert.equal(argv.length, 2);
  }
});

test("a path that looks like an option stays a path", async () => {
  const options = { workingDirectory: "-w", additionalDirectories: ["--add"] };
  assert.deepEqual(await told(options, [{ type: "local_image", path: "-i.png" }]), [
    ...["--cd", "./-w", "--add-dir", "./--add", "--image", "./-i.png"],
  ]);
});

test("a misspelt word is refused when the thread is made, with the word that was meant", () => {
  const wrong: [unknown, RegExp][] = [
    [{ sandboxMode: "readonly" }, /sandboxMode: .*not "readonly"; did you mean "read-only"\?/],
    [{ sandboxMode: "--x" }, /sandboxMode: must be one of read-only, workspace-write/],
    [{ approvalPolicy: "onRequest" }, /approvalPolicy: .*did you mean "on-request"\?/],
    [{ approvalPolicy: 'never"\nmodel="other' }, /approvalPolicy: must be one of never/],
    [{ modelReasoningEffort: "High" }, /modelReasoningEffort: .*did you mean "high"\?/],
    [{ webSearchMode: "on" }, /webSearchMode: must be one of disabled, cached, live, not "on"$/],
  ];
  for (const [options, message] of wrong) {
    const start = () => new Agent().startThread(options as ThreadOptions);
    assert.throws(
      start,
      (error: Error) => error instanceof ConfigError && message.test(error.message),
    );
  }
});

test("options that cannot be used are refused by the call that gives them", () => {
  const agent = new Agent();
  const wrong: unknown[] = [
    { model: "--last" },
    { model: 5 },
    { model: "a\0b" },
    { skipGitRepoCheck: "yes" },
    { additionalDirectories: "/a" },
    { additionalDirectories: [""] },
    "read-only",
    ["read-only"],
  ];
  for (const options of wrong) {
    assert.throws(() => agent.startThread(options as ThreadOptions), ConfigError, inspect(options));
    const resume = () => agent.resumeThread("id", options as ThreadOptions);
    assert.throws(resume, ConfigError);
  }
  for (const id of ["", " ", "--last", "-", "a\0b", null, undefined, 7]) {
    assert.throws(() => agent.resumeThread(id as string), ConfigError, String(id));
  }
  for (const options of [{ apiKey: 1 }, { baseUrl: {} }, { env: [] }, { env: { A: 1 } }, 7, []]) {
    assert.throws(() => new Agent(options as AgentOptions), ConfigError, inspect(options));
  }
});

test("an input that is none is refused, and nothing is started", async () => {
  const { path, folder } = fake(turn());
  const thread = new Agent({ agentPathOverride: path }).startThread();
  const wrong: unknown[] = [
    null,
    7,
    { type: "text", text: "a" },
    [{ type: "localImage", path: "a" }],
    [{ type: "text" }],
    [{ type: "local_image", path: "" }],
    [{ type: "local_image", path: "a\0b" }],
    ["text"],
    [null],
  ];
  for (const input of wrong) {
    await assert.rejects(thread.run(input as Input), ConfigError, inspect(input));
    await assert.rejects(thread.runStreamed(input as Input), ConfigError, inspect(input));
  }
  for (const outputSchema of [null, [], "{}", true, new Date(), { a: 1n }] as object[]) {
    const schema = outputSchema as Record<string, unknown>;
    await assert.rejects(thread.run("x", { outputSchema: schema }), ConfigError);
  }
  await assert.rejects(thread.run("x", { signal: {} as AbortSignal }), ConfigError);
  assert.ok(!existsSync(join(folder, "dump.json")));
});

test("nothing is started before the first step of the iteration", async () => {
  const { path, folder } = fake(turn());
  const { events } = await new Agent({ agentPathOverride: path }).startThread().runStreamed("x");
  await events.return?.();
  assert.deepEqual(await all(events), []);
  assert.ok(!existsSync(join(folder, "dump.json")));
});

test("without env the agent has this process's environment, as it is at the turn", async () => {
  const { path, dump } = fake(turn());
  const thread = new Agent({ agentPathOverride: path }).startThread();
  process.env["AGENT_SDK_TEST_MARKER"] = "seen";
  try {
    await thread.run("hello");
  } finally {
    delete process.env["AGENT_SDK_TEST_MARKER"];
  }
  assert.equal(dump().env["AGENT_SDK_TEST_MARKER"], "seen");
});

test("env can be this process's own", async () => {
  const { env } = await started({ env: process.env as Record<string, string> });
  assert.equal(env["PATH"], process.env["PATH"]);
});

test("with env it has nothing else, not even a key of this process", async () => {
  process.env["PROVIDER_API_KEY"] = "key of the parent";
  try {
    const { env } = await started({ env: { ONLY: "this" } });
    assert.deepEqual(env, { ONLY: "this" });
  } finally {
    delete process.env["PROVIDER_API_KEY"];
  }
});

test("baseUrl and apiKey are variables, which win over env, and no arguments", async () => {
  const apiKey = "sk-secret-0123456789";
  const { argv, env } = await started({
    apiKey,
    baseUrl: "http://127.0.0.1:1/v1",
    env: { PROVIDER_API_KEY: "other", PROVIDER_BASE_URL: "other", A: "b" },
  });
  assert.deepEqual(env, {
    PROVIDER_API_KEY: apiKey,
    PROVIDER_BASE_URL: "http://127.0.0.1:1/v1",
    A: "b",
  });
  assert.ok(!argv.join(" ").includes(apiKey));
});

test("PROVIDER_API_KEY of the environment reaches the agent", async () => {
  const { env } = await started({ env: { PROVIDER_API_KEY: "from env" } });
  assert.equal(env["PROVIDER_API_KEY"], "from env");
});

test("an agent that is printed does not show its key", () => {
  const agent = new Agent({ apiKey: "sk-secret-0123456789" });
  for (const shown of [
    inspect(agent, { showHidden: true, depth: 9 }),
    inspect(agent.startThread(), { showHidden: true, depth: 9 }),
    JSON.stringify([agent, agent.startThread()]),
  ]) {
    assert.ok(!shown.includes("secret"), shown);
  }
});

test("options that are changed afterwards change nothing", async () => {
  const { path, dump } = fake(turn());
  const options = { agentPathOverride: path, config: { a: 1 }, env: { A: "1" } };
  const agent = new Agent(options);
  const directories = ["/a"];
  const thread = agent.startThread({ additionalDirectories: directories });
  directories.push("/b");
  options.config.a = 2;
  options.agentPathOverride = "/nothing";
  await thread.run("x");
  assert.deepEqual(dump().argv.slice(2), ["--config", "a=1", "--add-dir", "/a"]);
});

test("the agent works in the current directory of this process", async () => {
  assert.equal((await started({})).cwd, process.cwd());
});

test("the schema is in a file that nobody else can read, and is gone after the turn", async () => {
  const { path, dump } = fake(turn(message("{}")));
  const thread = new Agent({ agentPathOverride: path }).startThread();
  const { events } = await thread.runStreamed("x", { outputSchema: { type: "object" } });
  await events.next();
  const { argv } = dump();
  const file = argv[argv.indexOf("--output-schema") + 1] ?? "";
  assert.equal(statSync(dirname(file)).mode & 0o777, 0o700);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  await all(events);
  assert.ok(!existsSync(dirname(file)));
});

test("without agentPathOverride the binary is `agent`, found by PATH", async () => {
  const { path, folder, dump } = fake(turn());
  const bin = join(folder, "bin");
  mkdirSync(bin);
  symlinkSync(path, join(bin, "agent"));
  // The program finds its steps beside the name by which it was started.
  symlinkSync(`${path}.json`, join(bin, "agent.json"));
  const before = process.env["PATH"];
  try {
    process.env["PATH"] = `${bin}:${before}`;
    await new Agent().startThread().run("x");
    assert.equal(dump().env["PATH"], process.env["PATH"]);
    // An environment without PATH says nothing on where this process finds programs.
    await new Agent({ env: { A: "b" } }).startThread().run("x");
    assert.deepEqual(dump().env, { A: "b" });
    process.env["PATH"] = "/nowhere";
    await new Agent({ env: { PATH: bin } }).startThread().run("x");
    await assert.rejects(new Agent().startThread().run("x"), {
      name: "AgentNotFoundError",
      code: "ENOENT",
      message: /no program "agent" on PATH.*agentPathOverride/,
    });
  } finally {
    process.env["PATH"] = before;
  }
});

test("a binary that is not there, or is none, is told with its path", async () => {
  const { folder } = fake([]);
  const plain = join(folder, "plain");
  writeFileSync(plain, "no program", { mode: 0o644 });
  for (const [path, code] of [
    [join(folder, "missing"), "ENOENT"],
    [plain, "EACCES"],
    [folder, "EACCES"],
  ] as const) {
    const thread = new Agent({ agentPathOverride: path }).startThread();
    for (const attempt of [1, 2]) {
      await assert.rejects(thread.run("x"), (error: unknown) => {
        assert.ok(error instanceof AgentNotFoundError, String(attempt));
        assert.deepEqual([error.path, error.code], [path, code]);
        return error.message.includes(path);
      });
    }
    const { events } = await thread.runStreamed("x");
    await assert.rejects(all(events), AgentNotFoundError);
  }
});

test("more arguments than a process can have are an error of the turn", async () => {
  const { path } = fake(turn());
  const thread = new Agent({ agentPathOverride: path }).startThread({ model: "m".repeat(4 << 20) });
  await assert.rejects(thread.run("x"), { name: "ProcessError", message: /could not be started/ });
});
