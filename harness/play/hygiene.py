"""Findings about side effects of a server outside the protocol, which break no rule.

Their level is the profile's: INFO, or MUST if the profile says so.
"""

from harness.client.target.process import ProcessExit
from harness.judge.verdict import Level
from harness.report.results.outcome import Finding
from harness.trace.frame import DamageKind
from harness.trace.trace import Trace


class Hygiene:
    """Findings of one worker, in the order in which they were made."""

    def __init__(self, level: Level) -> None:
        self.findings: list[Finding] = []
        self._level = level

    def check_exit(self, ending: ProcessExit, grace: float) -> None:
        """Report a process that ignored TERM or left processes; `grace` is seconds per signal."""
        if ending.survivors and not ending.was_killed_before:
            names = ", ".join(ending.survivors)
            self._add(
                "leaked-process", f"processes of the server outlived it and were killed: {names}"
            )
        if ending.push == "KILL":
            self._add(
                "ignores-term",
                f"the server ignored the end of its input and TERM ({grace:g} s each)",
            )

    def add_unasked_end(self, status: int | None) -> None:
        """Report a server that ended by itself between two scenarios."""
        how = "closed its output" if status is None else f"ended with exit status {status}"
        self._add("ended-unasked", f"the server {how} by itself between two scenarios")

    def add_temporary_files(self, names: tuple[str, ...]) -> None:
        """Report files left in the temporary folder of a server that ended by itself, if any."""
        if names:
            more = f" and {len(names) - 5} more" if len(names) > 5 else ""
            self._add(
                "temporary-files",
                f"the server left in its temporary folder: {', '.join(names[:5])}{more}",
            )

    def add_stray_output(self, scenario: str, line: str, count: int) -> None:
        """Report output that is not a message, and that came between conversations."""
        more = f" (and {count - 1} more)" if count > 1 else ""
        self._add(
            "stray-output",
            f"after {scenario}, with no conversation going on, the server wrote output that is "
            f"not a message: {line}{more}",
            scenario,
        )

    def add_panic(self, scenario: str, line: str) -> None:
        """Report a line on standard error that indicates a crash, even if the server continued."""
        message = f"in or after {scenario} the server's stderr has: {line.strip()}"
        self._add("panic", message, scenario)

    def add_descriptor_growth(self, before: int, after: int, count: int, kinds: str) -> None:
        """Report descriptors that grow from conversation to conversation."""
        self._add(
            "descriptors",
            f"the server's open descriptors, files of its home not counted, grew from {before} to "
            f"{after} over {count} conversations ({kinds})",
        )

    def add_unusable(self, scenario: str, problem: str) -> None:
        """Report a process that a scenario left unable to do a plain turn."""
        self._add(
            "unusable-after",
            f"after {scenario} the server could not do a plain turn any more: {problem}; it was "
            "started again",
            scenario,
        )

    def add_lingering(self, scenario: str, names: tuple[str, ...]) -> None:
        """Report processes of a conversation that still run after its end, if any."""
        if names:
            self._add(
                "process-after-turn",
                f"processes that {scenario} started were still running after it: "
                f"{', '.join(names)}",
                scenario,
            )

    def add_program_leftovers(self, scenario: str, names: tuple[str, ...]) -> None:
        """Report processes that outlived a program, such as `agent exec`, that ended by itself."""
        if names:
            message = f"after {scenario} processes outlived the program: {', '.join(names)}"
            self._add("leaked-process", message, scenario)

    def check_line_lengths(self, trace: Trace) -> None:
        """Report the first line over the bound: it breaks no rule, but was not stored whole."""
        for frame in trace.frames:
            damage = frame.damage if frame.from_target else None
            if damage is not None and damage.kind is DamageKind.TOO_LONG:
                self._add(
                    "long-line",
                    f"the server wrote {damage.words} and was not kept whole: "
                    f"{frame.text(60)} ({trace.header.scenario})",
                    trace.header.scenario,
                )
                return

    def _add(self, name: str, message: str, *about: str) -> None:
        self.findings.append(Finding(f"hygiene.{name}", message, level=self._level, about=about))
