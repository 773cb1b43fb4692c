"""The command line of `agent exec`: order, short forms, prompts that look like options."""

import pytest

from reference_server.agent_exec.ending import NotBegun
from reference_server.agent_exec.options import Options, parse

SDK = tuple(
    "--experimental-json --config a.b=1 --model m --sandbox read-only --cd /w --add-dir /x "  # noqa: SIM905
    "--add-dir /y --skip-git-repo-check --output-schema /s --config approval_policy=never".split()
)


def test_the_words_of_the_sdk() -> None:
    assert parse([*SDK, "resume", "thr_1", "--image", "a.png", "--image", "b,c.png"]) == Options(
        json=True,
        config=("a.b=1", "approval_policy=never"),
        model="m",
        sandbox="read-only",
        cd="/w",
        add_dirs=("/x", "/y"),
        skip_git_repo_check=True,
        schema="/s",
        resume="thr_1",
        images=("a.png", "b,c.png"),
    )


def test_the_words_of_the_newer_sdk_are_accepted() -> None:
    parse(["--thread-source", "user", "--cyber-access-program", "none", "hi"])


def test_both_words_for_json_may_be_given() -> None:
    assert parse(["--json", "--experimental-json", "hi"]).json


@pytest.mark.parametrize(
    ("words", "prompt", "resume"),
    [
        (["hi"], "hi", None),
        (["-"], "-", None),
        ([], None, None),
        (["--", "--model"], "--model", None),
        (["--", "resume"], "resume", None),
        (["--json", "--", "-x"], "-x", None),
        (["resume", "thr_1"], None, "thr_1"),
        (["resume", "thr_1", "go"], "go", "thr_1"),
        (["resume", "thr_1", "--", "--go"], "--go", "thr_1"),
        (["resume", "--", "thr_1", "go"], "go", "thr_1"),
        (["resume", "thr_1", "-"], "-", "thr_1"),
        (["resume", "--last", "go"], "go", None),
        (["--last", "resume", "go"], "go", None),
        (["resume the work"], "resume the work", None),
        (["go", "-m", "x"], "go", None),
        (["-m", "x", "go", "--json"], "go", None),
        (["", "--json"], "", None),
    ],
)
def test_which_word_is_the_prompt(words: list[str], prompt: str | None, resume: str | None) -> None:
    found = parse(words)
    assert (found.prompt, found.resume) == (prompt, resume)


def test_short_forms() -> None:
    found = parse(["-mx", "-s", "read-only", "-C", "/w", "-i", "a", "-c", "k=v", "-oout", "go"])
    assert found == Options(
        prompt="go",
        model="x",
        sandbox="read-only",
        cd="/w",
        images=("a",),
        config=("k=v",),
        last_message="out",
    )


@pytest.mark.parametrize(
    "words",
    [["a", "b"], ["resume"], ["--last"], ["resume", "t", "p", "q"], ["--ephemeral", "resume", "t"]],
)
def test_senseless_words_are_refused(words: list[str]) -> None:
    with pytest.raises(NotBegun):
        parse(words)
