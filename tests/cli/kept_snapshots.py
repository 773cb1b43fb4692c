"""A project with a small server, which tests change, and snapshots of it."""

from dataclasses import dataclass
from pathlib import Path

from command_line import call

from tests.processes import ROOT, Said

SERVER = (ROOT / "fixtures/servers/minimal.py").read_text("utf-8")
SCENARIO = "turns/plain-turn"
TELLS = '        self.notify(thread, "turn/started", turn=turn)\n'
MORE = TELLS + '        self.notify(thread, "turn/plan/updated", turnId=turn["id"], plan=[])\n'
NAMED = '{"turn": turn}'


@dataclass
class Project:
    """A server in a folder, and its snapshots."""

    path: Path

    @property
    def snapshots(self) -> Path:
        return self.path / "kept"

    def accepted(self, scenario: str = SCENARIO) -> Path:
        return self.snapshots / "spec" / f"{scenario}.transcript"

    def pending(self, scenario: str = SCENARIO) -> Path:
        return self.snapshots / ".pending/spec" / f"{scenario}.transcript"

    def serves(self, before: str = "", after: str = "") -> None:
        """Write the server: the smallest correct one, with `before` replaced by `after`."""
        assert before in SERVER
        (self.path / "server.py").write_text(SERVER.replace(before, after, 1), "utf-8")

    def run(self, *words: str) -> Said:
        options = ("--server-cmd", "python server.py", "--snapshots", "kept")
        return call("harness", "run", *(words or (SCENARIO,)), *options, cwd=self.path)

    def harness(self, *words: str) -> Said:
        return call("harness", *words, cwd=self.path)
