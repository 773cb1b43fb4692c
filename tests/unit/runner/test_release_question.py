"""The question to a server for its release, and the report on a release that is not known."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.client.target.profile import load_profile
from harness.errors import UsageError
from harness.judge.verdict import Level
from harness.play.config import Config, configure
from harness.report.terminal import summary
from tests.unit.results.outcomes import BOOK, LAST, ONCE, failed, outcome, passed, report_of

SERVER = """import json, sys
if "--version" in sys.argv:
    sys.exit(print("mine 1.5.0"))
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"userAgent": "mine/1.2.0 (x)"}
        print(json.dumps({"id": message["id"], "result": result}), flush=True)
"""
PROFILE = """name = "mine"
command = '{python} {server}'
[version]
{command}
oldest = "1.0"
newest = "1.3"
[bounds]
settle = 0.1
[[deviations]]
rule = "turn.completed-once"
reason = "old"
until = "1.2"
"""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    server = tmp_path / "server.py"
    server.write_text(SERVER)
    command = f"command = '{sys.executable} {server} --version'"
    text = PROFILE.format(python=sys.executable, server=server, command=command)
    (tmp_path / "mine.toml").write_text(text)
    return tmp_path / "mine.toml"


def release_of(config: Config) -> tuple[str, str]:
    return config.profile.name, config.release


def test_a_server_is_asked_by_its_version_command_then_by_initialize(target: Path) -> None:
    assert release_of(configure(target=str(target))) == ("mine-1.5", "1.5.0")
    target.write_text(target.read_text().replace("--version", "--help"))
    assert release_of(configure(target=str(target))) == ("mine-1.2", "1.2.0")
    # A worker is told what the controller has asked, even if that is nothing.
    assert release_of(configure(target=str(target), release="")) == ("mine", "")
    assert release_of(configure(target=str(target), release="1.1")) == ("mine-1.1", "1.1")


def test_an_entry_of_a_baseline_holds_within_its_releases(target: Path, tmp_path: Path) -> None:
    baseline = tmp_path / "known.toml"
    baseline.write_text(
        '[[deviations]]\nrule = "turn.completes"\nreason = "r"\nsince = "1.2"\nuntil = "1.4"\n'
    )
    for release, rules in (
        ("1.1", ["turn.completed-once"]),
        ("1.2", ["turn.completes"]),
        ("1.4", []),
    ):
        config = configure(target=str(target), baseline=str(baseline), release=release)
        assert [entry.rule for entry in config.entries] == rules
    with pytest.raises(UsageError, match=r"known\.toml:4:9: the profile 'spec' knows of no rel"):
        configure(server_cmd="true", baseline=str(baseline))


@pytest.mark.parametrize(("release", "level"), [("0.169.0", Level.MUST), ("0.171.0", Level.INFO)])
def test_a_stale_entry_fails_a_known_release_and_is_news_in_another(
    release: str, level: Level
) -> None:
    profile = load_profile("codex", release)
    rule = "turn.items-empty"
    entry = next(one for one in profile.deviations if one.rule == rule)
    report = report_of(outcome("a/b", passed(rule)), shipped=(entry,), profile=profile)
    (issue,) = report.issues
    assert (issue.id, issue.level) == ("baseline.stale", level)
    block = f'\n\n[[releases]]\nsince = "{release}"' * (level is Level.INFO)
    lines = f'name = "codex-mine"\nextends = "codex"{block}\nwithout = [\'deviations."{rule}"\']'
    assert issue.paste == lines


def test_a_finding_in_a_newer_release_is_told_as_new() -> None:
    plays = outcome("a/b", failed(LAST), failed(ONCE, level=Level.INFO))
    for release, expected in (("0.169.0", ""), ("0.171.0", " (new since 0.169)")):
        report = report_of(plays, profile=load_profile("codex", release))
        lines = list(summary(report, BOOK))
        assert f"FAIL {LAST}{expected} in a/b: two of them" in lines
        assert not [line for line in lines if line.startswith("INFO") and "(new" in line]
        assert (release == "0.171.0") == lines[0].startswith(f"release: {release} is newer than")
