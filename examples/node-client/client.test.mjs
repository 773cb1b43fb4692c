/** Tests of a client in Node, with vitest: put your client in the place of `Client`. */

import { afterEach, expect, test } from "vitest";
import WebSocket from "ws";
import { agentServer } from "./agentServer.mjs";

/** The smallest client: one request after the other. */
class Client {
  #line;
  #heard = [];
  #wake = () => {};
  #ids = 0;

  static async connect(url) {
    const client = new Client();
    client.#line = new WebSocket(url);
    client.#line.on("message", (text) => {
      client.#heard.push(JSON.parse(text));
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
    return (await this.#until((one) => one.id === id)).result;
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
