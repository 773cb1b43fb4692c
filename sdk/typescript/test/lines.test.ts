/** How the agent's output becomes lines, however it is cut. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { Agent } from "../src/index.js";
import { LineSplitter } from "../src/lines.js";
import { fakeScript, message, READ, STARTED, TURN, turn, USAGE, type Step } from "./fake.js";

function split(...chunks: (string | Buffer)[]): string[] {
  const splitter = new LineSplitter(1 << 20);
  const lines = chunks.flatMap((chunk) => splitter.push(Buffer.from(chunk)));
  return [...lines, ...splitter.end()];
}

test("lines end with LF, with or without CR", () => {
  assert.deepEqual(split("a\nb\r\n\n\r\nc"), ["a", "b", "", "", "c"]);
  assert.deepEqual(split("a\u2028b\u0085c\u000bd\re\n"), ["a\u2028b\u0085c\u000bd\re"]);
  assert.deepEqual(split(""), []);
  assert.deepEqual(split("a\n"), ["a"]);
});

test("however the bytes are cut, the lines are the same", () => {
  const text = Buffer.from("ü\r\n😀\n\n\u2028x");
  for (let size = 1; size <= text.length; size++) {
    const chunks: Buffer[] = [];
    for (let at = 0; at < text.length; at += size) chunks.push(text.subarray(at, at + size));
    assert.deepEqual(split(...chunks), ["ü", "😀", "", "\u2028x"], `chunks of ${size}`);
  }
});

test("bytes that are no UTF-8 become U+FFFD", () => {
  assert.deepEqual(split(Buffer.from([0x61, 0xff, 0x62, 0x0a])), ["a\ufffdb"]);
});

test("a line that is too long is refused, not kept", () => {
  const splitter = new LineSplitter(10);
  assert.deepEqual(splitter.push(Buffer.from("123456789\n12345")), ["123456789"]);
  assert.throws(() => splitter.push(Buffer.from("678901")), RangeError);
});

async function response(steps: Step[]): Promise<string> {
  const path = fakeScript(steps);
  const result = await new Agent({ agentPathOverride: path }).startThread().run("hello");
  assert.deepEqual(result.usage, USAGE);
  return result.finalResponse;
}

test("a message of many megabytes is one line", async () => {
  const text = "ü".repeat(8 << 20);
  assert.equal((await response(turn(message(text)))).length, text.length);
});

test("blank lines say nothing", async () => {
  const blank: Step = { write: "\n  \n\r\n\t\n" };
  assert.equal(
    await response([READ, blank, STARTED, TURN, message("hi"), blank, ...turn().slice(3)]),
    "hi",
  );
});

test("CRLF, and a last line that nothing ends", async () => {
  const events = turn(message("a\u2028b")).slice(1) as { say: unknown }[];
  const text = events.map(({ say }) => JSON.stringify(say)).join("\r\n");
  assert.equal(await response([READ, { write: text }]), "a\u2028b");
});

test("an event that comes in pieces", async () => {
  const [, started, begun, said, completed] = turn(message("hi")) as { say: unknown }[];
  const text = [started, begun, said, completed].map((s) => JSON.stringify(s?.say)).join("\n");
  const pieces: Step[] = (text.match(/.{1,7}|\n/gs) ?? []).map((write) => ({ write }));
  assert.equal(await response([READ, ...pieces]), "hi");
});
