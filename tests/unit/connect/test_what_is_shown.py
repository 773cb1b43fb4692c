"""Output of a session: the shown part of a conversation and of a finding."""

import pytest

from harness.cli.connect.display import MAX_ALIKE_SHOWN, MAX_MESSAGES_SHOWN, Display
from harness.client.target.profile import Deviation
from harness.judge.verdict import Level, Row, Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.frame import Direction, Frame
from harness.trace.recorder import Recorder


class Screen:
    """The lines that a display wrote."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.display = Display(self.lines.append, load_book(), colour=False, width=lambda: 60)
        self._recorder = Recorder()

    def came(self, raw: str) -> Frame:
        """A message from the server is shown."""
        frame = self._recorder.record(raw.encode(), Direction.FROM_TARGET)
        self.display.show_frame(frame)
        return frame


@pytest.fixture
def screen() -> Screen:
    return Screen()


DELTA = '{"method":"item/agentMessage/delta","params":{"itemId":"i","delta":"x"}}'


def test_messages_alike_are_counted_and_told_when_another_comes(screen: Screen) -> None:
    for _ in range(100):
        screen.came(DELTA)
    assert len(screen.lines) == MAX_ALIKE_SHOWN
    screen.came('{"id":1,"result":{}}')
    assert screen.lines[MAX_ALIKE_SHOWN] == (
        f"  … {100 - MAX_ALIKE_SHOWN} more item/agentMessage/delta of i, the last is #99"
    )
    assert screen.lines[MAX_ALIKE_SHOWN + 1] == "← #100 result of id 1 {}"


def test_beyond_the_most_nothing_is_shown_until_the_user_speaks(screen: Screen) -> None:
    for number in range(MAX_MESSAGES_SHOWN + 50):
        screen.came(f'{{"id":{number},"result":{{}}}}')
    assert len(screen.lines) == MAX_MESSAGES_SHOWN + 1
    assert screen.display.hidden_count == 50
    screen.display.user_spoke()
    assert screen.lines[-1] == "  … 50 more messages were not shown; :show N"
    screen.came('{"id":1,"result":{}}')
    assert screen.lines[-1].endswith("result of id 1 {}")


def test_control_characters_are_escaped_and_long_lines_are_cut(screen: Screen) -> None:
    screen.came('{"method":"a\\u001b[31m","params":{"x":"' + "y" * 500 + '"}}')
    screen.came("\x1b[2J no json")
    assert not [line for line in screen.lines if "\x1b" in line]
    assert max(map(len, screen.lines)) <= 61


def test_findings_that_count_have_their_clause_and_the_rest_are_short(screen: Screen) -> None:
    row = Row("turn.completed-once", "turn u", Verdict.FAIL, Level.MUST, (), "one", "two")
    screen.display.show_finding(row)
    assert screen.lines[:3] == [
        "  MUST turn.completed-once: turn u",
        "      expected  one",
        "      actual    two",
    ]
    assert screen.lines[3].startswith("      clause    turn.completed-once: ")
    screen.lines.clear()
    screen.display.show_finding(row, "so it is there")
    assert screen.lines == [
        "  KNOWN turn.completed-once: turn u",
        "      known     so it is there",
    ]
    screen.lines.clear()
    screen.display.show_finding(row, "so it is there", in_full=True)
    assert len(screen.lines) == 6


def test_finding_that_is_known_elsewhere_says_where() -> None:
    lines: list[str] = []
    entry = Deviation(rule="turn.completed-once", scenario="lasting/*", reason="a declined patch")
    display = Display(lines.append, load_book(), colour=False, deviations=[entry])
    for rule in ("turn.completed-once", "turn.completes"):
        display.show_finding(Row(rule, "turn u", Verdict.FAIL, Level.MUST, (), "one", "two"))
    perhaps = [line for line in lines if "perhaps" in line]
    assert perhaps == ["      perhaps   known in lasting/*: a declined patch"]
