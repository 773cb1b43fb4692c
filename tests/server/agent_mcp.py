"""Running `agent mcp` as a process with a home of its own."""

import io
import json
import os
import subprocess
import tomllib
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from reference_server.cli import mcp
from tests.agent_process import AgentProcess
from tests.processes import BOUND, COMMANDS, Said


@dataclass(frozen=True)
class Home:
    """A user's home, with methods that run commands in it."""

    folder: Path

    @property
    def config(self) -> Path:
        return self.folder / ".agent" / "config.toml"

    def write(self, text: str | bytes) -> None:
        self.config.parent.mkdir(exist_ok=True)
        self.config.write_bytes(text if isinstance(text, bytes) else text.encode())

    def servers(self) -> dict[str, Any]:
        """Return the table of MCP servers in config.toml."""
        return tomllib.loads(self.config.read_text("utf-8-sig")).get("mcp_servers", {})

    def command(self, *words: str) -> list[str]:
        return [str(COMMANDS / "agent"), "mcp", *words]

    def mcp(self, *words: str, **environment: str) -> Said:
        """Run `agent mcp WORDS` with an empty environment but for HOME, and return its output."""
        env = {"HOME": str(self.folder), **environment}
        pipe = subprocess.PIPE
        with AgentProcess(
            self.command(*words),
            cwd=self.folder,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        ) as process:
            out, err = process.communicate(timeout=BOUND)
        return Said(process.returncode, out.decode(), err.decode())

    def call(self, *words: str) -> Said:
        """Run `agent mcp WORDS` in this process, which is faster, and return its output."""
        out, err = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, {"HOME": str(self.folder)}, clear=True),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            try:
                status = mcp.run(words)
            except SystemExit as error:  # argparse's
                status = error.code
        assert isinstance(status, int)
        return Said(status, out.getvalue(), err.getvalue())

    def json(self, *words: str) -> Any:
        said = self.mcp(*words, "--json")
        assert (said.status, said.err) == (0, "")
        return json.loads(said.out)

    def table(self) -> list[list[str]]:
        """Run `agent mcp list` and return the cells of its aligned table, by row."""
        lines = self.mcp("list").out.splitlines()
        starts = [lines[0].index(word) for word in lines[0].split()]
        ends = [*starts[1:], None]
        return [
            [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
            for line in lines
        ]
