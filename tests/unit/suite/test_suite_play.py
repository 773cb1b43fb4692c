"""The play of the suite that tests share: of which code it is, and which of them may use it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import suite_play


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder of plays, beside code of two files."""
    monkeypatch.setattr(suite_play, "ROOT", tmp_path)
    for name in suite_play.CODE:
        (tmp_path / name / "__pycache__").mkdir(parents=True)
    (tmp_path / "scenarios" / "one.scenario.yaml").write_text("title: one\n")
    (tmp_path / "harness" / "one.py").write_text("one = 1\n")
    return tmp_path


@pytest.mark.parametrize("name", ["harness/one.py", "scenarios/one.scenario.yaml", "harness/2.py"])
def test_other_code_is_another_state(name: str, kept: Path) -> None:
    before = suite_play.code_state()
    (kept / name).write_text("other = 2\n")
    assert suite_play.code_state() != before


def test_code_that_was_compiled_or_named_anew_by_its_old_name_is_the_same_state(kept: Path) -> None:
    before = suite_play.code_state()
    (kept / "harness" / "__pycache__" / "one.pyc").write_bytes(b"compiled")
    (kept / "harness" / "one.py").rename(kept / "harness" / "two.py")
    assert suite_play.code_state() != before
    (kept / "harness" / "two.py").rename(kept / "harness" / "one.py")
    assert suite_play.code_state() == before


def test_a_play_that_fails_is_not_tried_again_in_the_same_test_run(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[Path] = []

    def play(folder: Path) -> None:
        tried.append(folder)
        raise TimeoutError

    monkeypatch.setattr(suite_play, "KEPT", kept)
    monkeypatch.setattr(suite_play, "FAILED", kept / "failed")
    monkeypatch.setattr(suite_play, "_play", play)
    # Another test may have left its result in the cache.
    uncached = suite_play.suite_play.__wrapped__
    with pytest.raises(TimeoutError):
        uncached()
    with pytest.raises(AssertionError, match="could not be played"):
        uncached()
    assert len(tried) == 1


@pytest.mark.parametrize(
    ("red", "ours", "usable"), [(False, False, True), (True, True, True), (True, False, False)]
)
def test_a_red_play_serves_the_test_run_that_played_it_alone(
    red: bool, ours: bool, usable: bool, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (kept / "played-by").write_text(suite_play.run_id() if ours else "another test run")
    monkeypatch.setattr(suite_play, "read_report", lambda _: SimpleNamespace(red=red))
    assert suite_play.is_usable(kept) is usable
    assert not suite_play.is_usable(kept / "nothing-kept-here")
