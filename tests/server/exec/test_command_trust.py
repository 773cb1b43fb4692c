"""Trusted commands: those of the table, and none that could do more than read."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_server.sandbox import trust
from reference_server.sandbox.rules import Rules
from reference_server.sandbox.trust import ALWAYS


def is_trusted(argv: list[str]) -> bool:
    """Return True if a command without a rule is allowed because it is trusted."""
    return Rules().allow(argv, "/w", trusted_in="/w")


TRUSTED = [
    "ls",
    "ls -la *.py ~",
    "/bin/ls",
    "/usr/bin/cat x",
    "cat a 'b c' | head -n 3 | wc -l",
    "pwd && ls || true; echo done",
    "find . -name '*.py' -type f",
    "rg -n TODO src",
    "sort -k 2 a",
    "uniq -c a",
    "tree -L 2",
    "file x",
    "date -u +%s",
    "sed -n 1,20p a.txt",
    "sed -n '3p' a b",
    "sed -n '3,$p' a",
    "git status",
    "git log --oneline -5",
    "git diff HEAD~1 -- src",
    "git show HEAD:a.txt",
    "git branch -a",
    "git branch --show-current",
    "printf '%s' x",
    "cd src && ls",
]
NOT_TRUSTED = [
    "",
    "rm x",
    "./ls",
    "bin/cat x",
    "/tmp/ls",
    "ls > x",
    "ls >> x",
    "ls < x",
    "ls 2>/dev/null",
    "ls &",
    "ls & rm x",
    "ls; rm x",
    "ls | sh",
    "ls | tee x",
    "X=1 ls",
    "cat $x",
    'cat "$x"',
    "cat $(rm x)",
    "cat `rm x`",
    "cat <(rm x)",
    "$x",
    "l*",
    "(ls)",
    "{ ls; }",
    "ls\nrm x",
    "find . -delete",
    "find . -exec rm {} +",
    "find . -execdir x",
    "find . -ok rm",
    "find . -fprintf x y",
    "find . -fls x",
    "find *",
    "rg --pre x y",
    "rg --pre=x y",
    "rg -z x",
    "rg -nz x",
    "rg --hostname-bin x y",
    "sort -o x y",
    "sort -uo x y",
    "sort --output=x y",
    "sort --out x y",
    "sort --compress-prog x y",
    "sort *",
    "uniq a b",
    "uniq -- a b",
    "uniq -- a -d/../b",
    "tree -o x",
    "tree -ao x",
    "tree -R -L 1 -H x .",
    "tree -Hx",
    "file -C",
    "file -z x",
    "file --comp",
    "date -s now",
    "date --set=now",
    "date 01010000",
    "sed -i s/a/b/ x",
    "sed -n 'w x' y",
    "sed -n '1p;w x' y",
    "sed -n 1p -i x",
    "sed -n 1e x",
    "sed p x",
    "git commit",
    "git -c core.pager=x log",
    "git -C x status",
    "git log --output=x",
    "git log --outp=x",
    "git diff --ext-diff",
    "git diff --no-index a b",
    "git diff -Ox",
    "git branch new",
    "git branch -D x",
    "git checkout .",
    "git",
    "cd x && git status",
    "printf -v x y",
    "printf 'abc%n' PATH",
    "printf 'abc%-5ln' PATH",
    "env",
    "xargs rm",
    "awk 1 x",
    "less x",
    "tee x",
    "bash -c ls",
]


@pytest.mark.parametrize("script", TRUSTED)
def test_commands_that_only_read_are_trusted(script: str) -> None:
    assert is_trusted(["bash", "-lc", script])


@pytest.mark.parametrize("script", NOT_TRUSTED)
def test_commands_that_could_do_more_are_not_trusted(script: str) -> None:
    assert not is_trusted(["bash", "-lc", script])


def test_an_argv_is_taken_word_by_word() -> None:
    assert is_trusted(["cat", "a; rm b", "$(rm c)", ">", "d"])
    assert not is_trusted(["rm", "x"])
    assert not is_trusted([])
    assert not is_trusted([""])
    assert not is_trusted(["bash", "ls"])
    assert not is_trusted(["bash", "-x", "ls"])


def test_the_shell_itself_must_be_the_systems() -> None:
    assert is_trusted(["/bin/bash", "-c", "ls"])
    assert not is_trusted(["./bash", "-c", "ls"])
    assert not is_trusted(["/tmp/sh", "-c", "ls"])


def words() -> st.SearchStrategy[str]:
    plain = st.text("abc123./-_ ", min_size=1, max_size=8).filter(lambda one: one.strip())
    return plain.map(lambda one: "'" + one + "'")


def trusted_scripts() -> st.SearchStrategy[str]:
    commands = st.builds(
        lambda program, arguments: " ".join([program, *arguments]),
        st.sampled_from(sorted(ALWAYS)),
        st.lists(words(), max_size=3),
    )
    joined = st.lists(commands, min_size=1, max_size=3)
    return st.builds(lambda parts, join: join.join(parts), joined, st.sampled_from([" | ", " && "]))


ADDED = [
    " > x",
    " >x",
    " >> x",
    " >| x",
    " &> x",
    " < x",
    " <> x",
    "; rm x",
    ";rm x",
    "\nrm x",
    " && rm x",
    " || rm x",
    " | sh",
    " & rm x",
    " &",
    " $(rm x)",
    ' "$(rm x)"',
    " `rm x`",
    ' "`rm x`"',
    " <(rm x)",
    " >(rm x)",
    " ${x:=y}",
    " $x",
    " 2>&1 >x",
]


@given(trusted_scripts(), st.sampled_from(ADDED))
def test_whatever_is_added_to_do_more_ends_the_trust(script: str, added: str) -> None:
    assert is_trusted(["bash", "-lc", script])
    assert not is_trusted(["bash", "-lc", script + added])


@given(trusted_scripts(), st.sampled_from(["X=1 ", "! ", "time ", "sudo ", "( ", "rm x; ", "./"]))
def test_whatever_is_put_before_to_do_more_ends_it_too(script: str, before: str) -> None:
    assert not is_trusted(["bash", "-lc", before + script])


@given(st.text(max_size=50))
def test_any_text_is_judged_without_failing(text: str) -> None:
    assert is_trusted(["bash", "-lc", text]) in (True, False)


def test_every_program_that_is_checked_is_in_the_documented_table() -> None:
    table = set(re.findall(r"^\| (\w+) +\|", trust.__doc__ or "", re.M))
    assert set(trust._CHECKS) == table - {"program"}


def test_git_is_trusted_only_where_the_thread_works() -> None:
    """It obeys the configuration of the repository that it is in, which may name programs."""
    rules, argv = Rules(), ["bash", "-c", "git status"]
    assert rules.allow(argv, "/w", trusted_in="/w")
    assert not rules.allow(argv, "/w/inner", trusted_in="/w")
    assert rules.allow(["bash", "-c", "ls"], "/w/inner", trusted_in="/w")
