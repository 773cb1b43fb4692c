"""Cost of input from a model or a client: proportional to its length, or little more.

Each parser gets several shapes of input that once had, or could have, quadratic cost.
"""

import json
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from growth import Job, exponent

from reference_server.engine.items import GrowingReasoning
from reference_server.engine.plan_text import PlanSplitter
from reference_server.engine.review_text import review_text
from reference_server.envelope import decode
from reference_server.model.errors import ModelError, http_failed, response_failed
from reference_server.model.events import read_event
from reference_server.model.sse import SseParser
from reference_server.patch.find import Lines, TooMuchWork
from reference_server.patch.heredoc import heredoc_patch
from reference_server.patch.match import apply_hunks
from reference_server.patch.parse import Hunk, PatchError, parse_patch
from reference_server.patch.unified import TooMuchToShow, unified_hunks
from reference_server.sandbox.actions import actions_of
from reference_server.sandbox.output import Output
from reference_server.sandbox.rules import Rules
from reference_server.sandbox.shell_syntax import MAX_WORD_BYTES
from reference_server.transport.lines import LineSplitter
from tests.sampling import one_in

pytestmark = pytest.mark.slow
MAX_EXPONENT = 1.5
Text = Callable[[int], Any]

EXPECTED = (PatchError, ModelError, TooMuchToShow, TooMuchWork)


def check(text: Text, run: Callable[[Any], object], largest: int) -> None:
    def quiet(given: Any) -> None:
        try:
            run(given)
        except EXPECTED:
            return

    def prepared(size: int) -> Callable[[], Job]:
        given = text(size)
        return lambda: lambda: quiet(given)

    # Caches that other processes share blur one measurement; a square shows in each.
    assert any(exponent(prepared, largest) < MAX_EXPONENT for _ in range(3))


def fed(parser: Callable[[], Any]) -> Callable[[Iterable[Any]], None]:
    def run(pieces: Iterable[Any]) -> None:
        feed = parser().feed
        for piece in pieces:
            feed(piece)

    return run


def filled(unit: str, start: str = "", end: str = "") -> Text:
    return lambda size: start + unit * (size // len(unit)) + end


COMMANDS = {
    "assignments": filled("a=b "),
    "assignments of elements": filled("a[", "", "]=b"),
    "words": filled("a "),
    "quotations": filled("'a'"),
    "quotations side by side": filled('"a" '),
    "a quotation without its end": filled("a", '"'),
    "escapes": filled("\\a"),
    "continued lines": filled("\\\n"),
    "variables": filled("$a"),
    "digits": filled("1"),
    "redirections": filled("<a"),
    "comments": filled("#a\n"),
    "empty lines": filled("\n"),
    "commands": filled("a;"),
    "commands of git": filled("git log;"),
    "files": filled("a ", "cat "),
    "options": filled("-e ", "grep "),
    "options of git": filled("--out ", "git log "),
    "folders": filled("cd a;"),
    "pipes": filled("cat a|head|"),
}


@pytest.mark.parametrize("shape", one_in(4, COMMANDS, pytest.mark.attacks))
@pytest.mark.parametrize("reader", ["trust", "rules"])
def test_judging_a_command(shape: str, reader: str) -> None:
    rules = Rules(tuple(("a", str(number)) for number in range(100)))
    trusted_in = "/w" if reader == "trust" else None
    check(
        COMMANDS[shape],
        lambda text: rules.allow(("bash", "-c", text), "/w", trusted_in=trusted_in),
        MAX_WORD_BYTES // 8,
    )


@pytest.mark.parametrize("shape", one_in(4, COMMANDS, pytest.mark.attacks))
def test_the_actions_of_a_command(shape: str) -> None:
    # Longer ones are not looked at.
    check(COMMANDS[shape], lambda text: actions_of(("bash", "-c", text)), 8000)


@pytest.mark.parametrize("shape", ["files", "folders", "pipes", "words"])
def test_the_size_of_the_actions_of_a_command(shape: str) -> None:
    for size in (8000, 80_000):
        text = COMMANDS[shape](size)
        said = sum(len(one.encode()) for one in actions_of(("bash", "-c", text)))
        assert said < 64 * 8192 * 2 + 2 * len(text)


HEREDOCS = {
    "lines": filled("x\n", "apply_patch <<'E'\n", "E"),
    "lines without an end": filled("x\n", "apply_patch <<'E'\n"),
    "a long mark": filled("a", "apply_patch <<"),
    "blanks": filled(" ", "apply_patch", "<<E\nE"),
    "an open quotation": filled("a", 'apply_patch "*** Begin Patch'),
    "escapes": filled("\\\\", 'apply_patch "', '"'),
    "escapes that are bare": filled("\\a", "apply_patch "),
    "in a shell": filled("'\\''", "bash -c 'apply_patch ", "'"),
    "a folder": filled("a/", "cd ", " && apply_patch <<E\nE"),
    "pieces": filled("'a'", "cd "),
    "ends": filled("E\n", "apply_patch <<E\n"),
}


@pytest.mark.parametrize("shape", HEREDOCS)
def test_a_patch_in_a_command(shape: str) -> None:
    check(HEREDOCS[shape], heredoc_patch, 40_000)


BEGIN, END = "*** Begin Patch\n", "\n*** End Patch"
PATCHES = {
    "added lines": filled("+x\n", BEGIN + "*** Add File: a\n", END),
    "hunks": filled("@@\n-a\n+b\n", BEGIN + "*** Update File: a\n", END),
    "headers": filled("@@ a\n", BEGIN + "*** Update File: a\n", "-a" + END),
    "blank lines": filled("\n", BEGIN, END),
    "blank lines of a hunk": filled("\n", BEGIN + "*** Update File: a\n@@\n-a\n", END),
    "files": filled("*** Add File: a\n+a\n", BEGIN, END),
    "line numbers": filled("1", BEGIN + "*** Update File: a\n@@ -", END),
    "one line": filled("a", BEGIN, END),
    "no end": filled("+x\n", BEGIN + "*** Add File: a\n"),
    "a heredoc around it": filled("+x\n", "<<E\n" + BEGIN + "*** Add File: a\n", END + "\nE"),
}


@pytest.mark.parametrize("shape", PATCHES)
def test_reading_a_patch(shape: str) -> None:
    check(PATCHES[shape], parse_patch, 24_000)


def hunk(*lines: str, headers: tuple[str, ...] = ()) -> Hunk:
    return Hunk(1, headers, tuple((line[0], line[1:]) for line in lines))


def same_lines(size: int) -> tuple[bytes, list[Hunk]]:
    lines = [" a"] * (size // 4) + ["-b"]
    return b"a\n" * size, [hunk(*lines)]


def two_kinds(size: int) -> tuple[bytes, list[Hunk]]:
    lines = [" a", " b"] * (size // 8) + ["-b"]
    return b"a\nb\n" * (size // 2), [hunk(*lines)]


def white_space(size: int) -> tuple[bytes, list[Hunk]]:
    return b"a \n" * size, [hunk("-a", "+b")] * (size // 400)


def found_at_the_end(size: int) -> tuple[bytes, list[Hunk]]:
    return b"a\n" * size + b"z\n", [hunk("+x", headers=("z",))] * (size // 400)


def many_hunks(size: int) -> tuple[bytes, list[Hunk]]:
    content = "".join(f"{number}\n" for number in range(size))
    return content.encode(), [hunk(f"-{number}", "+x") for number in range(0, size, 2)]


def many_headers(size: int) -> tuple[bytes, list[Hunk]]:
    return b"a\n" * size, [hunk("-b", headers=("a",) * (size // 20))]


def by_its_end(size: int) -> tuple[bytes, list[Hunk]]:
    one = Hunk(1, (), ((" ", "b"),) * (size // 20), at_end=True)
    return b"a\n" * size, [one]


@pytest.mark.parametrize(
    "shape",
    [
        same_lines,
        two_kinds,
        white_space,
        found_at_the_end,
        many_hunks,
        many_headers,
        by_its_end,
    ],
)
def test_finding_hunks(shape: Callable[[int], tuple[bytes, list[Hunk]]]) -> None:
    check(shape, lambda given: apply_hunks(given[0], given[1], "file"), 16_000)


def test_lines_that_are_all_the_same_are_found_in_the_time_of_one_reading() -> None:
    def searched(size: int) -> tuple[Lines, list[str]]:
        lines = Lines(b"a\n" * size)
        lines.find(["nothing"], 0)
        return lines, ["a"] * (size // 4) + ["b"]

    check(searched, lambda given: given[0].find(given[1], 0), 40_000)


TEXTS: dict[str, Callable[[int], tuple[str, str]]] = {
    "reversed": lambda size: (_numbered(range(size)), _numbered(range(size, 0, -1))),
    "all the same": lambda size: ("a\n" * size, "a\n" * (size // 2) + "b\n" + "a\n" * size),
    "every other": lambda size: (_numbered(range(size)), _numbered(range(0, 2 * size, 2))),
    "in one line": lambda size: ("a" * size, "a" * size + "b"),
    "both ends": lambda size: ("x\n" + "a\n" * size + "x\n", "y\n" + "a\n" * size + "y\n"),
    "emptied": lambda size: ("a\n" * size, ""),
    "the last line": lambda size: ("a\n" * size, "a\n" * size + "b"),
}


def _numbered(numbers: Iterable[int]) -> str:
    return "".join(f"{number}\n" for number in numbers)


@pytest.mark.parametrize("shape", TEXTS)
def test_the_diff_of_two_texts(shape: str) -> None:
    # Beyond two thousand lines on both sides they are one hunk.
    check(TEXTS[shape], lambda given: unified_hunks(*given), 20_000)


def pieces_of(text: str, size: int, length: int) -> list[str]:
    whole = text * (size // len(text))
    return [whole[at : at + length] for at in range(0, len(whole), length)]


PLANS: dict[str, Callable[[int], list[str]]] = {
    "a page": lambda size: pieces_of("<p>words</p>\n", size, size),
    "a page in pieces": lambda size: pieces_of("<p>words</p>\n", size, 7),
    "plans": lambda size: pieces_of("<proposed_plan>\n</proposed_plan>\nx\n", size, size),
    "empty lines": lambda size: pieces_of("\n<", size, size),
    "an open line": lambda size: ["<proposed_plan>", *pieces_of(" ", size, 1)],
    "one line": lambda size: pieces_of("<", size, 1),
}


CHEAP = {"a page", "plans"}
"""Shapes that are parsed so fast that only a long input shows the growth of the cost."""


@pytest.mark.parametrize("shape", PLANS)
def test_telling_plans_apart(shape: str) -> None:
    check(PLANS[shape], fed(PlanSplitter), 400_000 if shape in CHEAP else 16_000)


STREAMS: dict[str, Callable[[int], list[bytes]]] = {
    "returns": lambda size: [b"\r"] * size,
    "pieces that end in a return": lambda size: [b"12345678\r"] * size,
    "data that ends in a return": lambda size: [b"data: x\r"] * size,
    "one long line": lambda size: [b"data: ", *[b"x"] * size],
    "lines of one event": lambda size: [b"data: x\n"] * size,
    "empty data": lambda size: [b"data:\n"] * size,
    "events": lambda size: [b"data: x\n\n"] * size,
    "a page": lambda size: [b"<p>x</p>\r\n" * size],
    "a page in one line": lambda size: [b"<p>x</p>"] * size,
    "comments": lambda size: [b":\n\n"] * size,
}


@pytest.mark.parametrize("shape", STREAMS)
def test_reading_a_stream(shape: str) -> None:
    check(STREAMS[shape], fed(SseParser), 8_000)


EVENTS: dict[str, Text] = {
    "text": filled("a", '{"type":"response.output_text.delta","delta":"', '"}'),
    "halves": filled(r"\ud83d", '{"type":"response.output_text.delta","delta":"', '"}'),
    "backslashes": filled(r"\\", r'{"type":"response.output_text.delta","delta":"\ud83d', '"}'),
    "arrays": filled("[],", '{"type":"x","a":[', "0]}"),
    "members": filled('"a":0,', '{"type":"x",', '"b":0}'),
    "an open array": filled("[", '{"type":"x","a":'),
    "an open text": filled(r"\"", '{"type":"'),
    "digits": filled("1.", "", ""),
}


@pytest.mark.parametrize("shape", EVENTS)
def test_reading_an_event(shape: str) -> None:
    check(EVENTS[shape], lambda text: read_event(text.encode()), 40_000)


@pytest.mark.parametrize("shape", EVENTS)
def test_reading_a_line_of_a_client(shape: str) -> None:
    check(EVENTS[shape], lambda text: decode(text.encode()), 40_000)


BODIES = {
    "a page": filled("<p>words</p>\n"),
    "blanks": filled(" ", "", "x"),
    "arrays": filled("["),
    "words": filled("a", '{"error":{"message":"', '"}}'),
}


@pytest.mark.parametrize("shape", BODIES)
def test_reading_the_body_of_a_failure(shape: str) -> None:
    check(BODIES[shape], lambda text: http_failed(500, {}, text.encode()), 500_000)


def test_a_failure_that_the_model_reports_at_length() -> None:
    check(filled("a"), lambda text: response_failed({"code": text, "message": text}), 500_000)


LINES: dict[str, Callable[[int], list[bytes]]] = {
    "one long line": lambda size: [b"x"] * size,
    "short lines": lambda size: [b"x\n"] * size,
    "many in one piece": lambda size: [b"x\n" * size],
    "blank ones": lambda size: [b" \n" * size],
    "half lines": lambda size: [b"x\nx"] * size,
}


@pytest.mark.parametrize("shape", LINES)
def test_splitting_lines(shape: str) -> None:
    check(LINES[shape], fed(LineSplitter), 8_000)


OUTPUTS: dict[str, Callable[[int], list[bytes]]] = {
    "bytes": lambda size: [b"x"] * size,
    "half characters": lambda size: [b"\xf0\x9f"] * size,
    "much": lambda size: [b"x" * 100] * size,
}


@pytest.mark.parametrize("shape", OUTPUTS)
def test_keeping_the_output_of_a_command(shape: str) -> None:
    check(OUTPUTS[shape], fed(lambda: Output(1000, 1000)), 8_000)


REVIEWS: dict[str, Callable[[int], dict[str, Any]]] = {
    "findings": lambda size: {"findings": [{"title": "t", "body": "b"}] * size},
    "lines": lambda size: {"findings": [{"title": "t", "body": "b\n" * size}]},
    "a note": lambda size: {"overall_explanation": "a " * size},
}


@pytest.mark.parametrize("shape", REVIEWS)
def test_writing_a_review(shape: str) -> None:
    check(lambda size: json.dumps(REVIEWS[shape](size)), review_text, 4_000)


@pytest.mark.parametrize("kind", ["add_summary", "add_content"])
def test_reasoning_in_small_pieces(kind: str) -> None:
    def job(size: int) -> Callable[[], Job]:
        return lambda: lambda: _reasoned(kind, size)

    assert exponent(job, 16_000) < MAX_EXPONENT


def _reasoned(kind: str, pieces: int) -> None:
    ignoring = SimpleNamespace(notify=_ignore, send_delta=_ignore)
    thread: Any = SimpleNamespace(id="t", subscribers=ignoring, new_item_id=lambda: "i")
    log: Any = SimpleNamespace(
        thread=thread, turn_id="u", start_item=_ignore, complete_item=_ignore
    )
    reasoning = GrowingReasoning(log)
    add = getattr(reasoning, kind)
    for _ in range(pieces):
        add(0, "a piece of some length, which is copied again with each that follows it")
    reasoning.complete()


def _ignore(*_: object) -> None:
    pass
