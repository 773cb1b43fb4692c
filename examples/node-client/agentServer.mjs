/**
 * A server for one test: plays a script, and says afterwards what was wrong with the client.
 *
 * `agentServer` is for a client that connects, `agentProgram` for one that starts its agent.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";

/** Start `agent app-server` with scenarios; `url` is its address, `end()` its verdict. */
export async function agentServer(...scenarios) {
  const server = await Server.begin();
  const all = scenarios.length ? scenarios : ["default"];
  const url = await server.start(all, ["--listen", "ws://127.0.0.1:0"]);
  return { url, end: () => server.end() };
}

/**
 * Write an executable that plays a scenario, or each of several in turn, to whoever starts it.
 *
 * `program` is its path, `folder` that of PATH, `env` an environment with both, `end()` the verdict.
 * `dialect` is a release whose words it speaks, in place of the specification's.
 */
export async function agentProgram(scenarios = "default", { name = "codex", dialect, strict = false } = {}) {
  const server = await Server.begin(dialect);
  const words = ["--program", join(server.bin, name), ...(strict ? ["--strict"] : [])];
  const program = await server.start([scenarios].flat(), words);
  return { program, folder: server.bin, env: server.env, end: () => server.end() };
}

class Server {
  said = [];

  static async begin(dialect) {
    const server = new Server();
    server.folder = await mkdtemp(join(tmpdir(), "agent-server-"));
    server.bin = join(server.folder, "bin");
    const home = join(server.folder, "home");
    await Promise.all([mkdir(server.bin), mkdir(home)]);
    server.env = {
      ...process.env,
      AGENT_HOME: home,
      CODEX_HOME: home,
      ...(dialect ? { AGENT_DIALECT: dialect } : {}),
      PATH: `${server.bin}${delimiter}${process.env.PATH}`,
    };
    return server;
  }

  /** Start the process, and return where it can be reached. */
  async start(scenarios, words) {
    this.report = join(this.folder, "report.json");
    const all = ["app-server", "--scenario", ...scenarios, "--json", this.report, ...words];
    // Its standard input ends with this process, even if that is killed.
    all.push("--end-with-input");
    const stdio = ["pipe", "ignore", "pipe"];
    this.child = spawn("agent", all, { env: this.env, stdio });
    const lines = createInterface({ input: this.child.stderr });
    return new Promise((resolve, reject) => {
      lines.on("line", (line) => {
        this.said.push(line);
        const found = /^(?:listening on|program at) (.+)/.exec(line);
        if (found) resolve(found[1]);
      });
      const fail = () => reject(new Error(`agent app-server ended:\n${this.said.join("\n")}`));
      this.child.on("error", reject).on("exit", fail);
    });
  }

  async end() {
    const ended = this.child.exitCode === null ? once(this.child, "exit") : undefined;
    this.child.kill("SIGTERM");
    await ended;
    const told = JSON.parse(await readFile(this.report, "utf8"));
    await rm(this.folder, { recursive: true });
    if (told.verdict !== "GREEN") throw new Error(`the client is wrong:\n${this.said.join("\n")}`);
    if (told.unused.length) throw new Error(`no connection played ${told.unused.join(", ")}`);
  }
}
