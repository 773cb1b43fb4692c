/** A server for one test: plays a script, and says afterwards what was wrong with the client. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** Start `agent app-server` with a scenario; `url` is its address, `end()` its verdict. */
export async function agentServer(...scenarios) {
  const folder = await mkdtemp(join(tmpdir(), "agent-server-"));
  const report = join(folder, "report.json");
  const words = ["app-server", "--scenario", ...scenarios, "--json", report];
  const child = spawn("agent", [...words, "--listen", "ws://127.0.0.1:0"], {
    env: { ...process.env, AGENT_HOME: join(folder, "home") },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const said = [];
  const lines = createInterface({ input: child.stderr });
  const url = await new Promise((resolve, reject) => {
    lines.on("line", (line) => {
      said.push(line);
      const found = /listening on (\S+)/.exec(line);
      if (found) resolve(found[1]);
    });
    child.on("error", reject);
    child.on("exit", () => reject(new Error(`agent app-server ended:\n${said.join("\n")}`)));
  });

  async function end() {
    const ended = child.exitCode === null ? once(child, "exit") : undefined;
    child.kill("SIGTERM");
    await ended;
    const told = JSON.parse(await readFile(report, "utf8"));
    await rm(folder, { recursive: true });
    if (told.verdict !== "GREEN") throw new Error(`the client is wrong:\n${said.join("\n")}`);
    if (told.unused.length) throw new Error(`no connection played ${told.unused.join(", ")}`);
  }
  return { url, end };
}
