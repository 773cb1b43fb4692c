"""Drawn forms of a diagram, Mermaid text and SVG: their look, and texts of hostile servers."""

import re
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from harness.judge.verdict import Level, Place, Row, Verdict
from harness.protocol.escapes import visible
from harness.report.diagram.build import build_diagram
from harness.report.diagram.limit import limit_rows
from harness.report.diagram.mermaid import MAX_CHARACTERS, escape_mermaid, mermaid_text
from harness.report.diagram.model import (
    Diagram,
    FindingMark,
    Folded,
    Message,
    MessageKind,
    Missing,
    Note,
    NoteKind,
    Participant,
    ParticipantKind,
    Silence,
)
from harness.report.diagram.svg import svg_text
from harness.report.diagram.svg_layout import fit_text, text_width, wrap_text
from harness.trace.frame import Direction
from harness.trace.marks import GateOpened, StepBegins
from harness.trace.recorder import Recorder
from harness.trace.trace import End
from tests.golden.odd_texts import TEXTS
from tests.rules.traces import Talk, agent_message

SVG = "{http://www.w3.org/2000/svg}"
# Words and characters that mean something to Mermaid, to XML, to HTML or to a terminal.
PIECES = (
    *"ab;#:%<>&\"'`\\=@{}[]()$,|~ \n\r\t\x1b\x00\u202e\u2028°¶ß\ufb02",
    *("end", "rect", "#59;", "#quot;", "%%{init: {}}%%", "wrap:", "style:", "<br/>", "-->>"),
    *("]]>", "<!--", "<script>alert(1)</script>", "Note over client: x", "classDef", "$$x$$"),
)
HOSTILE = st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)

# The lines that a diagram may have, each with a text of plain characters and character codes.
TEXT = r"(?:[A-Za-z0-9 _./,()+=…-]|[^\W\d_]|#\d+;)+"
LINE = re.compile(
    rf"sequenceDiagram|    (?:title {TEXT}|participant [a-z]+\d* as {TEXT}|end"
    rf"|[a-z]+\d*(?:->>|-->>|-\)|--x)[a-z]+\d*: {TEXT}"
    rf"|Note over [a-z]+\d*(?:,[a-z]+\d*)?: {TEXT}(?:<br/>{TEXT})*|rect rgba\(220, 38, 38, 0\.18\))"
)
# Characters that Mermaid takes for its own codes of a text.
CODES = set("°¶ß\ufb02")


def as_file(extension: str) -> type[SingleFileSnapshotExtension]:
    """A snapshot that is a text file with this extension, so that a browser or editor shows it."""

    class TextFile(SingleFileSnapshotExtension):
        _write_mode = WriteMode.TEXT
        file_extension = extension

    return TextFile


def small_conversation() -> Diagram:
    """A row of each kind."""
    talk = Talk("turns/small").mark(StepBegins("start_turn", 3)).ask_turn().reply_turn()
    talk.turn_started().calls("hello").mark(GateOpened("held")).ends()
    talk.started(agent_message("m", "")).delta("m", "a").delta("m", "b").delta("m", "c")
    talk.completed(agent_message("m", "abd")).asks("thread/read").refuses("not <now>")
    frames = talk.trace().frames
    text = next(frame for frame in frames if frame.method == "item/completed")
    findings = [
        Row(
            "delta.rebuilds-reply",
            "item m",
            Verdict.FAIL,
            Level.MUST,
            (text.seq,),
            'params.item.text: "abc"',
            'params.item.text: "abd"',
            places=(Place(text.seq, "params.item.text", 2),),
        ),
        Row(
            "turn.completes",
            "turn turn_1",
            Verdict.FAIL,
            Level.SHOULD,
            (1,),
            "turn/completed for turn turn_1",
            "none came",
        ),
    ]
    diagram = build_diagram(talk.trace(End.TIMED_OUT), findings, stderr="a warning")
    silence = Silence(time=0.011, seconds=2.5, waiting_for="the server to answer thread/read")
    return Diagram(
        diagram.title, diagram.participants, (*diagram.rows[:-4], silence, *diagram.rows[-4:])
    )


def diagram_of(text: str) -> Diagram:
    """A diagram in which each text is this one."""
    mark = FindingMark(text, text, text, text)
    ends: dict[str, Any] = {"time": 0.0, "source": "server", "target": "client", "label": text}
    return Diagram(
        text,
        (
            Participant("client", text, ParticipantKind.CLIENT),
            Participant("server", text, ParticipantKind.SERVER),
            Participant("tool1", text, ParticipantKind.TOOL),
        ),
        (
            *(Message(**ends, kind=kind, detail=text, frame=0) for kind in MessageKind),
            Message(**ends, kind=MessageKind.REQUEST, marks=(mark,), frame=1),
            Folded(**ends, seconds=1.0, count=3, first=1, last=3, text=text),
            Silence(time=0.0, seconds=2.0, waiting_for=text),
            *(Note(time=0.0, kind=kind, text=text, over=("tool1",)) for kind in NoteKind),
            Note(time=0.0, kind=NoteKind.FINDING, text=text, marks=(mark,)),
            Missing(**ends, marks=(mark,)),
            Missing(**ends),
        ),
    )


@pytest.mark.parametrize(("form", "extension"), [(mermaid_text, "mmd"), (svg_text, "svg")])
def test_small_conversation_is_drawn_as_reviewed(
    form: Callable[[Diagram], str], extension: str, snapshot: SnapshotAssertion
) -> None:
    expected = snapshot(name="small", extension_class=as_file(extension))
    assert form(small_conversation()) == expected


@given(HOSTILE)
@example("a<img src=x onerror=alert(1)>\n    client->>server: mine;#quot;")
def test_no_text_adds_a_line_to_mermaid_or_leaves_its_place(text: str) -> None:
    drawn = mermaid_text(diagram_of(text))
    lines = drawn.rstrip("\n").split("\n")
    assert all(LINE.fullmatch(line) for line in lines), drawn
    # Arrows: a message of each kind, a wrong one, a fold, two that never came.
    heads = Counter(line.split()[0] for line in lines)
    assert (heads["participant"], heads["title"], heads["rect"], heads["end"]) == (3, 1, 3, 3)
    arrows = [line for line in lines if re.match("    [a-z0-9]+-", line)]
    assert len(arrows) == len(MessageKind) + 4
    assert not CODES & set(drawn)


@given(HOSTILE)
def test_mermaid_shows_the_text_as_it_is(text: str) -> None:
    shown = re.sub(r"#(\d+);", lambda code: chr(int(code[1])), escape_mermaid(text))
    assert shown.strip() == visible(text).strip()


@given(HOSTILE)
@example("]]><script>alert(1)</script>\x00\ufffe\ud800")
def test_no_text_adds_an_element_to_svg(text: str) -> None:
    drawn = svg_text(diagram_of(text))
    root = ElementTree.fromstring(drawn.encode())
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "style", "rect", "path", "circle", "text", "g"}
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not any(name.startswith("on") or "href" in name for name in attributes)
    assert root.findtext(f"{SVG}title") == "\n".join(map(visible, text.split("\n")))
    # Only lines of findings are wrapped, and so differ in number.
    plain = ElementTree.fromstring(svg_text(diagram_of("a")).encode())
    assert len(root.findall(f".//{SVG}g")) == len(plain.findall(f".//{SVG}g"))
    whole = "".join(root.itertext()).replace("\n", "")
    assert whole.isprintable()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_odd_text_of_a_server_is_escaped_in_both_forms(text: str) -> None:
    for drawn in (mermaid_text(diagram_of(text)), svg_text(diagram_of(text))):
        assert drawn.replace("\n", "").isprintable()
        drawn.encode()


def test_svg_needs_nothing_but_itself() -> None:
    drawn = svg_text(small_conversation())
    assert drawn.count("http") == 1  # Its name space.
    assert "url(" not in drawn
    assert "<script" not in drawn
    assert "prefers-color-scheme:dark" in drawn


def test_line_of_ten_megabytes_is_cut_in_both_forms() -> None:
    recorder = Recorder()
    line = b'{"method": "turn/started", "params": {"x": "' + b"<&>#;" * 2_000_000 + b'"}}'
    recorder.record(line, Direction.FROM_TARGET)
    diagram = build_diagram(recorder.trace)
    assert len(svg_text(diagram)) < 20_000
    assert len(mermaid_text(diagram)) < 2_000


def test_findings_stand_below_their_message_and_a_missing_one_does_not_arrive() -> None:
    root = ElementTree.fromstring(svg_text(small_conversation()).encode())
    words = [element.text for element in root.iter(f"{SVG}text")]
    finding = words.index("MUST delta.rebuilds-reply  params.item.text")
    assert words[finding - 1] == "item/completed agentMessage"
    assert "item m: expected params.item.text" in str(words[finding + 1])
    assert [element.get("class") for element in root.iter(f"{SVG}rect")].count("band") == 1
    assert "turn/completed never came" in words
    places = {
        element.findtext(f"{SVG}text"): element.find(f"{SVG}path")
        for element in root.iter(f"{SVG}g")
    }

    def length(label: str) -> float:
        path = places[label]
        assert path is not None
        [start, end] = re.findall(r"[MH]([\d.]+)", path.get("d", ""))
        return abs(float(start) - float(end))

    assert length("turn/completed never came") < 0.8 * length("turn/started inProgress")


def long_diagram(count: int, wrong: int) -> Diagram:
    mark = (FindingMark("a.b", "MUST"),)
    rows = tuple(
        Message(
            time=number / 1000,
            source="server",
            target="client",
            label=f"message/{number} {'of a long name ' * 5}",
            kind=MessageKind.NOTIFICATION,
            frame=number,
            marks=mark if number == wrong else (),
        )
        for number in range(count)
    )
    return Diagram("long", diagram_of("a").participants, rows)


def test_bound_keeps_findings_and_says_how_many_rows_are_left_out() -> None:
    shown = limit_rows(long_diagram(500, wrong=250), 31)
    numbers = [row.frame for row in shown.rows if isinstance(row, Message)]
    assert numbers == [*range(11), *range(246, 255), *range(489, 500)]
    notes = [row.text for row in shown.rows if isinstance(row, Note)]
    assert [note.split(";")[0] for note in notes] == [
        "235 rows are not drawn",
        "234 rows are not drawn",
    ]
    assert all("--turn" in note for note in notes)
    assert limit_rows(long_diagram(31, wrong=3), 31) == long_diagram(31, wrong=3)
    few = limit_rows(replaced(long_diagram(40, wrong=3)), 5)
    assert sum(row.text.startswith("35 rows") for row in few.rows if isinstance(row, Note)) == 1
    assert "35 with findings" in str(few.rows)


def replaced(diagram: Diagram) -> Diagram:
    """The diagram with the same rows, all wrong."""
    wrong = tuple(
        Note(time=0.0, kind=NoteKind.FINDING, text="a", marks=(FindingMark("a.b", "MUST"),))
        for _ in diagram.rows
    )
    return Diagram(diagram.title, diagram.participants, wrong)


def test_mermaid_text_stays_below_the_length_that_mermaid_takes() -> None:
    drawn = mermaid_text(long_diagram(3000, wrong=1500))
    assert 0.5 * MAX_CHARACTERS < len(drawn) <= MAX_CHARACTERS
    assert "message/1500" in drawn
    assert "rows are not drawn" in drawn


def test_rows_of_five_hundred_messages_do_not_overlap() -> None:
    root = ElementTree.fromstring(svg_text(long_diagram(500, wrong=250)).encode())
    arrows = [
        float(match[1])
        for element in root.iter(f"{SVG}path")
        if (match := re.match(r"M[\d.]+ ([\d.]+)H", element.get("d", "")))
        and "arrow" in element.get("class", "")
    ]
    assert len(arrows) == 500
    assert min(low - high for high, low in pairwise(arrows)) >= 28
    height = float(root.get("height", "0"))
    assert max(arrows) < height < 500 * 34


def test_wide_characters_take_two_cells() -> None:
    assert text_width("\u6f22") == text_width("aa")
    assert fit_text("\u6f22" * 5, text_width("a" * 9)) == "\u6f22" * 4 + "…"


@given(st.text(max_size=200), st.integers(20, 400))
def test_cut_and_wrapped_texts_fit_their_width(text: str, width: int) -> None:
    assert text_width(fit_text(text, width)) <= width
    lines = wrap_text(text, width, 11, 4)
    assert len(lines) <= 4
    assert all(text_width(line, 11) <= width for line in lines)
    if not lines[-1:] or not lines[-1].endswith("…"):
        assert "".join(lines).replace(" ", "") == text.replace(" ", "")
