"""`harness show --fold`: keys, the lines on the screen, and findings that come later."""

import threading
from collections.abc import Callable, Sequence

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.color_depth import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

from harness.cli.fold_view import FoldView
from harness.report.diagram.model import FindingMark
from harness.report.outline.node import Node, json_nodes

ROWS, COLUMNS = 12, 60


class Screen:
    """A terminal; `text` are its rows after the last drawing."""

    encoding = "utf-8"

    def __init__(self) -> None:
        self.text = ""
        self.on_drawn: Callable[[], None] = lambda: None

    def write(self, text: str) -> int:
        return len(text)

    def flush(self) -> None:
        pass

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError


def messages(count: int, wrong: int = -1) -> list[Node]:
    nodes: list[Node] = []
    for number in range(count):
        marks = [FindingMark("turn.status", "MUST", "a", "expected b")] if number == wrong else []
        node = Node(f"#{number}", f"message {number}", number / 1000, "request", marks=marks)
        node.make_children = lambda key=node.key, marks=marks: json_nodes(key, {"a": 1}, marks)
        node.finding_count = len(marks)
        nodes.append(node)
    return nodes


def played(
    keys: str,
    count: int = 100,
    judge: Callable[[], Sequence[Node]] | None = None,
    screen: Screen | None = None,
) -> tuple[FoldView, Screen]:
    """The view after these keys and `q`, which come when the findings are there."""
    screen = screen or Screen()
    output = Vt100_Output(
        screen,  # pyright: ignore[reportArgumentType]
        lambda: Size(ROWS, COLUMNS),
        term="xterm",
        default_color_depth=ColorDepth.DEPTH_1_BIT,
    )
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=output):
        view = FoldView("trace.jsonl", messages(count), judge or (lambda: messages(count, 40)))
        to_send = [keys, "q"] if keys else ["q"]

        def send(_: object) -> None:
            cells = view.app.renderer.last_rendered_screen
            if cells is None:
                return  # It has ended.
            rows = [cells.data_buffer[row] for row in range(ROWS)]
            columns = range(COLUMNS)
            screen.text = "\n".join("".join(row[at].char for at in columns) for row in rows)
            screen.on_drawn()
            if view.status != "judging ..." and to_send:
                pipe.send_text(to_send.pop(0))

        view.app.after_render += send
        view.run()
    return view, screen


@pytest.mark.parametrize(
    ("keys", "selected"),
    [
        ("jjk", 1),
        ("\x1b[B\x1b[B", 2),
        ("G", 99),
        ("Gg", 0),
        ("\x1b[6~", 10),
        ("\x1b[6~\x1b[6~\x1b[5~", 10),
        ("f", 40),
        ("F", 40),
        ("/message 77\r", 77),
        ("/AGE 7\rnn", 71),
        ("/age 7\rN", 79),
        ("/message 77\x1bj", 1),
        ("j/nowhere\r", 1),
    ],
)
def test_keys_select_a_line(keys: str, selected: int) -> None:
    view, _ = played(keys)
    assert view.outline.current_line.node.key == f"#{selected}"


def test_message_unfolds_to_its_members_with_the_wrong_one_marked() -> None:
    view, screen = played("f\rjjj")
    assert [line.node.text.strip() for line in view.outline.lines[40:44]] == [
        "message 40",
        "{",
        '"a": 1',
        "}",
    ]
    assert '"a": 1  <- MUST turn.status: expected b' in screen.text
    assert "rows with findings: 1" in screen.text
    view, _ = played("f\rj\x1b[D")
    assert len(view.outline.lines) == 100


def test_not_found_and_no_finding_are_told() -> None:
    assert played("/nowhere\r", 3)[0].status == "not found: nowhere"
    assert played("f", 3)[0].status == "no finding"


def test_only_lines_on_the_screen_are_drawn() -> None:
    _, screen = played("", 10_000)
    assert "message 9 " in screen.text
    assert "message 30 " not in screen.text


def test_first_screen_does_not_wait_for_the_judge() -> None:
    screen, is_drawn = Screen(), threading.Event()
    seen: list[str] = []

    def judge() -> Sequence[Node]:
        is_drawn.wait(30)
        seen.append(screen.text)
        return messages(5)

    screen.on_drawn = is_drawn.set
    played("", 5, judge, screen)
    assert "message 4" in seen[0]
