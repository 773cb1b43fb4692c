/**
 * The events of a turn, in the order in which the agent sends them: `thread.started`,
 * `turn.started`, events of items, then `turn.completed` or `turn.failed`.
 *
 * Members and types that are not named here are passed on unchanged.
 */

import type { ThreadItem } from "./items.js";

/** The first event: the thread exists, and this is its id. */
export interface ThreadStartedEvent {
  type: "thread.started";
  thread_id: string;
}

/** The agent begins to work on the input. */
export interface TurnStartedEvent {
  type: "turn.started";
}

/** Tokens, as the agent counts them. */
export interface Usage {
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
}

/** The turn has ended well. */
export interface TurnCompletedEvent {
  type: "turn.completed";
  usage: Usage;
}

/** Why a turn failed. */
export interface ThreadError {
  message: string;
}

/** The turn has failed. */
export interface TurnFailedEvent {
  type: "turn.failed";
  error: ThreadError;
}

/** An item has begun. */
export interface ItemStartedEvent {
  type: "item.started";
  item: ThreadItem;
}

/** An item has changed. */
export interface ItemUpdatedEvent {
  type: "item.updated";
  item: ThreadItem;
}

/** An item is as it will stay. */
export interface ItemCompletedEvent {
  type: "item.completed";
  item: ThreadItem;
}

/** A fatal error, if it is the last event. Some agents also report that they try again with it. */
export interface ThreadErrorEvent {
  type: "error";
  message: string;
}

/** Any event; told apart by `type`. */
export type ThreadEvent =
  | ThreadStartedEvent
  | TurnStartedEvent
  | TurnCompletedEvent
  | TurnFailedEvent
  | ItemStartedEvent
  | ItemUpdatedEvent
  | ItemCompletedEvent
  | ThreadErrorEvent;
