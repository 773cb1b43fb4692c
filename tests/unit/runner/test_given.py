"""Input of a run, stored in the head of its trace, so that it can be played again."""

import json
from pathlib import Path

from harness.play.lexicon import protocol_lexicon
from harness.play.trace_header import header_members
from harness.scenario.loader import Loaded, load, load_text
from harness.search.fuzz.sessions.play import load_document
from harness.trace import store
from harness.trace.trace import End, Header, Trace

SCENARIO = """\
title: A scenario with all that no message shows
needs: [command-execution]
config: {features: {web: true}, provider: {api_key: "sk-1234567890abcdef"}}
workspace: {files: {a.txt: "token: kept-as-it-is"}, pipes: [go]}
client_name: somebody
model:
  - reply: [{hold: here}, {message: "Hello."}]
setup:
  - start_thread: {as: t}
client:
  - start_turn: {thread: t, text: "hello", as: u}
  - wait: {gate: here}
  - open: here
  - wait: {turn: u, status: completed}
"""


def loaded(text: str = SCENARIO) -> Loaded:
    return load_text(text, lexicon=protocol_lexicon())


def test_it_has_what_no_message_shows_and_nothing_that_one_does() -> None:
    given = header_members(loaded())
    assert given["workspace"] == {"files": {"a.txt": "token: kept-as-it-is"}, "pipes": ["go"]}
    assert given["client_name"] == "somebody"
    assert given["model"][0]["reply"][0] == {"hold": "here"}
    assert given["steps"] == [
        {"as": "t"},
        {"as": "u"},
        {"wait": {"gate": "here"}},
        {},
        {"wait": {"turn": "u", "status": "completed"}},
    ]
    assert not given.keys() & {"title", "client", "setup", "expect", "covers"}


def test_a_request_may_have_params_of_any_depth() -> None:
    """Params in a scenario file are limited in depth, those that a fuzzer makes are not."""
    deep: object = None
    for _ in range(400):
        deep = [deep]
    asked = {"request": {"method": "thread/read", "params": deep, "as": "r"}}
    document = {"title": "Deep", "client": [asked, {"request": {"method": "thread/list"}}]}
    assert header_members(load_document(document))["steps"] == [{"as": "r"}, {}]


def test_secrets_of_a_configuration_are_masked() -> None:
    config = header_members(loaded())["config"]
    assert config == {"features": {"web": True}, "provider": {"api_key": "<secret 1>"}}


def test_a_file_that_is_copied_stands_there_whole(tmp_path: Path) -> None:
    (tmp_path / "tool.py").write_text("print('a')\n")
    (tmp_path / "picture").write_bytes(b"\xff\xfe")
    path = tmp_path / "one.scenario.yaml"
    text = SCENARIO.replace('{a.txt: "token: kept-as-it-is"}', "{b: {from: tool.py}}")
    path.write_text(text.replace("tool.py}", "tool.py}, c: {from: picture}"))
    given = header_members(load(path))
    assert given["workspace"]["files"] == {"b": "print('a')\n", "c": {"base64": "//4="}}


def test_a_plain_session_has_no_more_in_its_head_than_its_script_and_steps() -> None:
    plain = "title: a\nmodel: [{reply: [{message: b}]}]\nclient: [{start_thread: {as: t}}]\n"
    assert header_members(loaded(plain)).keys() == {"model", "steps"}


def test_the_head_is_written_and_read_and_may_be_missing(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace(Header(scenario="one", given=header_members(loaded())), end=End.CLOSED)
    store.save(trace, path)
    assert store.load(path).header == trace.header
    store.save(Trace(Header(scenario="one")), path)
    assert "given" not in path.read_text()
    assert store.load(path).header.given == {}


def test_a_reader_passes_over_a_member_of_the_head_that_it_does_not_know(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    head = {"scenario": "one", "version": 2, "marks": 2, "a-later-member": {"any": "thing"}}
    path.write_text(f'{json.dumps({"trace": head})}\n{{"end":"closed"}}\n')
    assert store.load(path).header.scenario == "one"


def test_a_file_that_the_configuration_names_is_in_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "tiny.py").write_text("print()\n")
    text = SCENARIO.replace("{web: true}", '{args: ["{scenario_folder}/tiny.py"]}')
    (tmp_path / "one.scenario.yaml").write_text(text)
    given = header_members(load(tmp_path / "one.scenario.yaml", root=tmp_path))
    assert given["config"]["features"] == {"args": ["{cwd}/tiny.py"]}
    assert given["workspace"]["files"]["tiny.py"] == "print()\n"
