"""Parsing of shell text, compared with real shells."""

import shutil
import subprocess

import pytest
from commands import PATH
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reference_server.sandbox.shell_syntax import NotSimple, commands_of, simple_commands


def read(text: str) -> list[tuple[list[str], str]]:
    return [([word.text for word in one.words], one.joiner) for one in simple_commands(text)]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ("", []),
        ("  \n # nothing\n", []),
        ("ls -la", [(["ls", "-la"], "")]),
        ("a 'b c' \"d e\" f\\ g", [(["a", "b c", "d e", "f g"], "")]),
        ("a ''", [(["a", ""], "")]),
        ("a 'it'\"'\"'s'", [(["a", "it's"], "")]),
        ('a "x\\"y\\z"', [(["a", 'x"y\\z'], "")]),
        ("a; b", [(["a"], ";"), (["b"], "")]),
        ("a;", [(["a"], ";")]),
        ("a&&b||c|d", [(["a"], "&&"), (["b"], "||"), (["c"], "|"), (["d"], "")]),
        ("a |\n b\nc", [(["a"], "|"), (["b"], ";"), (["c"], "")]),
        ("a & b", [(["a"], "&"), (["b"], "")]),
        ("a |& b", [(["a"], "|"), (["b"], "")]),
        ("a b#c # d", [(["a", "b#c"], "")]),
        ("a \\\n b", [(["a", "b"], "")]),
        ("X=1 Y=2 a Z=3", [(["a", "Z=3"], "")]),
        ("a 2>/dev/null b", [(["a", "b"], "")]),
    ],
)
def test_text_is_taken_apart(text: str, commands) -> None:
    assert read(text) == commands


@pytest.mark.parametrize(
    "text",
    [
        "a $(b)",
        "a `b`",
        'a "$(b)"',
        'a "`b`"',
        "a ${b:-c}",
        "a $'b'",
        "a $((1))",
        "a <(b)",
        "a <<E\nE",
        "(a)",
        "{ a; }",
        "! a",
        "if a; then b; fi",
        "for x in y; do z; done",
        "f() { a; }",
        "case x in y) z;; esac",
        "[[ a ]]",
        "a ;; b",
        "a; ; b",
        "; a",
        "| a",
        "a |",
        "a &&",
        "a && ; b",
        "a >",
        "a 'b",
        'a "b',
        "a \\",
        "a\0b",
    ],
)
def test_lines_beyond_simple_commands_are_reported_as_such(text: str) -> None:
    with pytest.raises(NotSimple):
        simple_commands(text)


@pytest.mark.parametrize(
    "text", ["$x", "${x}", '"$x"', "*.py", "a?", "[ab]", "{a,b}", "~", "~/x", "a=~/x", "=ls"]
)
def test_a_word_that_a_shell_replaces_is_marked(text: str) -> None:
    [command] = simple_commands(f"a {text}")
    assert [word.varies for word in command.words] == [False, True]


@pytest.mark.parametrize(
    "text", ["'$x'", "\\$x", "'*'", '"*.py"', "\\~", "a=b", "x!", "HEAD~1", "HEAD^"]
)
def test_a_word_that_stays_is_not(text: str) -> None:
    [command] = simple_commands(f"a {text}")
    assert not any(word.varies for word in command.words)


def test_redirections_and_assignments_are_told() -> None:
    [command] = simple_commands("A=1 cat <in 2>>err x>out &>all")
    assert command.assigns
    assert [(operator, word.text) for operator, word in command.redirects] == [
        ("<", "in"),
        ("2>>", "err"),
        (">", "out"),
        ("&>", "all"),
    ]
    assert [word.text for word in command.words] == ["cat", "x"]


def test_only_a_shells_text_is_taken_apart() -> None:
    assert [one.source for one in commands_of(["bash", "-lc", "a; b"])] == ["a", "b"]
    assert [one.source for one in commands_of(["/bin/sh", "-c", "a"])] == ["a"]
    [plain] = commands_of(["echo", "a; b", "$x"])
    assert [word.text for word in plain.words] == ["echo", "a; b", "$x"]
    assert not any(word.varies for word in plain.words)
    assert commands_of([]) == []


PIECES = st.sampled_from([*"ab 'x\"\\;\n#=~>|&-", "  ", "\\\n", "show ", "'", '"', "; show "])


@pytest.mark.slow
@pytest.mark.parametrize("shell", [one for one in ("bash", "dash") if shutil.which(one)])
@given(pieces=st.lists(PIECES, max_size=14))
@example(pieces=["'", "a", "'", '"', "b", '"', "\\", ";", "#"])
@settings(deadline=None)
def test_shells_read_the_same_words(shell: str, pieces: list[str]) -> None:
    text = "show " + "".join(pieces)
    try:
        commands = simple_commands(text)
    except NotSimple:
        return
    plain = all(
        one.words
        and one.words[0].text == "show"
        and one.joiner in ("", ";")
        and not (one.redirects or one.assigns or any(word.varies for word in one.words))
        for one in commands
    )
    if not plain:
        return
    script = f"show() {{ printf '<'; printf '%s\\0' \"$@\"; }}\n{text}"
    run = subprocess.run([shell, "-c", script], capture_output=True, env={"PATH": PATH}, text=True)
    # Without arguments printf still prints its format once, for an empty one.
    words = [[word.text for word in one.words[1:]] or [""] for one in commands]
    assert run.stdout == "".join("<" + "".join(f"{word}\0" for word in each) for each in words)
    assert (run.returncode, run.stderr) == (0, "")


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        commands = simple_commands(text)
    except NotSimple:
        return
    assert all(one.words or one.redirects or one.assigns for one in commands)
