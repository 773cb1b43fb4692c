"""`harness show` as a user runs it: from a pipe, and at a terminal with colours and a pager."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from command_line import call
from in_terminal import in_terminal

from tests.processes import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.socket]
TRACE = "fixtures/traces/good/interrupted.jsonl"


def test_filters_and_json_go_together(tmp_path: Path) -> None:
    said = call("harness", "show", TRACE, "--method", "turn/*", "--direction", "to-target")
    assert said.status == 0
    assert said.out.count("→") == 2
    assert "←" not in said.out
    file = tmp_path / "shown.json"
    said = call("harness", "show", TRACE, "--turn", "turn_1", "--json", str(file))
    assert "turn/interrupt" in said.out
    assert json.loads(file.read_text("utf-8"))["messages"][0]["method"] == "turn/start"
    said = call("harness", "show", TRACE, "--json", "-")
    assert len(json.loads(said.out)["messages"]) == 17


def test_unknown_thread_is_one_line_with_those_there_are() -> None:
    said = call("harness", "show", TRACE, "--thread", "thr_7")
    assert (said.status, said.out) == (2, "")
    assert "no message names this thread; there are thr_1" in said.err


def test_long_output_in_a_terminal_goes_through_the_pager_with_colours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho paged output\ncat\n", encoding="utf-8")
    pager.chmod(0o755)
    monkeypatch.setenv("PAGER", str(pager))
    trace = "fixtures/traces/good/two-threads.jsonl"
    with in_terminal("show", trace, cwd=ROOT) as terminal:
        terminal.until("paged output")
        terminal.until("end: quiescent")
        assert terminal.status() == 0
    with in_terminal("show", trace, "--no-pager", cwd=ROOT) as terminal:
        shown = terminal.until("end: quiescent")
        assert "paged output" not in shown
        assert "\x1b[34m" in terminal.raw
        assert terminal.status() == 0
    with in_terminal("show", TRACE, "--until", "3", cwd=ROOT) as terminal:
        assert "paged output" not in terminal.until("end: quiescent")


def test_error_code_is_explained_without_a_separator() -> None:
    said = call("harness", "explain", "-32600")
    assert said.status == 0
    assert said.out.startswith("-32600 (error code): invalid request")


def test_trace_is_drawn_as_mermaid_text_and_as_svg() -> None:
    drawn = call("harness", "show", TRACE, "--mermaid", "--method", "turn/*")
    assert (drawn.status, drawn.err) == (0, "")
    assert drawn.out.startswith("sequenceDiagram\n")
    arrows = [line for line in drawn.out.splitlines() if ": " in line]
    assert [line.strip().split(":")[0] for line in arrows] == [
        "client->>server",
        "server-->>client",
        "server-)client",
        "client->>server",
        "server-->>client",
        "server-)client",
    ]
    drawn = call("harness", "show", TRACE, "--svg")
    assert (drawn.status, drawn.err) == (0, "")
    root = ElementTree.fromstring(drawn.out)
    words = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"interrupted", "turn/interrupt", "turn/interrupt result", "end: quiescent"} <= words
    part = call("harness", "show", TRACE, "--svg", "--message", "12")
    assert "#14" in part.out
    assert "#15" not in part.out


def test_diagram_and_json_file_go_together(tmp_path: Path) -> None:
    file = tmp_path / "shown.json"
    drawn = call("harness", "show", TRACE, "--mermaid", "--json", str(file))
    assert drawn.out.startswith("sequenceDiagram\n")
    assert json.loads(file.read_text("utf-8"))["end"] == "quiescent"


@pytest.mark.parametrize("options", [["--svg", "--mermaid"], ["--svg", "--json", "-"]])
def test_two_forms_for_one_output_are_an_error(options: list[str]) -> None:
    said = call("harness", "show", TRACE, *options)
    assert (said.status, said.out) == (2, "")
    assert "--stdin, --mermaid, --svg and --json - print: give one of them" in said.err


def test_folded_view_searches_unfolds_and_gives_the_screen_back() -> None:
    with in_terminal("show", "--fold", TRACE, cwd=ROOT) as terminal:
        terminal.until("rows with findings: 0")
        terminal.press("/turn/interrupt\r")
        terminal.until("turn/interrupt #12")
        terminal.press("\r")
        terminal.until('"turnId": "turn_1"')
        terminal.press("q")
        assert terminal.status() == 0
        terminal.drain()
        assert terminal.raw.rindex("\x1b[?1049l") > terminal.raw.rindex("\x1b[?1049h")


def test_folded_view_without_a_terminal_prints_the_lines() -> None:
    plain = call("harness", "show", TRACE)
    assert call("harness", "show", "--fold", TRACE).out == plain.out
    with in_terminal("show", "--fold", "--no-pager", TRACE, cwd=ROOT, TERM="dumb") as terminal:
        terminal.until("end: quiescent")
        assert terminal.status() == 0
