"""A command that loses parts of config.toml is a SHOULD finding that names each lost part."""

import pytest

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.loading import load_book
from tests.rules.cases_mcp_command import DOCS, stdio_table, talk

BOOK = load_book()
KEYS, COMMENTS = "mcp-config.other-keys-kept", "mcp-config.comments-kept"
MORE = stdio_table("more", "x")
OLD = f'# mine\nmodel = "m"\n[tui]\n# dark\ntheme = 1\n{DOCS}'


@pytest.mark.parametrize(
    ("rule", "written", "lost"),
    [
        (COMMENTS, OLD.replace("# dark\n", ""), ['the comment "# dark"']),
        (COMMENTS, OLD.replace("# ", "#"), ['the comment "# mine"', 'the comment "# dark"']),
        (KEYS, OLD.replace('model = "m"\n', ""), ['model = "m"']),
        (KEYS, OLD.replace("theme = 1", "theme = 2"), ['tui = {"theme": 1}']),
        (
            KEYS,
            f'# mine\nmodel = "m"\n{DOCS}[tui]\n# dark\ntheme = 1\n',
            ["the order model, tui, mcp_servers"],
        ),
    ],
    ids=["comment", "two-comments", "key", "value", "order"],
)
def test_lost_part_of_the_file_is_named(rule: str, written: str, lost: list[str]) -> None:
    trace = talk(OLD).asks("add", "more", "--", "x").config(written + MORE).ends().trace()
    rows = judge(BOOK, trace, all_rules().values())
    [row] = [row for row in rows if row.rule == rule and row.verdict is Verdict.FAIL]
    assert row.level is Level.SHOULD
    assert row.expected == f"config.toml still with {'; '.join(lost)}"


def test_addition_at_the_end_loses_nothing() -> None:
    trace = talk(OLD).asks("add", "more", "--", "x").config(OLD + MORE).ends().trace()
    rows = judge(BOOK, trace, all_rules().values())
    assert {row.verdict for row in rows if row.rule in (KEYS, COMMENTS)} == {Verdict.PASS}
