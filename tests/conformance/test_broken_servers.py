"""Findings of the suite about servers that are broken in one place each.

The servers' own docstrings (fixtures/servers/broken) name the expected findings. Timeouts are
scaled down, so that each hang is short; no process and no folder stays behind.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import psutil
import pytest

from .judging import SERVERS, Judged, Ran, bundled, command, judged, start_pytest

pytestmark = [pytest.mark.socket, pytest.mark.slow]

PLAIN, TWO = "turns/plain-turn", "turns/two-turns"


def of(server: str, *names: str, scale: float = 0.2) -> Judged:
    """The scenarios are played all the same where the server is hopeless."""
    scenarios = bundled(*(names or (PLAIN, TWO)))
    return judged(command(f"broken/{server}"), scenarios, scale=scale, keep_going=True)


@pytest.mark.usefixtures("place")
class TestSetup:
    def test_server_that_does_not_start_is_one_finding_and_the_rest_is_not_exercised(self) -> None:
        found = of("does_not_start", *(one.id for one in bundled()))
        assert list(found.issues()) == ["setup.not-started"]
        message = found.issues()["setup.not-started"]
        assert "exit status 3" in message
        assert "libmissing.so.7" in message
        assert set(found.verdicts().values()) == {"NOT_EXERCISED"}
        assert {rule.verdict.value for rule in found.report.rules} == {"NOT_EXERCISED"}
        assert found.report.red

    def test_server_that_never_answers_is_one_finding_within_the_start_bound(self) -> None:
        found = of("never_answers", *(one.id for one in bundled()), scale=0.05)
        assert list(found.issues()) == ["setup.no-handshake"]
        assert "did not answer initialize within 0.5 s" in found.issues()["setup.no-handshake"]
        assert set(found.verdicts().values()) == {"NOT_EXERCISED"}
        # Only the first scenario waited; the others were not tried.
        assert sum(one.seconds for one in found.report.scenarios) < 1

    def test_server_that_never_calls_the_model_is_one_finding(self) -> None:
        found = of("no_model_call", *(one.id for one in bundled()))
        assert list(found.issues()) == ["setup.model-not-called"]
        assert "was never called" in found.issues()["setup.model-not-called"]
        turns = {one.id for one in bundled() if one.scenario.starts_turns}
        assert {found.verdicts()[name] for name in turns} == {"NOT_EXERCISED"}
        # What needs no turn is judged: this server lacks the methods that such scenarios are about.
        assert set(found.verdicts().values()) <= {"NOT_EXERCISED", "NOT_APPLICABLE", "PASS"}
        assert found.failed_rules() == []
        assert found.report.red

    def test_program_that_is_no_executable_is_a_finding(self, tmp_path: Path) -> None:
        script = tmp_path / "no-interpreter"
        script.write_text("this is no program\n")
        script.chmod(0o755)
        found = judged(str(script), bundled(PLAIN, TWO))
        assert list(found.issues()) == ["setup.not-started"]
        assert "cannot be started: Exec format error" in found.issues()["setup.not-started"]

    @pytest.mark.skipif(sys.platform != "linux", reason="the message names Linux's yes")
    @pytest.mark.runs
    def test_server_that_floods_before_the_handshake_is_one_finding(self) -> None:
        found = judged("yes", bundled(PLAIN, TWO), scale=1)
        assert list(found.issues()) == ["setup.no-handshake"]
        assert "floods: more than 100000 messages" in found.issues()["setup.no-handshake"]
        assert set(found.verdicts().values()) == {"NOT_EXERCISED"}

    def test_server_that_closes_its_output_and_runs_on_is_a_finding(self, tmp_path: Path) -> None:
        script = tmp_path / "silent.py"
        script.write_text("import os, sys\nos.close(1)\nsys.stdin.read()\n")
        found = judged(command(script), bundled(PLAIN))
        assert list(found.issues()) == ["setup.not-started"]
        assert "closed its output before it answered" in found.issues()["setup.not-started"]


@pytest.mark.usefixtures("place")
class TestLines:
    def test_noise_before_the_first_answer_is_malformed_and_the_rest_passes(self) -> None:
        found = of("noise_first")
        assert found.failed_rules() == ["frame.well-formed"]
        assert set(found.verdicts().values()) == {"PASS"}
        story = found.story("frame.well-formed")
        assert "Loading model weights... done" in story
        assert re.search(r"\* +[\d.]+ ← #\d+ +Loading model weights", story)

    def test_bytes_that_are_no_utf8_are_malformed_and_the_rest_passes(self) -> None:
        found = of("invalid_utf8")
        assert found.failed_rules() == ["frame.well-formed"]
        assert set(found.verdicts().values()) == {"PASS"}
        story = found.story("frame.well-formed")
        assert r"\xff\xc3(" in story
        assert re.search(r"a line that is not JSON \(no UTF-8 from byte \d+ on \(ff\)\)", story)

    def test_half_a_line_is_shown_and_the_request_stays_unanswered(self) -> None:
        found = of("half_line", PLAIN)
        assert found.verdicts() == {PLAIN: "FAIL"}
        assert found.failed_rules() == ["request.answered"]
        assert found.report.scenarios[0].end == "quiescent"
        story = found.story(PLAIN)
        assert "scenario.timeout: step start_turn: waited 1 s for an answer" in story
        assert re.search(r'a line was begun and not ended: .*"id": 3', story)

    def test_wrong_id_answers_nothing_and_leaves_the_request_open(self) -> None:
        found = of("wrong_id", PLAIN)
        assert found.failed_rules() == ["request.answered", "response.known-id"]
        assert "turn/start" in found.story("request.answered")
        assert "1000003" in found.story("response.known-id")

    def test_server_that_answers_initialize_only_owes_the_answers(self) -> None:
        found = of("answers_initialize_only", PLAIN)
        assert found.failed_rules() == ["request.answered"]
        assert found.verdicts() == {PLAIN: "FAIL"}
        assert "step start_thread: waited 1 s for an answer" in found.story(PLAIN)


@pytest.mark.usefixtures("place")
class TestTurns:
    def test_server_that_dies_in_a_turn_is_a_crash_with_its_last_words(self) -> None:
        found = of("dies_mid_turn")
        assert set(found.verdicts().values()) == {"FAIL"}
        assert found.failed_rules() == []
        assert {one.end for one in found.report.scenarios} == {"exited"}
        story = found.story(PLAIN)
        assert "scenario.crash: the server ended by itself with exit status 1 in step" in story
        assert "RuntimeError: index out of range" in story

    def test_server_that_does_not_start_again_is_a_crash_of_that_step(self) -> None:
        again = "language/kill-mid-turn"
        found = of("starts_once", PLAIN, again, scale=1)
        assert found.verdicts() == {PLAIN: "PASS", again: "FAIL"}
        story = found.story(again)
        assert "scenario.crash: step restart: after its restart: the server" in story
        assert "another server is running" in story

    def test_turn_that_never_completes_is_owed_and_no_time_out_of_the_harness(self) -> None:
        found = of("never_completes", PLAIN)
        assert found.failed_rules() == ["turn.completes"]
        assert found.report.scenarios[0].end == "quiescent"
        assert found.verdicts() == {PLAIN: "FAIL"}
        assert "scenario.timeout: step wait: waited 1 s for the end of turn u" in found.story(PLAIN)

    def test_second_completion_is_a_violation_of_each_turn(self) -> None:
        found = of("double_completed")
        assert found.failed_rules() == ["turn.completed-once"]
        proofs = found.rule("turn.completed-once").proofs
        assert len({proof.row.subject for proof in proofs}) == 3
        assert set(found.verdicts().values()) == {"PASS"}
        assert found.story("turn.completed-once").count("turn/completed") >= 2

    @pytest.mark.runs
    def test_flood_is_a_turn_that_does_not_end_and_never_a_setup_finding(self) -> None:
        found = of("floods", PLAIN)
        assert found.verdicts() == {PLAIN: "FAIL"}
        assert found.issues() == {}
        assert found.failed_rules() == []
        assert [message[0] for message in found.report.scenarios[0].messages][:1] == [
            "liveness.turn-does-not-end"
        ]


@pytest.mark.usefixtures("place")
class TestHygiene:
    def test_server_that_ignores_sigterm_is_killed_and_its_verdicts_stand(self) -> None:
        found = of("ignores_sigterm")
        assert list(found.issues()) == ["hygiene.ignores-term"]
        assert set(found.verdicts().values()) == {"PASS"}
        assert not found.report.red

    def test_children_left_behind_are_named_and_ended(self) -> None:
        found = of("leaks_child", TWO)
        assert list(found.issues()) == ["hygiene.process-after-turn"]
        message = found.issues()["hygiene.process-after-turn"]
        children = re.findall(r"^child (\d+)$", found.outcomes[TWO].stderr, re.MULTILINE)
        assert len(children) == 2
        assert sorted(re.findall(r"pid (\d+)", message)) == sorted(children)
        assert [pid for pid in children if _runs(int(pid))] == []
        assert set(found.verdicts().values()) == {"PASS"}
        assert not found.report.red

    def test_child_whose_parent_is_gone_is_found_too(self, tmp_path: Path) -> None:
        found = judged(command(_daemon(tmp_path)), bundled(PLAIN))
        pid = int((tmp_path / "daemon.pid").read_text())
        assert f"pid {pid}" in found.issues()["hygiene.leaked-process"]
        assert not _runs(pid)

    def test_hygiene_is_must_where_the_profile_says_so_and_a_baseline_can_know_it(
        self, tmp_path: Path
    ) -> None:
        strict = tmp_path / "strict.toml"
        strict.write_text(
            'name = "strict"\nhygiene = "MUST"\n[env]\nPROVIDER_BASE_URL = "{model_url}"\n'
        )
        server = command("broken/ignores_sigterm")
        assert judged(server, bundled(PLAIN), target=str(strict)).report.red
        known = tmp_path / "known.toml"
        known.write_text('[[deviations]]\nrule = "hygiene.ignores-term"\nreason = "as it is"\n')
        again = judged(server, bundled(PLAIN), target=str(strict), baseline=str(known))
        assert not again.report.red
        assert again.report.issues[0].known == "as it is"

    def test_talk_on_stderr_is_no_finding(self) -> None:
        found = of("chatty_stderr", scale=1)
        assert found.issues() == {}
        assert found.failed_rules() == []
        assert set(found.verdicts().values()) == {"PASS"}


class TestMemory:
    """Servers whose memory is measured, each in a process of its own."""

    def test_a_line_of_100_mb_is_said_and_not_kept(self, place: Path, mark: str) -> None:
        ran = _ran("huge_line", place, mark, scale=1)
        assert ran.status == 0
        assert 0 < ran.memory < 300
        (issue,) = ran.report["issues"]
        assert issue["id"] == "hygiene.long-line"
        assert "a line of 99999999 bytes" in issue["message"]
        assert "x" * 200 not in issue["message"]

    @pytest.mark.runs
    def test_a_flood_is_ended_within_bounded_memory(self, place: Path, mark: str) -> None:
        ran = _ran("floods", place, mark, scale=1)
        assert ran.status == 1
        assert 0 < ran.memory < 600
        (scenario,) = ran.report["scenarios"]
        assert scenario["messages"][0][0] == "liveness.turn-does-not-end"


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _ran(server: str, place: Path, mark: str, *, scale: float) -> Ran:
    path = str(bundled(PLAIN)[0].path)
    options = ["--server-cmd", command(f"broken/{server}"), "--timeout-scale", str(scale)]
    options += ["--keep-going"]
    return start_pytest(*options, path, folder=place, mark=mark).end()


def _daemon(folder: Path) -> Path:
    """A server whose turns start a process through a parent that ends at once."""
    script = folder / "daemon.py"
    script.write_text(
        "import subprocess, sys\n"
        f"sys.path.insert(0, {str(SERVERS)!r})\n"
        "from minimal import Server\n"
        "INNER = 'import signal; signal.pause()'\n"
        "OUTER = f'''import subprocess, sys\n"
        'child = subprocess.Popen([sys.executable, "-c", {INNER!r}], start_new_session=True)\n'
        f'open({str(folder / "daemon.pid")!r}, "w").write(str(child.pid))\n'
        "'''\n"
        "class Daemon(Server):\n"
        "    def run(self, thread, turn, params):\n"
        "        subprocess.run([sys.executable, '-c', OUTER], check=True)\n"
        "        super().run(thread, turn, params)\n"
        "Daemon().serve()\n"
    )
    return script
