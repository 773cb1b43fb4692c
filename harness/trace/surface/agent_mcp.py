"""The surface of `agent mcp`: runs of commands that end and leave files behind.

A command answers nothing while it runs, and its output is free text. So the harness records a run
as two messages of its own making, whose `id` is the number of the run:

    {"id": 1, "argv": ["mcp", "add", "docs", "--", "npx"], "env": {}, "files": [FILE…]}
    {"id": 1, "status": 0, "stdout": "…", "stderr": "…", "files": [FILE…]}

`argv` are the words after the agent's command, `env` the variables that the play adds, `files` the
files of the agent's home before and after the run: {"path", "mode": "0600", "size"}, with `text` of
config.toml (null if it is not UTF-8), and `holds`, the secrets of the play that the bytes contain.
Requests of the command to the harness's authorization server or MCP server, the answers, and visits
to an address for the command stand between the two messages:

    {"id": 1, "web": "authorize", "method": "GET", "path": "/authorize", "query": {}, "form": {}}
    {"id": 1, "answers": "token", "status": 200, "body": {}}
    {"id": 1, "visits": "http://127.0.0.1:…", "status": 302}

All runs of a play are one connection, so that their order is known: runs that overlap were started
before the others had ended.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from harness.protocol.spec.book import Book
from harness.protocol.values import arr, obj, text
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import MarkBody
from harness.trace.surface.base import SeparateLedgers, Topics
from harness.trace.trace import Mark

# The options in the specification that are followed by a value.
_OPTIONS_WITH_VALUE: Final = ("--env", "--url", "--bearer-token-env-var", "--scopes")


@dataclass(frozen=True, slots=True)
class Words:
    """The parsed words of a command. `after_dashes` is None if there is no `--`."""

    subcommand: str
    names: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]
    after_dashes: tuple[str, ...] | None

    @property
    def name(self) -> str:
        """The NAME, "" if there is none."""
        return self.names[0] if self.names else ""

    def last(self, option: str) -> str | None:
        """Return the last value of an option, None if it is not given."""
        return self.options[option][-1] if option in self.options else None


def words_of(argv: list[str]) -> Words:
    """Return the parsed words of `mcp SUBCOMMAND …`, empty for any other command."""
    if argv[:1] != ["mcp"] or len(argv) < 2:
        return Words("", (), {}, None)
    rest, after = argv[2:], None
    if "--" in rest:
        place = rest.index("--")
        rest, after = rest[:place], tuple(rest[place + 1 :])
    names: list[str] = []
    options: dict[str, tuple[str, ...]] = {}
    remaining = iter(rest)
    for word in remaining:
        if not word.startswith("--"):
            names.append(word)
            continue
        option, equals, value = word.partition("=")
        if option in _OPTIONS_WITH_VALUE and not equals:
            value = next(remaining, "")
        options[option] = (*options.get(option, ()), value)
    return Words(argv[1], tuple(names), options, after)


@dataclass(slots=True, eq=False)
class Run:
    """One run of a command. `ran_alone`: no other ran at the same time."""

    request: Frame
    words: Words
    end: Frame | None = None
    web: list[Frame] = field(default_factory=list[Frame])
    answers: list[Frame] = field(default_factory=list[Frame])
    visits: list[Frame] = field(default_factory=list[Frame])
    ran_alone: bool = True

    @property
    def number(self) -> Any:
        """The id of the run."""
        return obj(self.request.json).get("id")

    @property
    def env(self) -> dict[str, str]:
        """The variables that the play added."""
        return {
            name: value
            for name, value in obj(obj(self.request.json).get("env")).items()
            if isinstance(value, str)
        }

    @property
    def subject(self) -> str:
        """The name of the run in findings: `run 2, mcp add docs`."""
        command = " ".join(filter(None, ("mcp", self.words.subcommand, self.words.name)))
        return f"run {self.number}, {command}"

    @property
    def frames(self) -> tuple[Frame, ...]:
        """The frames of the start and the end."""
        return (self.request,) if self.end is None else (self.request, self.end)

    @property
    def output(self) -> str:
        """Both outputs, standard error last: the specification does not say which is used."""
        end = obj(self.end.json) if self.end is not None else {}
        return "\n".join(filter(None, (text(end.get("stdout")), text(end.get("stderr")))))

    @property
    def stdout(self) -> str:
        """The standard output, "" while the run has not ended."""
        return text(obj(self.end.json).get("stdout")) if self.end is not None else ""


class Commands:
    """The runs of a play so far, by number, oldest first."""

    def __init__(self) -> None:
        self.runs: dict[str, Run] = {}

    def feed(self, frame: Frame) -> None:
        """Add one frame to its run."""
        message = obj(frame.json)
        key = str(message.get("id"))
        if frame.kind is Kind.INPUT and "argv" in message:
            self._begin_run(key, frame, message)
            return
        run = self.runs.get(key)
        if run is None:
            return
        if "web" in message:
            run.web.append(frame)
        elif "answers" in message:
            run.answers.append(frame)
        elif "visits" in message:
            run.visits.append(frame)
        elif frame.kind is Kind.EVENT and run.end is None:
            run.end = frame

    def run_of(self, frame: Frame) -> Run | None:
        """Return the run that a message is about, None if it has not begun."""
        return self.runs.get(str(obj(frame.json).get("id")))

    def runs_before(self, run: Run) -> list[Run]:
        """Return the runs that had ended before this one was requested, oldest first."""
        return [
            other
            for other in self.runs.values()
            if other.end is not None and other.end.seq < run.request.seq
        ]

    def _begin_run(self, key: str, frame: Frame, message: dict[str, Any]) -> None:
        argv = [word for word in arr(message.get("argv")) if isinstance(word, str)]
        run = Run(frame, words_of(argv))
        for other in self.runs.values():
            if other.end is None:
                other.ran_alone = run.ran_alone = False
        self.runs[key] = run


class RunLedger:
    """Open obligations: an end for each run that began."""

    def __init__(self) -> None:
        self._commands = Commands()

    def feed(self, frame: Frame) -> None:
        """Update the ledger with one frame."""
        self._commands.feed(frame)

    def feed_mark(self, mark: Mark[MarkBody]) -> None:
        """Do nothing: no mark meets an obligation."""

    def open_runs(self) -> list[Run]:
        """Return the runs that have not ended, oldest first."""
        return [run for run in self._commands.runs.values() if run.end is None]


class Command:
    """The surface `command`. Subjects are runs.

    Topics: ("ended", subcommand) for the end of a run, ("web", name) for its request to a server
    of the harness, ("kind", kind) for all.
    """

    name = "command"

    def classify(self, value: Any, direction: Direction) -> Kind:
        """Return INPUT for lines of the harness, EVENT for ends and requests, else MALFORMED."""
        message = obj(value)
        if direction is Direction.TO_TARGET:
            return Kind.INPUT
        return Kind.EVENT if "status" in message or "web" in message else Kind.MALFORMED

    def view(self) -> Commands:
        """Return an empty view of runs."""
        return Commands()

    def ledgers(self) -> SeparateLedgers[RunLedger]:
        """Return empty ledgers of the runs that must end, one per connection."""
        return SeparateLedgers(RunLedger)

    def topics_of(self, frame: Frame, view: Commands, book: Book) -> Topics:
        """Return the topics: the kind, and the ended subcommand or the web request."""
        kind = ("kind", str(frame.kind))
        if frame.kind is not Kind.EVENT:
            return (kind,)
        web = obj(frame.json).get("web")
        if isinstance(web, str):
            return kind, ("web", web)
        run = view.run_of(frame)
        if run is None or run.end is not frame:
            return (kind,)
        return kind, ("ended", run.words.subcommand)
