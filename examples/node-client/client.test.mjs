/** Tests of a client in Node, with vitest: put your client in the place of `Client`. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterEach, expect, test } from "vitest";
import WebSocket from "ws";
import { agentProgram, agentServer } from "./agentServer.mjs";

/** The smallest client: one request after the other. It accepts whatever the server asks about. */
class Client {
  #send;
  #heard = [];
  #wake = () => {};
  #ids = 0;

  static async connect(url) {
    const line = new WebSocket(url);
    const client = new Client((text) => line.send(text), () => line.close());
    line.on("message", (text) => client.#hear(text));
    await new Promise((resolve, reject) => line.on("open", resolve).on("error", reject));
    return client.#greet();
  }

  static async start(program, env) {
    const agent = spawn(program, ["app-server"], { env, stdio: ["pipe", "pipe", "inherit"] });
    const exited = once(agent, "exit");
    const client = new Client((text) => agent.stdin.write(`${text}\n`), () => {
      agent.stdin.end();
      return exited;
    });
    createInterface({ input: agent.stdout }).on("line", (text) => client.#hear(text));
    return client.#greet();
  }

  constructor(send, close) {
    this.#send = (message) => send(JSON.stringify(message));
    this.close = close;
  }

  async #greet() {
    await this.ask("initialize", { clientInfo: { name: "my-client", version: "1" } });
    this.#send({ method: "initialized" });
    return this;
  }

  #hear(text) {
    const message = JSON.parse(text);
    if ("method" in message && "id" in message) return this.#answer(message);
    this.#heard.push(message);
    this.#wake();
  }

  async ask(method, params = {}) {
    const id = ++this.#ids;
    this.#send({ id, method, params });
    const answer = await this.#until((one) => one.id === id);
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result;
  }

  /** Play one turn; gives the agent's words. */
  async say(text) {
    const { thread } = await this.ask("thread/start");
    await this.ask("turn/start", { threadId: thread.id, input: [{ type: "text", text }] });
    const words = [];
    await this.#until(({ method, params }) => {
      if (method === "item/completed") words.push(params.item.text ?? "");
      return method === "turn/completed";
    });
    return words.join("");
  }

  /** Answer a request of the server, whose id may be equal to one of ours. */
  #answer({ id, method }) {
    const answer = method.endsWith("/requestApproval")
      ? { result: { decision: "accept" } }
      : { error: { code: -32601, message: "not supported" } };
    this.#send({ id, ...answer });
  }

  async #until(wanted) {
    for (;;) {
      while (this.#heard.length) {
        const one = this.#heard.shift();
        if (wanted(one)) return one;
      }
      await new Promise((resolve) => (this.#wake = resolve));
    }
  }
}

let server;
afterEach(() => server.end());

test("a turn is answered", async () => {
  server = await agentServer("turns/plain-turn");
  const client = await Client.connect(server.url);
  expect(await client.say("hello")).toBe("Hello there.");
  client.close();
});

test("an agent that the client starts", async () => {
  server = await agentProgram("turns/plain-turn");
  const client = await Client.start(server.program, server.env);
  expect(await client.say("hello")).toBe("Hello there.");
  await client.close();
});
