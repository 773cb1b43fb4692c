/** Bytes to lines. A line ends with LF, before which a CR is left out; nothing else ends one. */

const LF = 0x0a;

/** Splits a stream of bytes, however it is cut into chunks. */
export class LineSplitter {
  #open: Buffer[] = [];
  #size = 0;
  readonly #limit: number;

  /** `limit`: bytes of the longest line. */
  constructor(limit: number) {
    this.#limit = limit;
  }

  /** Give the lines that this chunk ends. Throws RangeError for one that is too long. */
  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let from = 0;
    for (let at = chunk.indexOf(LF); at !== -1; at = chunk.indexOf(LF, from)) {
      this.#keep(chunk.subarray(from, at));
      lines.push(this.#take());
      from = at + 1;
    }
    if (from < chunk.length) this.#keep(chunk.subarray(from));
    return lines;
  }

  /** Give the last line, if nothing ended it. */
  end(): string[] {
    return this.#size === 0 ? [] : [this.#take()];
  }

  #keep(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#limit) {
      throw new RangeError(`a line of more than ${this.#limit} bytes`);
    }
    this.#open.push(part);
  }

  #take(): string {
    const line = Buffer.concat(this.#open, this.#size).toString("utf8");
    this.#open = [];
    this.#size = 0;
    return line.endsWith("\r") ? line.slice(0, -1) : line;
  }
}
