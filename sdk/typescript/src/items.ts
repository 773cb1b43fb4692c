/**
 * The items of a turn, as `item.started`, `item.updated` and `item.completed` carry them.
 *
 * The agent may send members, and types of items, that are not named here: they are passed on
 * unchanged. Give a `switch` over `item.type` a `default`.
 */

/** How far a command, a change or a tool call is. An agent may have further words for it. */
export type ItemStatus = "in_progress" | "completed" | "failed" | "declined" | (string & {});

/** What the agent says. The last one of a turn is its final response. */
export interface AgentMessageItem {
  id: string;
  type: "agent_message";
  /** JSON text, where the turn has an output schema. */
  text: string;
}

/** A summary of the model's reasoning. */
export interface ReasoningItem {
  id: string;
  type: "reasoning";
  text: string;
}

/** A command that the agent runs. */
export interface CommandExecutionItem {
  id: string;
  type: "command_execution";
  command: string;
  /** What the command has written so far, on both of its output streams. */
  aggregated_output: string;
  /** Null, or left out, while the command runs. */
  exit_code?: number | null;
  status: ItemStatus;
}

/** Changes of files that the agent makes. */
export interface FileChangeItem {
  id: string;
  type: "file_change";
  changes: { kind: "add" | "delete" | "update" | (string & {}); path: string }[];
  status: ItemStatus;
}

/** A call of a tool of an MCP server. */
export interface McpToolCallItem {
  id: string;
  type: "mcp_tool_call";
  server: string;
  tool: string;
  arguments: unknown;
  /** What the tool gave, with the content blocks of MCP; null, or left out, while it runs. */
  result?: { content: unknown[]; structured_content?: unknown } | null;
  /** Why there is no result. */
  error?: { message: string } | null;
  status: ItemStatus;
}

/** A search of the web. */
export interface WebSearchItem {
  id: string;
  type: "web_search";
  query: string;
}

/** The agent's plan. */
export interface TodoListItem {
  id: string;
  type: "todo_list";
  items: { text: string; completed: boolean }[];
}

/** Something went wrong which does not end the turn. */
export interface ErrorItem {
  id: string;
  type: "error";
  message: string;
}

/** Any item; told apart by `type`. */
export type ThreadItem =
  | AgentMessageItem
  | ReasoningItem
  | CommandExecutionItem
  | FileChangeItem
  | McpToolCallItem
  | WebSearchItem
  | TodoListItem
  | ErrorItem;
