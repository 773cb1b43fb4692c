/** What the compiler is told: this file is a test by being compiled. */

import { test } from "node:test";

import {
  Agent,
  type AgentMessageItem,
  type AgentOptions,
  type ApprovalMode,
  type CommandExecutionItem,
  type ErrorItem,
  type FileChangeItem,
  type Input,
  type ItemCompletedEvent,
  type ItemStartedEvent,
  type ItemUpdatedEvent,
  type McpToolCallItem,
  type ModelReasoningEffort,
  type ReasoningItem,
  type RunResult,
  type RunStreamedResult,
  type SandboxMode,
  type ThreadError,
  type ThreadErrorEvent,
  type ThreadEvent,
  type ThreadItem,
  type ThreadOptions,
  type ThreadStartedEvent,
  type TodoListItem,
  type TurnCompletedEvent,
  type TurnFailedEvent,
  type TurnOptions,
  type TurnStartedEvent,
  type Usage,
  type UserInput,
  type WebSearchItem,
  type WebSearchMode,
} from "../src/index.js";

/** True for two types that are the same, member by member. */
type Same<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const holds = <T extends true>(): T | undefined => undefined;

/** The members of `ThreadItem["type"]` and so on are the words of the specification. */
export const told = [
  holds<
    Same<
      ThreadEvent["type"],
      | "thread.started"
      | "turn.started"
      | "item.started"
      | "item.updated"
      | "item.completed"
      | "turn.completed"
      | "turn.failed"
      | "error"
    >
  >(),
  holds<
    Same<
      ThreadItem["type"],
      | "agent_message"
      | "reasoning"
      | "command_execution"
      | "file_change"
      | "mcp_tool_call"
      | "web_search"
      | "todo_list"
      | "error"
    >
  >(),
  holds<Same<UserInput["type"], "text" | "local_image">>(),
  holds<Same<SandboxMode, "read-only" | "workspace-write" | "danger-full-access">>(),
  holds<Same<ApprovalMode, "never" | "on-request" | "on-failure" | "untrusted">>(),
  holds<Same<ModelReasoningEffort, "minimal" | "low" | "medium" | "high" | "xhigh">>(),
  holds<Same<WebSearchMode, "disabled" | "cached" | "live">>(),
  holds<Same<keyof Usage, "input_tokens" | "cached_input_tokens" | "output_tokens">>(),
  holds<Same<keyof RunResult, "finalResponse" | "items" | "usage">>(),
  holds<Same<RunResult["usage"], Usage | null>>(),
  holds<Same<RunResult["finalResponse"], string>>(),
  holds<Same<keyof RunStreamedResult, "events">>(),
  holds<Same<keyof TurnOptions, "outputSchema" | "signal">>(),
  holds<Same<keyof AgentOptions, "baseUrl" | "apiKey" | "agentPathOverride" | "env" | "config">>(),
  holds<
    Same<
      keyof ThreadOptions,
      | "workingDirectory"
      | "sandboxMode"
      | "model"
      | "skipGitRepoCheck"
      | "modelReasoningEffort"
      | "networkAccessEnabled"
      | "webSearchMode"
      | "approvalPolicy"
      | "additionalDirectories"
    >
  >(),
];

export const items: ThreadItem[] = [
  { id: "1", type: "agent_message", text: "" } satisfies AgentMessageItem,
  { id: "2", type: "reasoning", text: "" } satisfies ReasoningItem,
  {
    id: "3",
    type: "command_execution",
    command: "ls",
    aggregated_output: "",
    exit_code: null,
    status: "in_progress",
  } satisfies CommandExecutionItem,
  {
    id: "4",
    type: "file_change",
    changes: [{ kind: "add", path: "/a" }],
    status: "completed",
  } satisfies FileChangeItem,
  {
    id: "5",
    type: "mcp_tool_call",
    server: "s",
    tool: "t",
    arguments: {},
    result: null,
    status: "failed",
  } satisfies McpToolCallItem,
  { id: "6", type: "web_search", query: "" } satisfies WebSearchItem,
  { id: "7", type: "todo_list", items: [{ text: "", completed: true }] } satisfies TodoListItem,
  { id: "8", type: "error", message: "" } satisfies ErrorItem,
];

const item: ThreadItem = { id: "1", type: "agent_message", text: "" };
const usage: Usage = { input_tokens: 1, cached_input_tokens: 0, output_tokens: 1 };
const error: ThreadError = { message: "" };
export const events: ThreadEvent[] = [
  { type: "thread.started", thread_id: "t" } satisfies ThreadStartedEvent,
  { type: "turn.started" } satisfies TurnStartedEvent,
  { type: "item.started", item } satisfies ItemStartedEvent,
  { type: "item.updated", item } satisfies ItemUpdatedEvent,
  { type: "item.completed", item } satisfies ItemCompletedEvent,
  { type: "turn.completed", usage } satisfies TurnCompletedEvent,
  { type: "turn.failed", error } satisfies TurnFailedEvent,
  { type: "error", message: "" } satisfies ThreadErrorEvent,
];

export const inputs: Input[] = [
  "text",
  [
    { type: "text", text: "a" },
    { type: "local_image", path: "./a.png" },
  ],
  // @ts-expect-error The session protocol spells it so; here it is local_image.
  [{ type: "localImage", path: "a.png" }],
  // @ts-expect-error An input of the session protocol alone.
  [{ type: "image", url: "data:" }],
];

// @ts-expect-error As above, for one entry.
export const entry: UserInput = { type: "localImage", path: "a.png" };
// @ts-expect-error Not among the four of this surface.
export const approval: ApprovalMode = "reject";
// @ts-expect-error There is a thread at once, and no promise of one.
void new Agent().startThread().then;

/** Switching on the type narrows it, with no type assertion. */
export function texts(event: ThreadEvent): string {
  switch (event.type) {
    case "thread.started":
      return event.thread_id;
    case "item.completed":
      return event.item.type === "agent_message" ? event.item.text : event.item.id;
    case "turn.failed":
      return event.error.message;
    default:
      return event.type;
  }
}

/** The calls of the specification, with every option. Compiled, never called. */
export async function calls(controller: AbortController): Promise<RunResult> {
  const options: AgentOptions = {
    baseUrl: "http://127.0.0.1:1/v1",
    apiKey: "k",
    agentPathOverride: "/bin/agent",
    env: { A: "b" },
    config: {
      show_raw_agent_reasoning: true,
      sandbox_workspace_write: { network_access: true },
      list: [1, "a", { b: 2n }],
    },
  };
  const thread = new Agent(options).startThread({
    workingDirectory: "/w",
    sandboxMode: "read-only",
    model: "m",
    skipGitRepoCheck: true,
    modelReasoningEffort: "xhigh",
    networkAccessEnabled: false,
    webSearchMode: "cached",
    approvalPolicy: "never",
    additionalDirectories: ["/a"],
  });
  const turn: TurnOptions = { outputSchema: { type: "object" }, signal: controller.signal };
  const { events }: RunStreamedResult = await thread.runStreamed("hello", turn);
  for await (const event of events) texts(event);
  const id: string | null = thread.id;
  return new Agent().resumeThread(id ?? "", { model: "m" }).run([{ type: "text", text: "a" }]);
}

test("the types are those of the specification", () => undefined);
