"""Pages that change while they are open: their script follows the events of this server."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from harness.report.history import History
from harness.report.html.rendering import render_live
from harness.report.json_form import DISTRIBUTION


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in a list: its state in a word, and how many plays it has done."""

    run: str
    activity: str
    target: str
    word: str
    done: int

    @property
    def tone(self) -> str:
        """Return the name of the colour of the state."""
        first = self.word.split()[0].strip(",:") if self.word else ""
        return {"GREEN": "pass", "running": "info", "RED": "fail"}.get(first, "error")


def connect_page(target: str, forms: dict[str, Any]) -> str:
    """Return the page of a conversation by hand; `forms` maps methods to their fields."""
    return _render("connect.html.j2", "connect.js", "harness connect", about=target, data=forms)


def watch_page(
    folder: str, runs: Sequence[RunLine], files: Sequence[tuple[int, str]], chosen: str
) -> str:
    """Return the page that follows a run, `chosen` or the newest; `files` have numbers."""
    sections = [("lanes", "Lanes", None), ("findings", "Findings", None), ("plays", "Plays", None)]
    sections += [("runs", "Runs", len(runs))]
    values = {"runs": runs, "files": files, "data": chosen, "sections": sections}
    return _render("watch.html.j2", "watch.js", "harness watch", about=folder, **values)


def recording_page(path: str, number: str) -> str:
    """Return the page that follows a recording, by its number among the files."""
    return _render("recording.html.j2", "", "harness watch", about=path, data=number)


def history_page(history: History | None, problem: str = "") -> str:
    """Return the page of past runs, or why it cannot be shown."""
    values = {"history": history, "problem": problem}
    return _render("history.html.j2", "", "harness watch", about="History", **values)


def _render(template: str, script: str, heading: str, **values: Any) -> str:
    values = {
        "title": f"{heading}: {values['about']}",
        "heading": heading,
        "tone": "info",
        "harness": version(DISTRIBUTION),
        "sections": [],
        **values,
    }
    return render_live(template, (script,) if script else (), **values)
