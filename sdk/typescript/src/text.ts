/** Texts of others in messages of errors, which end up in terminals and logs. */

import { stripVTControlCharacters } from "node:util";

/** Without control characters, but for tabs and ends of lines, and without terminal sequences. */
export function harmless(text: string): string {
  return stripVTControlCharacters(text).replace(/[^\P{Cc}\t\n]/gu, "");
}
