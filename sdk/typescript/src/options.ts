/** What callers give: options of the client, of a thread, of a turn. Here are only their types. */

/** When the agent asks before it acts. */
export type ApprovalMode = "never" | "on-request" | "on-failure" | "untrusted";

/** What commands of the agent may touch. */
export type SandboxMode = "read-only" | "workspace-write" | "danger-full-access";

/** How long the model thinks. */
export type ModelReasoningEffort = "minimal" | "low" | "medium" | "high" | "xhigh";

/** Whether the agent may search the web, and whether it is given stored pages or fresh ones. */
export type WebSearchMode = "disabled" | "cached" | "live";

/** A value of `config`: what TOML can say. */
export type ConfigValue =
  | string
  | number
  | bigint
  | boolean
  | readonly ConfigValue[]
  | { readonly [key: string]: ConfigValue | undefined };

/** Options of `new Agent(…)`. */
export interface AgentOptions {
  /** Address of the model provider's API; left out: the agent's own choice. */
  baseUrl?: string | undefined;
  /** Key for it; left out: PROVIDER_API_KEY of the agent's environment. */
  apiKey?: string | undefined;
  /** The agent's binary; left out: `agent`, found by PATH. */
  agentPathOverride?: string | undefined;
  /** The agent's environment. Where it is given, nothing of this process's own is inherited. */
  env?: Readonly<Record<string, string>> | undefined;
  /**
   * Settings that go before those of the agent's config.toml, for example
   * `{ sandbox_workspace_write: { network_access: true } }`.
   */
  config?: { readonly [key: string]: ConfigValue | undefined } | undefined;
}

/** Options of `startThread` and `resumeThread`; they hold for each turn of the thread. */
export interface ThreadOptions {
  /** Where the agent works; left out: the current directory of this process. */
  workingDirectory?: string | undefined;
  sandboxMode?: SandboxMode | undefined;
  model?: string | undefined;
  /** Without it the agent refuses to work outside a Git repository. */
  skipGitRepoCheck?: boolean | undefined;
  modelReasoningEffort?: ModelReasoningEffort | undefined;
  /** Whether commands may use the network, in the sandbox `workspace-write`. */
  networkAccessEnabled?: boolean | undefined;
  webSearchMode?: WebSearchMode | undefined;
  approvalPolicy?: ApprovalMode | undefined;
  /** Directories beside the working directory. */
  additionalDirectories?: readonly string[] | undefined;
}

/** Options of `run` and `runStreamed`. */
export interface TurnOptions {
  /** A JSON Schema, which the final response then follows. */
  outputSchema?: Readonly<Record<string, unknown>> | undefined;
  /** Cancels the turn; the agent and the commands it runs are ended. */
  signal?: AbortSignal | undefined;
}
