"""The story of rows that changed: conversations, rows and words, within bounds."""

from tests.golden.findings import MAX_ROWS_SHOWN, MAX_RULES_SHOWN, Line, digest, story

PASS: Line = ("PASS MUST 'turn t' [1] [] []", "")
FAIL: Line = ("FAIL MUST 'turn t' [1] [] []", "'one' but 'two'")


def test_equal_rows_have_no_story() -> None:
    rows = {"a.rule": {"good/x": [PASS, FAIL]}}
    assert list(story(rows, rows)) == []


def test_conversations_that_come_and_go_are_named_once() -> None:
    before, after = {"a.rule": {"good/x": [PASS]}}, {"a.rule": {"good/y": [PASS]}}
    assert list(story(before, after)) == ["gone: good/x", "new: good/y"]


def test_rows_that_come_and_go_are_told_with_their_words() -> None:
    before, after = {"a.rule": {"good/x": [PASS]}}, {"a.rule": {"good/x": [FAIL]}}
    assert list(story(before, after)) == [
        "a.rule: 1 conversation(s) changed",
        f"  - good/x: {PASS[0]} ",
        f"  + good/x: {FAIL[0]} 'one' but 'two'",
    ]


def test_a_rule_without_rows_is_told() -> None:
    before = {"a.rule": {"good/x": [PASS]}, "b.rule": {"good/x": [PASS]}}
    after = {"b.rule": {"good/x": [PASS]}}
    assert list(story(before, after)) == [
        "a.rule: 1 conversation(s) changed",
        f"  - good/x: {PASS[0]} ",
    ]


def test_other_words_of_the_same_row_are_told_apart() -> None:
    before = {"a.rule": {"good/x": [FAIL]}}
    after = {"a.rule": {"good/x": [(FAIL[0], "'one' but 'three'")]}}
    assert list(story(before, after)) == [
        "a.rule: 1 conversation(s) changed",
        "  words - good/x: 'one' but 'two'",
        "  words + good/x: 'one' but 'three'",
    ]


def test_a_long_story_is_cut_and_says_so() -> None:
    names = [f"good/{number:02}" for number in range(MAX_ROWS_SHOWN + 3)]
    rules = [f"rule.{number:02}" for number in range(MAX_RULES_SHOWN + 2)]
    before = {rule: {name: [PASS] for name in names} for rule in rules}
    after = {rule: {name: [PASS, FAIL] for name in names} for rule in rules}
    told = list(story(before, after))
    assert told[MAX_ROWS_SHOWN + 1] == "  and 3 more"
    assert told[-1] == "and 2 more rules: rule.10, rule.11"
    assert len(told) == MAX_RULES_SHOWN * (MAX_ROWS_SHOWN + 2) + 1


def test_a_digest_does_not_depend_on_the_order_of_lines() -> None:
    assert digest(["a", "b"]) == digest(["b", "a"]) != digest(["a", "c"])
