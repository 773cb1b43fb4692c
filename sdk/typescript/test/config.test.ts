/** `config` becomes overrides: dotted paths, TOML values. */

import assert from "node:assert/strict";
import { test } from "node:test";
import vm from "node:vm";

import { overrides } from "../src/config.js";
import { ConfigError } from "../src/errors.js";

const CASES: [string, Record<string, unknown>, string[]][] = [
  ["nothing", {}, []],
  ["what is undefined", { a: undefined, b: { c: undefined, d: 1 } }, ["b.d=1"]],
  ["booleans", { show_raw_agent_reasoning: true }, ["show_raw_agent_reasoning=true"]],
  [
    "nested objects",
    { sandbox_workspace_write: { network_access: false, a: { "b-c": 1 } } },
    ["sandbox_workspace_write.network_access=false", "sandbox_workspace_write.a.b-c=1"],
  ],
  ["an empty table", { a: { b: {} } }, ["a.b={}"]],
  [
    "numbers",
    { a: 1, b: -2.5, c: 1e21, d: 2 ** 53, e: 1e-7 },
    [...["a=1", "b=-2.5", "c=1e+21", "d=9.007199254740992e+15", "e=1e-7"]],
  ],
  ["negative zero", { a: -0 }, ["a=-0.0"]],
  ["bigints", { a: 2n ** 63n - 1n }, ["a=9223372036854775807"]],
  [
    "arrays",
    { a: [1, "x", [true], { k: 1, "a b": 2 }, {}] },
    ['a=[1, "x", [true], {k = 1, "a b" = 2}, {}]'],
  ],
  ["an empty array", { a: [] }, ["a=[]"]],
  [
    "strings",
    { a: 'q"\\\n\t\u0000\u007f ü\u2028😀' },
    ['a="q\\"\\\\\\n\\t\\u0000\\u007f ü\u2028😀"'],
  ],
  ["a string that looks like something else", { a: "true", b: "1=2" }, ['a="true"', 'b="1=2"']],
  [
    "keys that are no bare words",
    { "a.b": { c: 1 }, "sp ace": 1, "a=b": 2, ü: 3 },
    [...['"a.b".c=1', '"sp ace"=1', '"a=b"=2', '"ü"=3']],
  ],
  [
    "keys with quotes",
    { 'say "x"': 1, "back\\slash": 2, "it's": 3, "\n": 4, "'\"": 5 },
    [...["'say \"x\"'=1", "'back\\slash'=2", '"it\'s"=3', '"\\n"=4', '"\'\\""=5']],
  ],
  ["the key __proto__", JSON.parse('{"__proto__": {"a": 1}}'), ["__proto__.a=1"]],
  ["objects without a prototype", Object.assign(Object.create(null), { a: 1 }), ["a=1"]],
  ["objects of another realm", vm.runInNewContext("({a: {b: [1]}})"), ["a.b=[1]"]],
];
for (const [name, config, expected] of CASES) {
  test(`overrides of ${name}`, () => assert.deepEqual(overrides(config), expected));
}

const loop: Record<string, unknown> = {};
loop["self"] = { loop };
const list: unknown[] = [];
list.push(list);
const REFUSED: [string, unknown, RegExp][] = [
  ["null", null, /config must be a plain object/],
  ["an array", [], /config must be a plain object/],
  ["a string", "a=1", /config must be a plain object/],
  ["a null", { a: { b: null } }, /^a\.b: cannot be null$/],
  ["not a number", { a: NaN }, /^a: must be a finite number$/],
  ["infinity", { a: [1, Infinity] }, /^a\[1\]: must be a finite number$/],
  ["a function", { a: () => 1 }, /^a: cannot be function$/],
  ["a symbol", { a: Symbol("x") }, /^a: cannot be symbol$/],
  ["a date", { a: new Date(0) }, /^a: must be a string, number, boolean, array or plain object$/],
  ["a map", { a: new Map() }, /^a: must be a string/],
  ["an empty key", { a: { "": 1 } }, /^a: a key must be a non-empty string$/],
  ["undefined in an array", { a: [undefined] }, /^a\[0\]: cannot be undefined$/],
  ["a hole in an array", { a: new Array(1) }, /^a\[0\]: cannot be undefined$/],
  ["half a character", { a: "\ud800" }, /^a: half of a surrogate pair$/],
  ["half a character in a key", { "\udc00": 1 }, /half of a surrogate pair$/],
  ["a bigint of more than 64 bits", { a: 2n ** 63n }, /^a: 9223372036854775808 does not fit/],
  ["a loop", loop, /^self\.loop: the value contains itself$/],
  ["a loop of arrays", { a: list }, /^a\[0\]: the value contains itself$/],
];
for (const [name, config, message] of REFUSED) {
  test(`${name} is refused, with its path`, () => {
    assert.throws(
      () => overrides(config),
      (error: unknown) => {
        assert.ok(error instanceof ConfigError);
        assert.match(error.message, message);
        return true;
      },
    );
  });
}

test("one object at two places is no loop", () => {
  const shared = { x: 1 };
  assert.deepEqual(overrides({ a: shared, b: [shared, shared] }), [
    ...["a.x=1", "b=[{x = 1}, {x = 1}]"],
  ]);
});
