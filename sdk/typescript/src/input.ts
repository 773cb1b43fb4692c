/** The input of a turn: its types, and what the agent is given of it. */

import { ConfigError } from "./errors.js";

/** One entry of an input. */
export type UserInput = { type: "text"; text: string } | { type: "local_image"; path: string };

/** What a turn is about: a text, or texts and images. */
export type Input = string | readonly UserInput[];

/** An input as the agent takes it: the prompt on its standard input, the images as arguments. */
export interface Prompt {
  text: string;
  images: string[];
}

/** Texts are joined by an empty line. Throws ConfigError for anything that is no input. */
export function prompt(input: unknown): Prompt {
  if (typeof input === "string") return { text: input, images: [] };
  if (!Array.isArray(input)) {
    throw new ConfigError("the input must be a string or an array of entries");
  }
  const texts: string[] = [];
  const images: string[] = [];
  for (const [at, entry] of (input as unknown[]).entries()) {
    const { type, text, path } = (entry ?? {}) as Record<string, unknown>;
    if (type === "text" && typeof text === "string") {
      texts.push(text);
    } else if (type === "local_image" && isPath(path)) {
      images.push(path);
    } else {
      throw new ConfigError(
        `input[${at}] must be { type: "text", text } or { type: "local_image", path }`,
      );
    }
  }
  return { text: texts.join("\n\n"), images };
}

function isPath(path: unknown): path is string {
  return typeof path === "string" && path !== "" && !path.includes("\0");
}
