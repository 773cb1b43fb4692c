"""Typed lines: their meaning, the place of the cursor, and the proposals there."""

import pytest

from harness.cli.connect.completion import LineCompleter
from harness.cli.connect.fields import Fields
from harness.cli.connect.line_parser import Answer, Command, Raw, Request, params_of, parse_line
from harness.cli.connect.line_place import LinePlace, line_place
from harness.errors import UsageError
from harness.protocol.spec.loading import load_book


@pytest.fixture(scope="module")
def fields() -> Fields:
    return Fields(load_book())


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("{", LinePlace((), is_key=True, prefix="")),
        ('{"th', LinePlace((), is_key=True, prefix='"th')),
        ('{"a": ', LinePlace(("a",), is_key=False, prefix="")),
        ('{"a": "x', LinePlace(("a",), is_key=False, prefix='"x')),
        ('{"a": tr', LinePlace(("a",), is_key=False, prefix="tr")),
        ('{"a": 1, ', LinePlace((), is_key=True, prefix="", keys=("a",))),
        ('{"a": [{"b": ', LinePlace(("a", 0, "b"), is_key=False, prefix="")),
        ('{"a": [1, {', LinePlace(("a", 1), is_key=True, prefix="")),
        ('{"a": {"b": 1}, "c": "q\\"', LinePlace(("c",), is_key=False, prefix='"q\\"')),
        ('{"a": 1', LinePlace(("a",), is_key=False, prefix="1")),
        ('{"a": "x"', None),
        ('{"a": 1}', None),
        ("", None),
        ("}", None),
    ],
)
def test_the_place_in_unfinished_json(text: str, place: LinePlace | None) -> None:
    assert line_place(text) == place


def test_lines_and_what_they_mean(fields: Fields) -> None:
    assert parse_line("  ", fields) is None
    assert parse_line("thread/start", fields) == Request("thread/start", None)
    assert parse_line('{"id": 1}', fields) == Raw(b'{"id": 1}')
    assert parse_line("decline", fields) == Answer(decision="decline")
    assert parse_line(':answer {"a": 1}', fields) == Answer(result={"a": 1})
    assert parse_line(":answer error no such thing", fields) == Answer(refusal="no such thing")
    assert parse_line(":sh 3", fields) == Command(":show", "3")


def test_params_in_pairs() -> None:
    assert params_of("text=hello there effort=low n=1 a.b=true") == {
        "input": [{"type": "text", "text": "hello there"}],
        "effort": "low",
        "n": 1,
        "a": {"b": True},
    }
    assert params_of('text="x=y z"') == {"input": [{"type": "text", "text": "x=y z"}]}
    assert params_of("") is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("thred", "is no method, answer or command"),
        ("turn/start {", "the params are no JSON"),
        ("turn/start hello", "expected a JSON object, or name=value pairs"),
        ("turn/start a=1 a.b=2", "a has a value already"),
        (":quti", "did you mean :quit?"),
        (":answer {", "expected the result as JSON"),
    ],
)
def test_a_mistake_is_told(fields: Fields, line: str, said: str) -> None:
    with pytest.raises(UsageError) as told:
        parse_line(line, fields)
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("turn/s", ["turn/start", "turn/steer"]),
        ("steer", ["turn/steer"]),
        ("acc", ["accept", "acceptForSession"]),
        (":sa", [":save"]),
        ("turn/start eff", ["effort="]),
        ("turn/start effort=", ["low", "medium", "high"]),
        ("turn/start threadId=", ['"thr_7"']),
        ('turn/start {"eff', ['"effort": ']),
        ('turn/start {"effort": "', ['"low"', '"medium"', '"high"']),
        ('turn/start {"input": [{"type": "te', ['"text"']),
        ('turn/start {"input": [{"pa', ['"path": ']),
        ('thread/read {"threadId": "t", "inc', ['"includeTurns": ']),
        (":fields thread/n", ["thread/name/set"]),
        ("no/such a", []),
    ],
)
def test_proposals_for_a_typed_line(fields: Fields, text: str, words: list[str]) -> None:
    completer = LineCompleter(fields, lambda: {"threadId": "thr_7"})
    found = [one.word for one in completer.proposals(text)]
    expected = [word.strip('"') if "=" in text and "{" not in text else word for word in words]
    assert [one for one in found if one != "{"] in (words, expected)


def test_decisions_are_those_of_the_book(fields: Fields) -> None:
    command = fields.decisions("item/commandExecution/requestApproval")
    assert command == ["accept", "acceptForSession", "decline", "cancel"]
    assert fields.decisions("item/fileChange/requestApproval") == ["accept", "decline"]
    assert fields.decisions("item/tool/call") == []
