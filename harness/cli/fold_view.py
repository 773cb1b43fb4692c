"""`harness show --fold`: a conversation in a terminal, whose turns, items and messages unfold."""

import contextlib
import threading
from collections.abc import Callable, Sequence

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import BufferControl, HSplit, Layout, UIContent, UIControl, Window
from prompt_toolkit.layout.containers import ConditionalContainer
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.styles import Style

from harness.report.diagram.model import FindingMark
from harness.report.outline.folding import GROUP, Outline
from harness.report.outline.node import Node

HELP = "↑↓ move  → open  ← close  f F finding  / search  n N match  o c all  q quit"
_STYLE = Style.from_dict(
    {
        "group": "bold",
        "request": "ansiyellow",
        "response": "ansigreen",
        "error": "ansired",
        "malformed": "ansired",
        "silence": "ansicyan",
        "note": "ansibrightblack",
        "missing": "ansired",
        "finding": "ansired bold",
        "proof": "ansiyellow",
        "bar": "reverse",
    }
)
_FAR = 10**9
_MOVES = {"up": -1, "k": -1, "down": 1, "j": 1, "home": -_FAR, "g": -_FAR, "end": _FAR, "G": _FAR}


class _Lines(UIControl):
    """The lines of an outline; only those on the screen are drawn."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline

    def is_focusable(self) -> bool:
        return True

    def create_content(self, width: int, height: int) -> UIContent:
        return UIContent(
            get_line=self._line,
            line_count=len(self._outline.lines),
            cursor_position=Point(0, self._outline.cursor),
            show_cursor=False,
        )

    def _line(self, number: int) -> StyleAndTextTuples:
        node, depth, _ = self._outline.lines[number]
        selected = "reverse" if number == self._outline.cursor else ""
        time = f"{node.time * 1000:9.1f}  " if node.time is not None else " " * 11
        fold = " "
        if node.make_children is not None:
            fold = "-" if self._outline.is_open(node) else "+"
        wrong = "!" if node.finding_count else " "
        style = f"class:{node.kind} {selected}"
        parts: StyleAndTextTuples = [
            (selected, time),
            (f"class:finding {selected}", wrong),
            (style, f"{'  ' * depth}{fold} {node.text}"),
        ]
        if node.kind == GROUP and node.finding_count:
            parts.append(("class:finding", f"  findings: {node.finding_count}"))
        return [*parts, *(_mark_words(mark) for mark in node.marks if _is_told(node, mark))]


def _is_told(node: Node, mark: FindingMark) -> bool:
    """Return whether a line says a finding in words: of a message, its wrong member says them."""
    return not mark.path or node.kind == "json"


def _mark_words(mark: FindingMark) -> tuple[str, str]:
    style = "class:proof" if mark.in_proof else "class:finding"
    return style, f"  <- {mark.level} {mark.rule}" + ("" if mark.in_proof else f": {mark.text}")


class FoldView:
    """The full-screen view of an outline. `judge` returns its nodes with findings, made meanwhile.

    `judge` runs on a thread of its own after the first screen.
    """

    def __init__(
        self, title: str, nodes: Sequence[Node], judge: Callable[[], Sequence[Node]]
    ) -> None:
        self._title = title
        self.outline = Outline(nodes)
        self._judge = judge
        self._words = ""
        self.status = "judging ..."
        self._lines = Window(_Lines(self.outline), always_hide_cursor=True)
        self._query = Buffer(multiline=False, accept_handler=self._search)
        self._query_window = Window(BufferControl(self._query, [BeforeInput("/")]), height=1)
        self._is_searching = Condition(lambda: app.layout.has_focus(self._query))
        bar = Window(FormattedTextControl(self._bar), height=1, style="class:bar")
        search = ConditionalContainer(self._query_window, self._is_searching)
        app: Application[None] = Application(
            Layout(HSplit([self._lines, bar, search]), focused_element=self._lines),
            key_bindings=self._keys(),
            style=_STYLE,
            full_screen=True,
        )
        self.app = app

    def run(self) -> None:
        """Show the view until the user ends it."""
        self.app.run(pre_run=threading.Thread(target=self._find, daemon=True).start)

    def _find(self) -> None:
        nodes = self._judge()
        with contextlib.suppress(RuntimeError):  # The user has ended it.
            if self.app.loop is not None:
                self.app.loop.call_soon_threadsafe(self._take, nodes)

    def _take(self, nodes: Sequence[Node]) -> None:
        self.outline.replace(nodes)
        self.status = f"rows with findings: {sum(node.finding_count for node in nodes)}"
        self.app.invalidate()

    def _bar(self) -> str:
        place = f"{self.outline.cursor + 1}/{len(self.outline.lines)}"
        return f" {place}  {self.status}  {HELP}  {self._title}"

    def _search(self, query: Buffer) -> bool:
        self._words = query.text or self._words
        self.app.layout.focus(self._lines)
        self._seek(1)
        return False

    def _seek(self, step: int) -> None:
        if self._words and not self.outline.find(self._words, step):
            self.status = f"not found: {self._words}"

    def _seek_finding(self, step: int) -> None:
        if not self.outline.find_finding(step):
            self.status = "no finding"

    def _keys(self) -> KeyBindings:
        keys, outline, page = KeyBindings(), self.outline, self._page
        actions: dict[str, Callable[[], object]] = {
            "pageup": lambda: outline.move(-page()),
            "pagedown": lambda: outline.move(page()),
            "right": outline.open,
            "l": outline.open,
            "left": outline.close,
            "h": outline.close,
            "enter": outline.toggle,
            " ": outline.toggle,
            "o": lambda: outline.set_all(is_open=True),
            "c": lambda: outline.set_all(is_open=False),
            "n": lambda: self._seek(1),
            "N": lambda: self._seek(-1),
            "f": lambda: self._seek_finding(1),
            "F": lambda: self._seek_finding(-1),
            "/": lambda: self.app.layout.focus(self._query),
            "q": lambda: self.app.exit(),
        }
        for key, lines in _MOVES.items():
            actions[key] = lambda lines=lines: outline.move(lines)
        for key, action in actions.items():
            keys.add(key, filter=~self._is_searching)(_handler(action))
        keys.add("c-c")(_handler(lambda: self.app.exit()))
        leave = _handler(lambda: self.app.layout.focus(self._lines))
        keys.add("escape", filter=self._is_searching, eager=True)(leave)
        return keys

    def _page(self) -> int:
        info = self._lines.render_info
        return max(1, info.window_height - 1) if info is not None else 1


def _handler(action: Callable[[], object]) -> Callable[[KeyPressEvent], None]:
    return lambda _: (action(), None)[1]
