"""Fake agents: small programs whose behaviour a test gives as a piece of Python.

A program imports nothing of the project, so it cannot share the project's mistakes.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOUND = 20.0
"""Maximum seconds of a wait, on a machine under load; most take one second."""
MARK = "FAKE_AGENT_MARK"
"""Environment variable of all processes that a fake agent starts: the path of its program."""

PRELUDE = f"""#!{sys.executable} -IS
import json, os, signal, subprocess, sys
out = sys.stdout.buffer
HERE = os.path.dirname(os.path.abspath(__file__))

def dump(prompt=None):
    runs = len(os.listdir(HERE))
    path = os.path.join(HERE, f"run-{{runs:03}}-{{os.getpid()}}")
    with open(path + ".part", "w") as file:
        json.dump({{"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.getcwd(),
                   "prompt": prompt, "session": os.getsid(0), "pid": os.getpid()}}, file)
    # A test that waits for the file reads all of it.
    os.replace(path + ".part", path + ".json")

def line(data):
    out.write(data + b"\\n")
    out.flush()

def say(kind, **members):
    line(json.dumps({{"type": kind, **members}}).encode())

def read():
    prompt = sys.stdin.buffer.read().decode()
    dump(prompt)
    return prompt

def begin(thread="thr_1"):
    say("thread.started", thread_id=thread)
    say("turn.started")

def message(text, id="item_0"):
    say("item.completed", item={{"id": id, "type": "agent_message", "text": text}})

def complete(**usage):
    usage = {{"input_tokens": 1, "cached_input_tokens": 2, "output_tokens": 3, **usage}}
    say("turn.completed", usage=usage)

def forever():
    while True:
        signal.pause()

# What /proc shows is the environment that a program is started with: this is for its children.
os.environ["{MARK}"] = os.path.abspath(__file__)
"""

ECHO = """
begin()
message(read())
complete()
"""
"""One turn, in which the agent's message is the prompt."""

WAITS = "read(); begin(); forever()"
# Commands: one in the agent's group, one in a session of its own as shells of agents are, and a
# grandchild whose parent has ended.
WITH_COMMANDS = """
read()
child = [sys.executable, "-IS", "-c", "import signal; signal.pause()"]
subprocess.Popen(child)
subprocess.Popen(child, start_new_session=True)
shell = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"
subprocess.Popen([sys.executable, "-IS", "-c", shell, *child], start_new_session=True)
begin()
forever()
"""
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + WITH_COMMANDS


@dataclass(frozen=True, slots=True)
class Fake:
    """A fake agent. `path` is its program, in a folder in which it records its inputs."""

    path: Path

    @classmethod
    def written(cls, folder: Path, body: str) -> "Fake":
        """Write the program into a new folder."""
        folder.mkdir()
        path = folder / "agent"
        path.write_text(PRELUDE + body, "utf-8")
        path.chmod(0o755)
        return cls(path)

    def runs(self) -> list[dict[str, Any]]:
        """Return the input of each of its runs: argv, env, cwd, prompt, session, pid."""
        files = sorted(self.path.parent.glob("run-*.json"))
        return [json.loads(file.read_text("utf-8")) for file in files]

    @property
    def run(self) -> dict[str, Any]:
        """Return the input of its only run."""
        (run,) = self.runs()
        return run

    def living(self) -> list[int]:
        """Return the ids of its processes, and of those that they started, that still run."""
        return [
            int(folder.name)
            for folder in Path("/proc").iterdir()
            if folder.name.isdecimal() and self._owns(folder)
        ]

    def _owns(self, process: Path) -> bool:
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            words += (process / "environ").read_bytes().split(b"\0")
        except OSError:
            return False
        return bool({f"{MARK}={self.path}".encode(), str(self.path).encode()} & set(words))


async def until(fact: Callable[[], object]) -> None:
    """Wait until `fact()` is true; TimeoutError after BOUND seconds."""
    async with asyncio.timeout(BOUND):
        while not fact():
            await asyncio.to_thread(threading.Event().wait, 0.01)
