/** The bounds of this package. Times are in milliseconds. */

/** Not a part of the interface: tests make them shorter. */
export const limits = {
  /** From SIGTERM to SIGKILL. */
  grace: 3_000,
  /** How long an agent may live on after the end of its turn, or after it closed its output. */
  linger: 10_000,
  /** How long the output of an agent that has ended is waited for, if another process holds it. */
  afterExit: 500,
  /** How long this process, about to end, waits for an agent to do so. */
  atExit: 500,
  /** Bytes of the longest line. */
  line: 256 * 1024 * 1024,
  /** Bytes of standard error that are kept, from its end. */
  stderr: 64 * 1024,
};
