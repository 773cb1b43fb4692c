"""Actions that are shown for a command: a table, and arbitrary text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.protocol.wire.item import UnknownAction
from reference_server.sandbox.actions import actions_of


def said(script: str) -> list[tuple]:
    found = []
    for one in actions_of(["bash", "-lc", script]):
        wire = one.model_dump(by_alias=True)
        assert wire.pop("command")
        found.append(tuple(wire.values()))
    return found


@pytest.mark.parametrize(
    ("script", "actions"),
    [
        ("cat a.txt", [("read", "a.txt", "a.txt")]),
        ("cat dir/a.txt /etc/b", [("read", "a.txt", "dir/a.txt"), ("read", "b", "/etc/b")]),
        ("head -n 5 a.txt", [("read", "a.txt", "a.txt")]),
        ("head -5 a.txt", [("read", "a.txt", "a.txt")]),
        ("tail -n +3 'a b'", [("read", "a b", "a b")]),
        ("sed -n '1,20p' src/x.py", [("read", "x.py", "src/x.py")]),
        ("sed -i s/a/b/ x.py", [("unknown",)]),
        ("less x", [("read", "x", "x")]),
        ("nl -b a x", [("read", "x", "x")]),
        ("cat -- -x", [("read", "-x", "-x")]),
        ("/bin/cat x", [("read", "x", "x")]),
        ("cat", [("unknown",)]),
        ("cat a > b", [("unknown",)]),
        ("cat a 2>/dev/null", [("read", "a", "a")]),
        ("ls", [("listFiles", None)]),
        ("ls -la src", [("listFiles", "src")]),
        ("find . -name '*.py'", [("listFiles", ".")]),
        ("find -name x", [("listFiles", None)]),
        ("find . -delete", [("unknown",)]),
        ("find . -exec rm {} ;", [("unknown",), ("unknown",)][:1]),
        ("tree -L 2 src", [("listFiles", "src")]),
        ("rg --files", [("listFiles", None)]),
        ("rg --files src", [("listFiles", "src")]),
        ("git ls-files", [("listFiles", None)]),
        ("grep -rn TODO src", [("search", "TODO", "src")]),
        ("grep -e TODO src", [("search", "TODO", "src")]),
        ("rg TODO", [("search", "TODO", None)]),
        ("rg -g '*.py' -A 3 'a b' src", [("search", "a b", "src")]),
        ("ag x", [("search", "x", None)]),
        ("git grep x lib", [("search", "x", "lib")]),
        ("git push", [("unknown",)]),
        ("rg TODO | head -20", [("search", "TODO", None)]),
        ("cat a | sort | uniq -c | wc -l", [("read", "a", "a")]),
        ("ls | grep x", [("listFiles", None)]),
        ("cat a | grep x b", [("read", "a", "a"), ("search", "x", "b")]),
        ("cat a | cut -d : -f 1", [("read", "a", "a")]),
        ("cat a | python x.py", [("read", "a", "a"), ("unknown",)]),
        ("echo a && cat f", [("read", "f", "f")]),
        ("cd src && cat f", [("read", "f", "src/f")]),
        ("cd src && ls", [("listFiles", "src")]),
        ("cd src; rg x /abs", [("search", "x", "/abs")]),
        ("make && cat log", [("unknown",), ("read", "log", "log")]),
        ("echo hi", [("unknown",)]),
        ("echo hi > f", [("unknown",)]),
        ("for x in *; do cat $x; done", [("unknown",)]),
        ("cat <<E\nE", [("unknown",)]),
        ("", []),
    ],
)
def test_the_actions_of_a_script_are_those_of_its_commands(script: str, actions) -> None:
    assert said(script) == actions


def test_the_text_of_each_action_is_its_own() -> None:
    found = actions_of(["bash", "-lc", "cat  'a b' | head; rg x"])
    assert [one.command for one in found] == ["cat  'a b'", "rg x"]
    [plain] = actions_of(["cat", "a b"])
    assert plain.command == "cat 'a b'"


@given(st.one_of(st.lists(st.text(max_size=12), max_size=5), st.text(max_size=60)))
def test_no_command_at_all_makes_it_fail(words) -> None:
    argv = ["bash", "-lc", words] if isinstance(words, str) else words
    for one in actions_of(argv):
        assert one.model_dump(by_alias=True)["type"] in ("read", "listFiles", "search", "unknown")


PROGRAMS = ["cat", "ls", "rg", "grep", "sed", "find", "tree", "git", "fd", "cd", "head", "tr", "nl"]
ARGUMENTS = ["-n", "-e", "--", "-", "", "--files", "ls-files", "grep", "1p", "x", "| head", "; cd"]


@given(st.sampled_from(PROGRAMS), st.lists(st.sampled_from(ARGUMENTS), max_size=6))
def test_known_programs_may_be_given_anything(program: str, arguments: list[str]) -> None:
    assert actions_of([program, *arguments]) is not None
    actions_of(["sh", "-c", " ".join([program, *arguments])])


@pytest.mark.parametrize(
    "script",
    [
        "cat " + "x " * 100,
        "cd a; cat b; " * 100,
        "ls " + "x" * 8192,
        "git log; " * 201,
    ],
)
def test_a_command_that_is_too_long_is_one_unknown_action(script: str) -> None:
    # Each action repeats the text of its command, or the folder that it is in.
    [one] = actions_of(["bash", "-c", script])
    assert one == UnknownAction(command=script)


@pytest.mark.parametrize(
    "script",
    [
        "ls | awk 'BEGIN{system(\"id\")}'",
        "ls | awk '{print > \"x\"}'",
        "ls | sort -o x",
        "ls | sed -n 'w x'",
        "sed -n '1e id' a",
        "sed -n 'w x' a",
        "fd -xrm",
        "rg --pre id x",
        "rg -z x a",
        "git grep -Oid x",
        "tree -o x",
        "less +!id a",
    ],
)
def test_a_command_that_does_more_is_not_shown_as_harmless(script: str) -> None:
    """A user who approves commands reads the actions first."""
    assert "unknown" in [action.type for action in actions_of(["bash", "-c", script])]


@pytest.mark.parametrize(
    "script", ["ls | sed s/a/b/", "ls | awk '{print $1}'", "ls | sort -u", "sed -n 1,5p a"]
)
def test_programs_that_only_shape_text_are_not_actions(script: str) -> None:
    assert "unknown" not in [action.type for action in actions_of(["bash", "-c", script])]
