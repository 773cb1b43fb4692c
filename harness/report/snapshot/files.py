"""A transcript as the text of a file, and back.

    # harness transcript, version 1
    # scenario: turns/plain-turn
    # target: reference
    # order: as played
    -> {"method": "initialize", "id": "<request 1>", "params": {…}}
    client 2:
    <- {"id": "<request 1>", "result": {…}}
    end: quiescent
    # check: 1f02a9c4…

The last line holds four digits for each line before it, so that an edit by hand is reported with
its line: a transcript is a server's output, and an edit must not pass for that. `order: free` marks
a transcript whose order differs from play to play.
"""

import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from harness.errors import HarnessError
from harness.report.snapshot.message import Message, Transcript

VERSION: Final = 1
_TITLE = re.compile(r"# harness transcript, version (\d+)")
_ORDERS = {"as played": False, "free": True}
_CHECK = "# check: "
_PLACE = "(any place) "
_ANY_NUMBER = "(any number) "
_GARBLED = "(no message) "
_CLIENT = re.compile(r"client (\d+):")
_MARKERS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||")


class SnapshotError(HarnessError):
    """Error for a file that is not a valid snapshot; the text has the line, and what to do."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"{line}: {problem}")
        self.line, self.problem = line, problem


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A kept transcript, with its scenario and target."""

    scenario: str
    target: str
    transcript: Transcript


def format_snapshot(snapshot: Snapshot) -> str:
    """Return the text of a snapshot's file."""
    lines = list(_snapshot_lines(snapshot))
    return "\n".join([*lines, f"{_CHECK}{''.join(map(_line_checksum, lines))}"]) + "\n"


def parse_snapshot(content: bytes) -> Snapshot:
    """Parse the snapshot in a file.

    Raises `SnapshotError` if the file is of another version, was edited or was cut off.
    """
    try:
        # A checkout can have made each line end in CR LF; JSON has no carriage return in a line.
        lines = content.decode("utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError as error:
        raise SnapshotError(content[: error.start].count(b"\n") + 1, "no UTF-8") from None
    title = _TITLE.fullmatch(lines[0].rstrip("\r"))
    if title is None:
        raise SnapshotError(1, 'no snapshot: "# harness transcript, version 1" is not there')
    if int(title[1]) != VERSION:
        raise SnapshotError(
            1,
            f"a snapshot of version {title[1]}; this harness reads version {VERSION}: "
            "use the harness that wrote it, or remove the file and keep it anew",
        )
    _verify_lines(lines)
    return _parse(lines)


def _snapshot_lines(snapshot: Snapshot) -> Iterator[str]:
    transcript = snapshot.transcript
    yield f"# harness transcript, version {VERSION}"
    yield f"# scenario: {snapshot.scenario}"
    yield f"# target: {snapshot.target}"
    yield f"# order: {'free' if transcript.free else 'as played'}"
    client = 0
    for message in transcript.messages:
        if message.client != client:
            client = message.client
            yield f"client {client}:"
        yield message.line
    yield f"end: {transcript.end}"


def _line_checksum(line: str) -> str:
    return f"{zlib.crc32(line.encode('utf-8', 'surrogatepass')) & 0xFFFF:04x}"


def _verify_lines(lines: Sequence[str]) -> None:
    """Raise `SnapshotError` for the first line that was changed."""
    for number, line in enumerate(lines, 1):
        if line.startswith(_MARKERS):
            raise SnapshotError(number, "a merge left this: remove the file and keep it anew")
    last = max(number for number, line in enumerate(lines) if line or not number)
    digits = lines[last].removeprefix(_CHECK) if lines[last].startswith(_CHECK) else None
    if digits is None:
        raise SnapshotError(last + 1, 'cut off: the last line, "# check: …", is not there')
    expected = [digits[at : at + 4] for at in range(0, len(digits), 4)]
    for number, line in enumerate(lines[:last]):
        if number >= len(expected) or _line_checksum(line) != expected[number]:
            raise SnapshotError(number + 1, "edited by hand: it is not as it was kept")
    if len(expected) != last or lines[last + 1 :] != [""]:
        raise SnapshotError(last + 1, "edited by hand: lines are missing, or were added")


def _parse(lines: Sequence[str]) -> Snapshot:
    head: dict[str, str] = {}
    messages: list[Message] = []
    end, client = "", 0
    for number, line in enumerate(lines[1:], 2):
        if line.startswith("# "):
            name, _, value = line[2:].partition(": ")
            head[name] = value
        elif client_match := _CLIENT.fullmatch(line):
            client = int(client_match[1])
        elif line.startswith("end: "):
            end = line.removeprefix("end: ")
        elif line:
            messages.append(_message(line, number, client))
    free = _ORDERS.get(head.get("order", ""))
    if free is None or not end or "scenario" not in head or "target" not in head:
        raise SnapshotError(1, "no snapshot: its heading or its end is incomplete")
    transcript = Transcript(tuple(messages), end, free)
    return Snapshot(head["scenario"], head["target"], transcript)


def _message(line: str, number: int, client: int) -> Message:
    arrow, _, body = line.partition(" ")
    place, body = body.startswith(_PLACE), body.removeprefix(_PLACE)
    many, body = body.startswith(_ANY_NUMBER), body.removeprefix(_ANY_NUMBER)
    garbled, body = body.startswith(_GARBLED), body.removeprefix(_GARBLED)
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        value = None
        arrow = ""
    if arrow not in ("->", "<-"):
        raise SnapshotError(number, "no message: a line is an arrow, -> or <-, and JSON")
    return Message(arrow == "->", value, client, garbled, many, place)
