"""`harness bisect`: the release that changed an answer, and what can be pasted into a report."""

import shlex
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from harness.errors import UsageError
from harness.protocol.spec.loading import load_book
from harness.report.matrix import MAX_PROBLEM_CHARACTERS
from harness.report.results.report import Report
from harness.search.releases.evidence import side_lines, trace_path
from harness.search.releases.halving import Answer, Halving, Step, halve
from harness.search.releases.plays import CONFINED_OPTION, Play, Plays
from harness.search.releases.question import NOT_SHOWN, SHOWN, Question
from harness.search.releases.target import (
    VERSION_PLACEHOLDER,
    MissingProgram,
    Target,
    ensure_installed,
)

MIN_VERSIONS = 2
FORMAT_VERSION = 1


@dataclass(slots=True)
class Change:
    """The result of a bisection, with the last play of each release."""

    question: Question
    target: Target
    halving: Halving
    plays: dict[str, Play] = field(default_factory=dict[str, Play])
    confined: bool = True

    def text_lines(self) -> Iterator[str]:
        """Yield the answer, the plays, both sides with their wire lines, and a command."""
        yield ""
        yield self.headline()
        if not self.halving.is_found:
            return
        yield from self._notes()
        old, new = self.halving.last_old, self.halving.first_new
        pairs = [(new, old), (old, new)]
        pairs.sort(key=lambda pair: self.halving.state_of(pair[0]) != SHOWN)
        for version, other in pairs:
            report, play = self._report(version), self.plays[version]
            yield ""
            server = f" ({report.server})" if report.server else ""
            yield f"{version}: {self.halving.state_of(version)}{server}"
            yield f"  command   {play.release.programs.server or play.release.programs.agent}"
            for line in side_lines(self.question, report, self._report(other)):
                yield f"  {line}"
            if trace := trace_path(report, self._scenario()):
                yield f"  in full   harness show {trace}"
        yield ""
        yield f"scenario  {self._scenario()}: {self._title()}"
        yield from self._clause_lines()
        yield f"repeat    {self.repeat_command()}"

    def headline(self) -> str:
        """Return the answer in one sentence."""
        halving, words = self.halving, self.question.words
        asked = [step for step in halving.steps if not step.skipped]
        if not asked:
            return f"{words}: none of {len(halving.versions)} releases can be judged"
        if not halving.is_found:
            ends = f"{asked[0].version} and {asked[-1].version}"
            if asked[0].version == asked[-1].version:
                return f"{words}: {asked[0].version} alone can be judged: {asked[0].state}"
            return (
                f"{words}: alike at both ends, {ends}: {asked[0].state}; if it came and went in "
                "between, name a release of that time as an end"
            )
        old, new = halving.last_old, halving.first_new
        state, before = halving.state_of(new), halving.state_of(old)
        if skipped := halving.skipped_between:
            return (
                f"{words}: {before} in {old}, {state} in {new}; it changed in one of "
                f"{', '.join([*skipped, new])} (the skipped ones cannot tell)"
            )
        if state == SHOWN:
            return f"{words}: {new} is the first release that shows it ({old}: {before})"
        if before == SHOWN:
            how = "no longer shows it" if state == NOT_SHOWN else f"does not show it: {state}"
            return f"{words}: {new} is the first release that {how}"
        return f"{words}: {new} is the first release with {state} ({old}: {before})"

    def repeat_command(self) -> str:
        """Return the command that plays the two releases again."""
        question = (
            ["--finding", f"{self.question.finding}@{self._scenario()}"]
            if self.question.finding
            else ["--scenario", self._scenario()]
        )
        programs = self.target.programs
        words = ["harness", "bisect", *question]
        words += ["--versions", f"{self.halving.last_old},{self.halving.first_new}"]
        words += ["--target", programs.target]
        for option, command in (
            ("--server-cmd", programs.server),
            ("--agent-cmd", programs.agent),
            ("--sdk-cmd", programs.sdk),
        ):
            words += [option, command] if command else []
        words += [] if self.confined else ["--no-confine"]
        return shlex.join([*words, "--fresh"])

    def to_plain(self) -> dict[str, Any]:
        """Return the result as builtins."""
        halving = self.halving
        return {
            "version": FORMAT_VERSION,
            "question": self.question.words,
            "found": halving.is_found,
            "answer": self.headline(),
            "last_old": halving.last_old,
            "first_new": halving.first_new,
            "skipped_between": halving.skipped_between if halving.is_found else [],
            "versions": list(halving.versions),
            "plays": halving.play_count,
            "steps": [asdict(step) for step in halving.steps],
            "repeat": self.repeat_command() if halving.is_found else "",
            "text": list(self.text_lines())[1:],
        }

    def _notes(self) -> Iterator[str]:
        halving = self.halving
        states = [f"{step.version} {step.state or 'skipped'}" for step in halving.steps]
        count = f"{halving.play_count} for {len(halving.versions)} releases"
        yield f"plays: {count}: {', '.join(states)}"
        for step in halving.steps:
            if len(step.plays) > 1:
                yield f"flaky: {step.version}: {', '.join(step.plays)}; the majority counts"
        yield from dict.fromkeys(play.note for play in self.plays.values() if play.note)

    def _report(self, version: str) -> Report:
        report = self.plays[version].report
        if report is None:
            raise ValueError(f"{version} was not judged")
        return report

    def _scenario(self) -> str:
        """Return the scenario that shows the difference."""
        both = [self._report(name) for name in (self.halving.first_new, self.halving.last_old)]
        names = [name for report in both for name in self.question.broken_in(report)]
        return next(iter(names), self.question.scenarios[0])

    def _title(self) -> str:
        report = self._report(self.halving.first_new)
        return next((one.title for one in report.scenarios if one.id == self._scenario()), "")

    def _clause_lines(self) -> Iterator[str]:
        for requirement in load_book().requirements_of(self.question.finding)[:1]:
            clause = requirement.clause
            yield f"clause    {clause.statement} ({clause.document}, {clause.heading!r})"


def find_change(
    question: Question,
    target: Target,
    versions: Sequence[str],
    plays: Plays,
    *,
    install: str = "",
    say: Callable[[str], None] = print,
) -> Change:
    """Play releases until the change is found; `say` prints a line for each.

    Raises `UsageError` for fewer than two versions or commands without the placeholder.
    """
    commands = (target.programs.server, target.programs.agent, target.programs.sdk)
    if not any(VERSION_PLACEHOLDER in command for command in commands):
        raise UsageError(f"no command has {VERSION_PLACEHOLDER}; --server-cmd '… {{version}} …'")
    if len(versions) < MIN_VERSIONS:
        raise UsageError("--versions: name at least two, the oldest first")
    confined = CONFINED_OPTION in plays.options
    change = Change(question, target, Halving(versions), confined=confined)
    is_narrowed: list[bool] = []

    def ask(version: str, number: int) -> Answer:
        if plays.stopped_by is not None:
            return Answer(problem="interrupted")
        try:
            release = ensure_installed(target, version, install, say)
        except MissingProgram as problem:
            return Answer(problem=str(problem))
        if len(change.plays) == MIN_VERSIONS and not is_narrowed:
            # Both ends have answered, and only one question is left.
            reports = [play.report for play in change.plays.values() if play.report]
            change.question = question.narrow(reports)
            is_narrowed.append(True)
        play = plays.play(release, change.question.played_scenarios(), number)
        if play.report is None or play.problem:
            return Answer(problem=play.problem)
        answer = change.question.answer(play.report)
        if not answer.problem:
            change.plays[version] = play
        return answer

    def on_step(step: Step) -> None:
        if plays.stopped_by is not None:
            return
        is_stored = step.version in change.plays and change.plays[step.version].reused
        skipped = textwrap.shorten(step.skipped, MAX_PROBLEM_CHARACTERS, placeholder=" …")
        state = f"skipped: {skipped}" if skipped else step.state
        flaky = f" (flaky: {', '.join(step.plays)})" if len(step.plays) > 1 else ""
        say(f"{step.version}: {state}{flaky}{' (stored)' if is_stored else ''}")

    change.halving = halve(versions, ask, on_step)
    return change
