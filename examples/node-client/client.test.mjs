/** Tests of a client in Node, with vitest: put your client in the place of `Client`. */

import { afterEach, expect, test } from "vitest";
import WebSocket from "ws";
import { agentServer } from "./agentServer.mjs";

/** The smallest client: one request after the other. It accepts whatever the server asks about. */
class Client {
  #line;
  #heard = [];
  #wake = () => {};
  #ids = 0;

  static async connect(url) {
    const client = new Client();
    client.#line = new WebSocket(url);
    client.#line.on("message", (text) => {
      const message = JSON.parse(text);
      if ("method" in message && "id" in message) return client.#answer(message);
      client.#heard.push(message);
      client.#wake();
    });
    await new Promise((resolve, reject) => client.#line.on("open", resolve).on("error", reject));
    await client.ask("initialize", { clientInfo: { name: "my-client", version: "1" } });
    client.#line.send(JSON.stringify({ method: "initialized" }));
    return client;
  }

  async ask(method, params = {}) {
    const id = ++this.#ids;
    this.#line.send(JSON.stringify({ id, method, params }));
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

  close() {
    this.#line.close();
  }

  /** Answer a request of the server, whose id may be equal to one of ours. */
  #answer({ id, method }) {
    const answer = method.endsWith("/requestApproval")
      ? { result: { decision: "accept" } }
      : { error: { code: -32601, message: "not supported" } };
    this.#line.send(JSON.stringify({ id, ...answer }));
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
