"""Findings about behaviour beside the protocol, each on a server that shows it alone.

test_correct_servers checks that good servers have none of these findings.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from harness.judge.verdict import Level
from harness.play.session.process_watch import COUNTS_COMPARED

from .judging import SERVERS, Judged, bundled, command, judged

pytestmark = [pytest.mark.socket, pytest.mark.slow, pytest.mark.usefixtures("place")]

PLAIN = "turns/plain-turn"


def of(server: str | Path, *, times: int = 2, target: str = "spec") -> Judged:
    line = command(server if isinstance(server, Path) else f"broken/{server}")
    return judged(line, bundled(PLAIN) * times, target=target)


def only(found: Judged) -> tuple[str, str]:
    """The one finding of a run in which all else is well."""
    assert set(found.verdicts().values()) == {"PASS"}
    assert found.failed_rules() == []
    ((name, message),) = found.issues().items()
    return name, message


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted on Linux only")
def test_descriptors_that_grow_from_turn_to_turn_are_counted() -> None:
    name, message = only(of("leaks_descriptors", times=2 * COUNTS_COMPARED + 4))
    assert name == "hygiene.descriptors"
    grown = re.search(r"grew from (\d+) to (\d+) over 14 conversations \((\d+) more pipe", message)
    assert grown is not None
    before, after, pipes = map(int, grown.groups())
    # Two for each turn: after the first five, before the last four, and over all of them.
    assert after - before == 2 * (2 * COUNTS_COMPARED - COUNTS_COMPARED)
    assert pipes == 2 * (2 * COUNTS_COMPARED + 3)


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted on Linux only")
def test_a_few_conversations_tell_nothing_about_descriptors() -> None:
    assert of("leaks_descriptors", times=2 * COUNTS_COMPARED - 1).issues() == {}


def test_files_left_in_the_temporary_folder_are_named() -> None:
    name, message = only(of("leaves_files"))
    assert name == "hygiene.temporary-files"
    assert len(re.findall(r"turn-\w+/scratch.txt", message)) == 2


def test_defect_that_stderr_tells_of_is_quoted() -> None:
    name, message = only(of("panics"))
    assert name == "hygiene.panic"
    assert message == (
        f"in or after {PLAIN} the server's stderr has: Traceback (most recent call last):"
    )


def test_traceback_of_a_server_that_died_is_the_crash_and_no_second_finding() -> None:
    found = of("dies_mid_turn", times=1)
    assert found.issues() == {}
    assert "Traceback" in found.outcomes[PLAIN].stderr


def test_profile_can_say_what_else_tells_of_a_defect(place: Path) -> None:
    profile = place / "mine.toml"
    profile.write_text(
        'name = "mine"\npanics = ["^child [0-9]+$"]\n[env]\nPROVIDER_BASE_URL = "{model_url}"\n'
    )
    assert "hygiene.panic" not in of("leaks_child", times=1).issues()
    message = of("leaks_child", times=1, target=str(profile)).issues()["hygiene.panic"]
    assert re.search(r"the server's stderr has: child \d+$", message)


def test_output_after_the_end_of_the_input_is_quoted() -> None:
    name, message = only(of("says_goodbye"))
    assert name == "hygiene.stray-output"
    assert f"after {PLAIN}, with no conversation going on" in message
    assert message.endswith("not a message: Goodbye!")


@pytest.mark.parametrize("server", ["leaves_files", "panics", "says_goodbye"])
def test_findings_are_a_must_where_the_profile_holds_to_them(server: str, place: Path) -> None:
    strict = place / "strict.toml"
    strict.write_text(
        'name = "strict"\nhygiene = "MUST"\n[env]\nPROVIDER_BASE_URL = "{model_url}"\n'
    )
    assert not of(server, times=1).report.red
    found = of(server, times=1, target=str(strict))
    assert [issue.level for issue in found.report.issues] == [Level.MUST]
    assert found.report.red


def test_files_of_a_server_that_could_not_clean_up_are_not_its_fault(place: Path) -> None:
    script = place / "killed.py"
    script.write_text(
        "import json, os, signal, sys, tempfile\n"
        f"sys.path.insert(0, {str(SERVERS)!r})\n"
        "from minimal import Server\n"
        "class Killed(Server):\n"
        "    def thread_read(self, params, reply):\n"
        "        tempfile.mkdtemp()\n"
        "        super().thread_read(params, reply)\n"
        "    def serve(self):\n"
        "        for line in sys.stdin.buffer:\n"
        "            self.handle(json.loads(line))\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "Killed().serve()\n"
    )
    assert of(script).issues() == {}
