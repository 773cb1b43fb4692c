"""Rules on the output of commands, where it is known what they print."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import json
import re
from collections.abc import Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on, rule
from harness.judge.rules.items.deltas import LARGE, OUTPUT_DELTA, joined_text
from harness.judge.rules.model.news import News
from harness.judge.rules.shared.printed_output import Printed, lines_of, printed_by, script_of
from harness.judge.rules.shared.turn_calls import TurnCalls
from harness.judge.rules.shared.view_queries import item_in
from harness.judge.rules.shared.violations import absent, member, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.views import ItemView

# A folder of Windows, whose shells print the same words otherwise.
_ELSEWHERE = re.compile(r"[A-Za-z]:|\\\\")
# How a line says that others were left out.
_CUT = re.compile(r"\.\.\.|…|truncated|omitted|elided|left out|\bcut\b|\bmore\b", re.IGNORECASE)
# So many of the missing lines are told.
_TOLD = 5


class _Output(Monitor):
    """Knows the commands that ended well, and what they certainly printed."""

    def known(self, frame: Frame) -> tuple[ItemView, Printed] | None:
        item = self.conversation.item_of(frame)
        if item is None or item.type != "commandExecution" or len(item.completed) > 1:
            return None
        shows = item_in(frame)
        if shows.get("status") != "completed" or shows.get("exitCode") != 0:
            return None
        if _ELSEWHERE.match(text(shows.get("cwd"))):
            return None
        printed = printed_by(text(shows.get("command")))
        return None if printed is None else (item, printed)


@rule(
    "item.command-output",
    title="The output of a command is in its item",
    level=Level.MUST,
    needs=("command-execution",),
)
class CommandOutput(_Output):
    """Judges that aggregatedOutput has each line that the command certainly printed.

    Known from the words alone for `echo`, `printf`, `seq` and loops of them. How bytes become
    characters is not said, so that a line beyond ASCII is SHOULD. Of more than 1000 characters the
    item must have something (SHOULD), since a server may cut them; where a line says that it did,
    SHOULD too. Left open: other commands, those in a folder of Windows, whose shells print
    otherwise, those that did not end with exit code 0, items without aggregatedOutput, which is
    optional, and in which order the streams are combined.
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        known, whole = self.known(frame), item_in(frame).get("aggregatedOutput")
        if known is None or not isinstance(whole, str) or not known[1].lines:
            return None
        item, printed = known
        large = len(printed) >= LARGE
        missing = list((printed.lines - lines_of(whole)).elements())
        if not missing or (large and whole.strip()):
            return [Witness(item.subject, (frame,))]
        where, command = (member(frame, "item", key) for key in ("aggregatedOutput", "command"))
        expected = f"has the line(s) {', '.join(map(literal, missing[:_TOLD]))}"
        if len(missing) > _TOLD:
            expected += f" and {len(missing) - _TOLD} more"
        cut = any(_CUT.search(line) for line in lines_of(whole) - printed.lines)
        certain = not large and not cut and any(line.isascii() for line in missing)
        level = None if certain else Level.SHOULD
        return [wrong(item.subject, (frame,), where, expected, level=level, also=(command,))]


@rule(
    "model.output-shown",
    title="What the model is told of an output is in the item",
    level=Level.SHOULD,
    needs=("command-execution",),
)
class OutputShown(News):
    """Judges that aggregatedOutput has the lines that the server told the model of that command.

    Only lines that stand in the words of the command too, so that they can be no words of the
    server's own around the output: then both are about the same output, and the item has lost some
    of it. Derived from two clauses on what a command wrote, so SHOULD. Left open: items without
    aggregatedOutput, outputs of 1000 characters or more, which may be cut, those that repeat the
    command, several threads or turns at once.
    """

    def judge(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        turn = self.conversation.turns.get(asked.turn_id)
        told = [output for call in asked.calls for output in call.outputs]
        ran = [item for item in turn.items.values() if _kept(item)] if turn is not None else []
        shown = sum((lines_of(_output(item)) for item in ran), lines_of(""))
        for item in ran:
            script = script_of(text(item_in(item.completed[-1]).get("command"))).strip()
            lines = [
                line
                for output in map(_unwrapped, told)
                if len(output) < LARGE and script not in output
                for line in lines_of(output)
                if len(line) > 1 and re.search(rf"(?<!\w){re.escape(line)}(?!\w)", script)
            ]
            missing = [line for line in dict.fromkeys(lines) if line not in shown]
            frames = (item.completed[-1], end)
            if missing:
                where = member(item.completed[-1], "item", "aggregatedOutput")
                lost = ", ".join(map(literal, missing[:_TOLD]))
                expected = f"has the line(s) {lost}, which the model was told of"
                command = member(item.completed[-1], "item", "command")
                yield wrong(item.subject, frames, where, expected, also=(command,))
            elif lines:
                yield Witness(item.subject, frames)


def _kept(item: ItemView) -> bool:
    """Return whether this is a command that ran, with its output."""
    if item.type != "commandExecution" or not item.completed:
        return False
    shows = item_in(item.completed[-1])
    ran = shows.get("status") in ("completed", "failed")
    return ran and isinstance(shows.get("aggregatedOutput"), str)


def _output(item: ItemView) -> str:
    return text(item_in(item.completed[-1]).get("aggregatedOutput"))


def _unwrapped(output: str) -> str:
    """The output within a JSON object, as some servers tell it; else the text as it is."""
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
class BothStreams(_Output):
    """Judges that the deltas of a command that wrote to both of its streams have lines of both.

    SHOULD: both are streamed, but that the deltas leave nothing out is not said. Left open:
    commands without deltas, which are legal, those whose output is not known from their words, and
    whether the deltas are all of the output (delta.command-output).
    """

    @on("item/completed")
    def on_item_completed(self, frame: Frame) -> Outcomes:
        known = self.known(frame)
        if known is None:
            return None
        item, printed = known
        joined = joined_text(item, OUTPUT_DELTA)
        if not item.started or joined is None or not printed.out or not printed.error:
            return None
        frames = tuple(x for x in (item.first_delta, item.last_delta, frame) if x is not None)
        streamed = lines_of(joined)
        if streamed & printed.out and streamed & printed.error:
            return [Witness(item.subject, frames)]
        what = "standard error" if streamed & printed.out else "standard output"
        expected = f"deltas with lines of {what}"
        actual, command = f"the deltas join to {literal(joined)}", member(frame, "item", "command")
        return [absent(item.subject, frames, expected, actual, command)]
