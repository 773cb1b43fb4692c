"""Rules on the output of commands whose output is known."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
import re
from collections.abc import Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on, rule
from harness.judge.rules.items.deltas import LARGE_OUTPUT_CHARACTERS, OUTPUT_DELTA, joined_text
from harness.judge.rules.model.notifications import EndOfTraceRule
from harness.judge.rules.shared.predicted_output import (
    Output,
    count_lines,
    predict_output,
    script_of,
)
from harness.judge.rules.shared.turn_calls import TurnCalls
from harness.judge.rules.shared.view_queries import item_in, may_be_same_folder, same_folder
from harness.judge.rules.shared.violations import absent, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import Place
from harness.trace.views import ItemView

# A folder of Windows, whose shells print the same words differently.
_WINDOWS_FOLDER = re.compile(r"[A-Za-z]:|\\\\")
# Marks of omitted lines.
_CUT_MARK = re.compile(
    r"\.\.\.|…|truncated|omitted|elided|left out|\bcut\b|\bmore\b", re.IGNORECASE
)
MAX_LINES_LISTED = 5


class _KnownOutputRule(Monitor):
    """Base of rules on commands that succeeded and whose output is certain."""

    def known_output(self, frame: Frame) -> tuple[ItemView, Output] | None:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "commandExecution" or len(item.completions) > 1:
            return None
        shows = item_in(frame)
        if shows.get("status") != "completed" or shows.get("exitCode") != 0:
            return None
        if _WINDOWS_FOLDER.match(text(shows.get("cwd"))):
            return None
        printed = predict_output(text(shows.get("command")))
        return None if printed is None else (item, printed)


@rule(
    "item.command-output",
    title="The output of a command is in its item",
    level=Level.MUST,
    needs=("command-execution",),
)
class CommandOutput(_KnownOutputRule):
    """Judges that aggregatedOutput contains every line that the command is known to print.

    The output is known for `echo`, `printf`, `seq` and loops of them. A missing line is a MUST
    violation, but SHOULD if all missing lines are non-ASCII (the specification names no encoding),
    or if another line looks like a truncation mark. An output of 1000 characters or more may be
    truncated: it only has to be non-empty (SHOULD). `pwd` prints a path with the last name of the
    item's cwd: SHOULD, since a link or a mount may have another name; MUST if the item is in the
    harness's own folder and a client's request named the printed one. Not judged: other commands,
    exit codes other than 0, items without the optional aggregatedOutput, commands with a Windows
    cwd (its shells print differently), the order in which stdout and stderr are combined.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        if script_of(text(item_in(frame).get("command"))).strip() == "pwd":
            return self._judge_folder(frame)
        item_and_output, output = self.known_output(frame), item_in(frame).get("aggregatedOutput")
        if item_and_output is None or not isinstance(output, str) or not item_and_output[1].lines:
            return None
        item, printed = item_and_output
        large = len(printed) >= LARGE_OUTPUT_CHARACTERS
        missing = list((printed.lines - count_lines(output)).elements())
        if not missing or (large and output.strip()):
            return [Witness(item.subject, (frame,))]
        field, command = (member(frame, "item", key) for key in ("aggregatedOutput", "command"))
        expected = f"has the line(s) {', '.join(map(literal, missing[:MAX_LINES_LISTED]))}"
        if len(missing) > MAX_LINES_LISTED:
            expected += f" and {len(missing) - MAX_LINES_LISTED} more"
        is_cut = any(_CUT_MARK.search(line) for line in count_lines(output) - printed.lines)
        is_certain = not large and not is_cut and any(line.isascii() for line in missing)
        level = None if is_certain else Level.SHOULD
        return [wrong(item.subject, (frame,), field, expected, level=level, also=(command,))]

    def _judge_folder(self, frame: Frame) -> Outcomes:
        """Judge the output of `pwd`, if it has one line that is an absolute path."""
        item, shows = self.conversation.item_of(frame), item_in(frame)
        folder, output = text(shows.get("cwd")), text(shows.get("aggregatedOutput"))
        printed = [line for line in count_lines(output) if line.startswith("/")]
        if item is None or item.type != "commandExecution" or len(item.completions) > 1:
            return None
        if shows.get("exitCode") != 0 or len(printed) != 1 or not folder.startswith("/"):
            return None
        if may_be_same_folder(folder, printed[0]):
            return [Witness(item.subject, (frame,))]
        named = {text(obj(request.params).get("cwd")) for request in self.conversation.requests}
        is_own = any(same_folder(mark.body.cwd, folder) for mark in self.trace.marks_of(Place))
        is_certain = is_own and any(same_folder(cwd, printed[0]) for cwd in named if cwd)
        level = None if is_certain else Level.SHOULD
        field, also = member(frame, "item", "aggregatedOutput"), (member(frame, "item", "cwd"),)
        expected = f"the folder {literal(folder)}, in which the item says that it ran"
        return [wrong(item.subject, (frame,), field, expected, level=level, also=also)]


@rule(
    "model.output-shown",
    title="Output that the model gets is in the item",
    level=Level.SHOULD,
    needs=("command-execution",),
)
class OutputShown(EndOfTraceRule):
    """Judges that aggregatedOutput has the lines of that command that the server sent to the model.

    Only lines that are also in the command line are compared, so that they cannot be the server's
    own words around the output: if the item lacks one, it has lost output. Derived from two clauses
    on a command's output, so SHOULD. Left open: items without aggregatedOutput, outputs of 1000
    characters or more, which may be cut, those that repeat the command, several threads or turns at
    once.
    """

    def judge(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        turn = self.conversation.turns.get(turn_calls.turn_id)
        outputs = [output for call in turn_calls.calls for output in call.outputs]
        commands = (
            [item for item in turn.items.values() if _has_output(item)] if turn is not None else []
        )
        shown_lines = sum((count_lines(_output(item)) for item in commands), count_lines(""))
        for item in commands:
            script = script_of(text(item_in(item.completions[-1]).get("command"))).strip()
            lines = [
                line
                for output in map(_unwrap_output, outputs)
                if len(output) < LARGE_OUTPUT_CHARACTERS and script not in output
                for line in count_lines(output)
                if len(line) > 1 and re.search(rf"(?<!\w){re.escape(line)}(?!\w)", script)
            ]
            missing = [line for line in dict.fromkeys(lines) if line not in shown_lines]
            frames = (item.completions[-1], end)
            if missing:
                field = member(item.completions[-1], "item", "aggregatedOutput")
                lost_lines = ", ".join(map(literal, missing[:MAX_LINES_LISTED]))
                expected = f"has the line(s) {lost_lines}, which the model got"
                command = member(item.completions[-1], "item", "command")
                yield wrong(item.subject, frames, field, expected, also=(command,))
            elif lines:
                yield Witness(item.subject, frames)


def _has_output(item: ItemView) -> bool:
    """Return whether an item is a command that ran and has output."""
    if item.type != "commandExecution" or not item.completions:
        return False
    shows = item_in(item.completions[-1])
    ran = shows.get("status") in ("completed", "failed")
    return ran and isinstance(shows.get("aggregatedOutput"), str)


def _output(item: ItemView) -> str:
    return text(item_in(item.completions[-1]).get("aggregatedOutput"))


def _unwrap_output(output: str) -> str:
    """Return the output in a JSON object, as some servers send it; else the text itself."""
    try:
        inner = obj(json.loads(output)).get("output")
    except (ValueError, RecursionError):
        return output
    return inner if isinstance(inner, str) else output


@rule(
    "delta.both-streams",
    title="Both streams of a command are streamed",
    level=Level.SHOULD,
    needs=("command-execution",),
)
class BothStreams(_KnownOutputRule):
    """Judges that the deltas of a command that wrote to both of its streams have lines of both.

    SHOULD: both are streamed, but the specification does not say that the deltas are complete. Left
    open: commands without deltas, which are legal, those whose output cannot be predicted, and
    whether the deltas are all of the output (delta.command-output).
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        item_and_output = self.known_output(frame)
        if item_and_output is None:
            return None
        item, printed = item_and_output
        joined = joined_text(item, OUTPUT_DELTA)
        if (
            not item.starts
            or joined is None
            or not printed.stdout_lines
            or not printed.stderr_lines
        ):
            return None
        frames = tuple(
            shown_frame
            for shown_frame in (item.first_delta, item.last_delta, frame)
            if shown_frame is not None
        )
        streamed = count_lines(joined)
        if streamed & printed.stdout_lines and streamed & printed.stderr_lines:
            return [Witness(item.subject, frames)]
        stream_name = "standard error" if streamed & printed.stdout_lines else "standard output"
        expected = f"deltas with lines of {stream_name}"
        actual, command = f"the deltas join to {literal(joined)}", member(frame, "item", "command")
        return [absent(item.subject, frames, expected, actual, command)]
