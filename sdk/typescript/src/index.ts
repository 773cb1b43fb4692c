/** Drives the agent: `new Agent().startThread().run("…")`. */

export { Agent } from "./agent.js";
export {
  AbortError,
  AgentError,
  AgentNotFoundError,
  ConfigError,
  ProcessError,
  ProtocolError,
  TurnFailedError,
  type ExitDetails,
} from "./errors.js";
export type {
  ItemCompletedEvent,
  ItemStartedEvent,
  ItemUpdatedEvent,
  ThreadError,
  ThreadErrorEvent,
  ThreadEvent,
  ThreadStartedEvent,
  TurnCompletedEvent,
  TurnFailedEvent,
  TurnStartedEvent,
  Usage,
} from "./events.js";
export type { Input, UserInput } from "./input.js";
export type {
  AgentMessageItem,
  CommandExecutionItem,
  ErrorItem,
  FileChangeItem,
  ItemStatus,
  McpToolCallItem,
  ReasoningItem,
  ThreadItem,
  TodoListItem,
  WebSearchItem,
} from "./items.js";
export type {
  AgentOptions,
  ApprovalMode,
  ConfigValue,
  ModelReasoningEffort,
  SandboxMode,
  ThreadOptions,
  TurnOptions,
  WebSearchMode,
} from "./options.js";
export type { RunResult, RunStreamedResult, Thread } from "./thread.js";
