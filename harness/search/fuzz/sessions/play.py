"""Play and judgement of one generated document on a server."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.judge.verdict import Level, Row, Verdict
from harness.play.bench import Bench
from harness.play.config import Config
from harness.play.judging import outcome_of
from harness.play.run import Run
from harness.protocol.spec.book import Book
from harness.report.results.outcome import ScenarioOutcome
from harness.scenario.client_steps import RestartStep
from harness.scenario.loader import Loaded
from harness.scenario.model import Scenario
from harness.scenario.yaml12 import Document, Loc, Place
from harness.search.fuzz.causes import occasion_at
from harness.search.fuzz.sessions.checks import Output, find_observations, step_at
from harness.search.fuzz.sessions.turns import COMMAND, FILE, Json
from harness.trace.correlation import Correlation
from harness.trace.surfaces import SESSION

IDENTITY = "fuzz/session"
# Findings without a rule that a client cannot cause.
_COUNTED_FINDINGS = ("scenario.crash", "liveness.")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a play: its cause (a rule, or the id of a finding), and a line of text.

    `step` is the number of the step that shows it, 0 for none; `where` are the expected values of
    its answer. With `habit` it is the server's choice at an open point; `output` is the missing
    output of a command or a model call. `occasion` of a broken MUST is its method with the member
    or the clause that is broken, or the last message sent and how the server ended; "" if unknown.
    """

    cause: str
    text: str
    level: Level = Level.MUST
    step: int = 0
    habit: str = ""
    where: Mapping[str, Any] = field(default_factory=dict[str, Any])
    output: Output | None = None
    occasion: str = ""


@dataclass(slots=True)
class Played:
    """The play of a document. `kept_rules` counts the rows of each SHOULD rule that passed."""

    document: Json
    run: Run = field(repr=False)
    outcome: ScenarioOutcome = field(repr=False)
    problems: list[Problem]
    kept_rules: dict[str, int]

    @property
    def unmet(self) -> str:
        """Return why the script was not played to its end, "" if it was."""
        return f"step {self.run.unmet.line}: {self.run.unmet.message}" if self.run.unmet else ""


def load_document(document: Json) -> Loaded:
    """Return the document as the loader would, with the number of each step as its line.

    Raises `ValueError`, `LookupError` or `TypeError` if it is no scenario.
    """
    steps = range(len(document["client"]))
    places: dict[Loc, Place] = {("client", index): (index + 1, 1) for index in steps}
    places["client",] = (1, 1)
    scenario = Scenario.model_validate(document)
    return Loaded(IDENTITY, Path("session.scenario.yaml"), scenario, Document(document, places))


async def play(
    bench: Bench,
    config: Config,
    document: Json,
    *,
    looks: bool = True,
    bound: float | None = None,
) -> Played:
    """Play and judge a document. Raises `SetupFailed` if the server cannot be used at all.

    `looks` adds the extra checks, for documents without invalid messages. With a `bound` for each
    step, in seconds, a blocked script costs little and the process is reused, for the many tries of
    shrinking.
    """
    # Invalid messages do not need any capability.
    needs = {"needs": needed_capabilities(document, config.book)} if looks else {}
    loaded = load_document({**document, **needs})
    return await play_loaded(bench, config, loaded, document, looks=looks, bound=bound)


async def play_loaded(
    bench: Bench,
    config: Config,
    loaded: Loaded,
    document: Json,
    *,
    looks: bool,
    bound: float | None = None,
) -> Played:
    """Play and judge a loaded document, with the arguments and errors of `play`."""
    restarts = any(isinstance(step, RestartStep) for step in loaded.scenario.steps)
    if bound is None or loaded.scenario.needs_fresh_server or restarts:
        run = await bench.run(loaded)
    else:
        run = await _run_hurried(bench, loaded, bound)
    rules = {name: rule for name, rule in config.rules.items() if rule.surface == SESSION}
    outcome = outcome_of(run, loaded, config.book, config.profile, config.entries, rules)
    kept_rules: dict[str, int] = {}
    for row in outcome.rows:
        if row.verdict is Verdict.PASS and row.level is Level.SHOULD:
            kept_rules[row.rule] = kept_rules.get(row.rule, 0) + 1
    return Played(document, run, outcome, list(_problems(run, outcome, looks)), kept_rules)


def needed_capabilities(document: Json, book: Book) -> list[str]:
    """Return the capabilities that a document uses, sorted, without core."""
    capabilities: set[str] = set()
    for kind, body in (next(iter(step.items())) for step in document["client"]):
        if kind == "request":
            row = book.method(body["method"])
            capabilities |= {row.capability} if row is not None else set()
        elif kind == "answer":
            capabilities.add(_OF_QUESTION.get(body["to"], ""))
        elif kind == "connect":
            capabilities.add("several-clients")
    for step in (
        model_step for script in document.get("model", {}).values() for model_step in script
    ):
        capabilities |= {_OF_PART.get(next(iter(part)), "") for part in step.get("reply", ())}
    return sorted(capabilities - {"", "core"})


_OF_QUESTION = {COMMAND: "command-approval", FILE: "file-change-approval"}
_OF_PART = {"run": "command-execution", "patch": "file-change", "update_plan": "plan-update"}


async def _run_hurried(bench: Bench, loaded: Loaded, bound: float) -> Run:
    bounds = bench.bounds.model_copy(update={"step": bound})
    async with bench.conversation_of(loaded) as stage:
        # A timeout is not recorded in the conversation, so the process can be reused.
        await bench.player(loaded, stage, bounds=bounds).play()
    return stage.run


def _problems(run: Run, outcome: ScenarioOutcome, looks: bool) -> Iterator[Problem]:
    for row in outcome.rows:
        broken = row.verdict is Verdict.FAIL and row.level is not Level.INFO
        if row.verdict is Verdict.ERROR or broken:
            level = Level.MUST if row.verdict is Verdict.ERROR else row.level
            step = step_at(run.trace, max(row.frames, default=0))
            occasion = _occasion_of(run, row) if level is Level.MUST else ""
            yield Problem(row.rule, violation_line(row), level, step, occasion=occasion)
    for finding in outcome.findings:
        if finding.id.startswith(_COUNTED_FINDINGS) and not finding.known:
            yield Problem(finding.id, finding.message, occasion=_end_of(run))
    for check in find_observations(run) if looks else ():
        level = Level.INFO if check.habit else Level.MUST
        yield Problem(
            check.cause, check.text, level, check.step, check.habit, check.where, check.output
        )


def _occasion_of(run: Run, row: Row) -> str:
    """Return the method of the first message, and the member or clause that is broken."""
    paths = [_BRACKETS.sub("[]", place.path) for place in row.places] or list(row.clauses)
    return occasion_at(_method_of(run, row.frames), paths[0] if paths else "")


# Indexes and odd keys in paths, which differ from play to play.
_BRACKETS = re.compile(r"\[[^\]]*\]")


def _method_of(run: Run, seqs: Collection[int]) -> str:
    """Return the method of the first of these messages; for an answer, that of its request."""
    exchanges = Correlation()
    for frame in run.trace.frames:
        request = exchanges.feed(frame)
        if frame.seq in seqs:
            return frame.method or (request.method if request is not None else "")
    return ""


def _end_of(run: Run) -> str:
    """Return the last message sent, with the server's exit status if it ended."""
    sent_frames = [frame for frame in run.trace.frames if not frame.from_target]
    last = (sent_frames[-1].method or "a message without a method") if sent_frames else "its start"
    return occasion_at(last, f"exit status {run.status}" if run.has_died else "")


def violation_line(row: Row) -> str:
    """Return a violation on one line."""
    return f"{row.rule}: {row.subject}: expected {row.expected}; actual {row.actual}"
