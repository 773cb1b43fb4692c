"""Stored rules for commands: the file, allowed commands, and invalid rules."""

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_server.sandbox.rules import FILE, BadRule, Exact, Rules, RulesFile, check_prefix


@pytest.fixture
def rules(tmp_path) -> RulesFile:
    return RulesFile(tmp_path)


W = "/w"


def sh(script: str) -> list[str]:
    return ["bash", "-lc", script]


def test_a_rule_is_obeyed_from_the_file(rules: RulesFile, tmp_path) -> None:
    assert not rules.read().allow(["npm", "run", "build"], W)
    rules.add(["npm", "run", "build"])
    again = RulesFile(tmp_path).read()
    assert again.damaged_lines == ()
    assert again.allow(["npm", "run", "build"], W)
    assert again.allow(["npm", "run", "build", "--fast"], W)
    assert (tmp_path / FILE).read_text() == 'allow ["npm", "run", "build"]\n'
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


ONE = Rules((("npm", "run", "build"),))


@pytest.mark.parametrize(
    ("argv", "allowed"),
    [
        (sh("npm run build"), True),
        (sh("npm 'run' build --fast x"), True),
        (sh("npm run build && npm run build -v"), True),
        (sh("cd web && npm run build | tail -3"), False),
        (sh("cat x"), False),
        (["npm", "run", "build"], True),
        (["npm", "run"], False),
        (["npm", "run", "builder"], False),
        (["npm run build"], False),
        (["/tmp/npm", "run", "build"], False),
        (sh("npm run build; rm x"), False),
        (sh("npm run build > x"), False),
        (sh("npm run build $x"), False),
        (sh("npm run build $(rm x)"), False),
        (sh("npm run build &"), False),
        (sh("X=1 npm run build"), False),
        (sh("npm run *"), False),
        (sh("cd x && git status && npm run build"), False),
        (sh(""), False),
        (["./bash", "-c", "npm run build"], False),
        ([], False),
    ],
)
def test_a_rule_allows_commands_that_begin_with_its_words(argv: list[str], allowed: bool) -> None:
    assert ONE.allow(argv, W) is allowed


@pytest.mark.parametrize(
    ("script", "allowed"),
    [
        ("cd web && npm run build | tail -3", True),
        ("cat x", True),
        ("cat x; npm run build; rm x", False),
        ("cat x > y", False),
        ("cd x && git status && npm run build", False),
    ],
)
def test_where_trust_counts_the_rest_of_a_list_may_be_trusted(script: str, allowed: bool) -> None:
    assert ONE.allow(sh(script), W, trusted_in=W) is allowed


def test_a_rule_may_be_about_this_very_command_in_its_folder(rules: RulesFile, tmp_path) -> None:
    argv = sh("for x in a b; do make $x > log; done")
    rules.add_exactly(argv, W)
    found = RulesFile(tmp_path).read()
    assert found == Rules(exact=frozenset({Exact(tuple(argv), W)}))
    assert found.allow(argv, W)
    assert not found.allow(argv, "/elsewhere")
    for other in ([*argv, "x"], sh("for x in a b; do rm $x; done"), [*argv[:2]]):
        assert not found.allow(other, W)


@pytest.mark.parametrize(
    "words",
    [
        ("ls", "-l"),
        ("bash", "-c", 'ls | wc -l; "$@"'),
        ("env", "A=1"),
        ("eval", "true"),
        ("perl", "-e", "print 1"),
        ("find", ".", "-maxdepth", "0"),
        ("make",),
        ("sed", "-e", "p"),
        ("./run.sh",),
    ],
)
def test_no_word_may_be_added_to_a_command_that_was_allowed_exactly(
    rules: RulesFile, words: tuple[str, ...]
) -> None:
    rules.add_exactly(words, W)
    assert rules.read().allow(words, W)
    assert not rules.read().allow((*words, "--more"), W)


@pytest.mark.parametrize(
    ("words", "more"),
    [
        (("env", "A=1", "ls"), "rm"),
        (("/usr/bin/python3.11", "build.py"), "-x"),
        (("find", ".", "-name", "x"), "-delete"),
        (("make", "test"), "--eval=x"),
    ],
)
def test_a_program_that_runs_its_arguments_is_allowed_with_the_rules_words_alone(
    words: tuple[str, ...], more: str
) -> None:
    rules = Rules((words,))
    assert rules.allow(words, W)
    assert not rules.allow((*words, more), W)


@pytest.mark.parametrize(
    "words",
    [
        [],
        [""],
        ["a", ""],
        "ls",
        None,
        [1],
        ["a\0"],
        ["\ud800"],
        ["bash"],
        ["bash", "-lc"],
        ["/bin/sh"],
        ["sudo"],
        ["python3", "-c"],
        ["env"],
        ["git"],
        ["env", "A=1"],
        ["env", "-u", "-i"],
        ["sudo", "-n", "--"],
        ["bash", "-x", "-c"],
        ["python3.11"],
        ["busybox"],
        ["find"],
        ["make", "-s"],
        ["./run.sh"],
        ["sub/run", "x"],
    ],
)
def test_words_that_cannot_be_a_rule_are_refused(words: object) -> None:
    with pytest.raises(BadRule):
        check_prefix(words)


def test_damaged_lines_are_reported_and_the_others_count(rules: RulesFile) -> None:
    rules.add(["mk"])
    with rules.path.open("ab") as file:
        file.write(
            b'# a comment\n\nforbid ["rm"]\nallow ls\nallow {}\nallow ["bash"]\nallow [\xff]\n'
            b'allow ["make", "test"]\nallow exactly ["a"]\nallow exactly [] in "/w"\n'
        )
    found = rules.read()
    assert found.prefixes == (("mk",), ("make", "test"))
    assert [line.removeprefix(str(rules.path)).split(":")[1] for line in found.damaged_lines] == [
        "4",
        "5",
        "6",
        "7",
        "8",
        "10",
        "11",
    ]
    assert "no JSON array" in found.damaged_lines[1]


def test_a_line_without_its_end_is_not_joined_to_the_next(rules: RulesFile) -> None:
    rules.path.parent.mkdir()
    rules.path.write_text('allow ["a"]\nallow ["b"')
    rules.add(["c"])
    found = rules.read()
    assert found.prefixes == (("a",), ("c",))
    assert len(found.damaged_lines) == 1


def test_a_rule_is_written_once(rules: RulesFile) -> None:
    for _ in range(3):
        rules.add(["make", "test"])
    assert rules.path.read_text().count("\n") == 1


def test_a_file_that_cannot_be_read_is_reported(rules: RulesFile) -> None:
    rules.path.mkdir(parents=True)
    found = rules.read()
    assert found.prefixes == ()
    assert "Is a directory" in found.damaged_lines[0]
    with pytest.raises(OSError, match="directory"):
        rules.add(["mk"])


@given(st.lists(st.text(min_size=1, max_size=10), min_size=1, max_size=4))
def test_every_rule_that_can_be_written_is_read_again(tmp_path_factory, words) -> None:
    try:
        prefix = check_prefix(words)
    except BadRule:
        return
    file = RulesFile(tmp_path_factory.mktemp("home"))
    file.add(words)
    assert file.read() == Rules((prefix,))
    assert file.read().allow(words, W)


@pytest.mark.slow
@pytest.mark.socket
def test_of_several_servers_that_add_at_once_none_loses(rules: RulesFile, tmp_path) -> None:
    code = (
        "import sys\nfrom pathlib import Path\n"
        "from reference_server.sandbox.rules import RulesFile\n"
        "for n in range(25): RulesFile(Path(sys.argv[1])).add(['make', sys.argv[2] + str(n)])"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path), name], env={**os.environ})
        for name in "abc"
    ]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    found = rules.read()
    assert found.damaged_lines == ()
    assert set(found.prefixes) == {("make", f"{name}{n}") for name in "abc" for n in range(25)}
    assert all(json.loads(line[6:]) for line in rules.path.read_text().splitlines())
