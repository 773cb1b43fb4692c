"""The ends of `harness watch` and `harness connect --web`: no process is left, and the status."""

import re
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import httpx
import psutil
import pytest

from tests.processes import BOUND, COMMANDS, ROOT

pytestmark = [pytest.mark.slow, pytest.mark.socket]
MINIMAL = f"{sys.executable} {ROOT / 'fixtures/servers/minimal.py'}"
CONNECT = ("connect", "--web", "--server-cmd", MINIMAL)


@pytest.fixture(params=[("watch",), CONNECT], ids=lambda words: words[0])
def page(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Generator[tuple[subprocess.Popen[str], str]]:
    """Start the command; yield its process and URL once its page answers and its server runs."""
    words = [COMMANDS / "harness", *request.param, "--dir", tmp_path]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.match(
                r"open (http://127\.0\.0\.1:\d+/\?token=\S+)\n", process.stdout.readline()
            )
            assert found is not None
            ready = "it follows" if request.param == ("watch",) else "initialized"
            assert any(ready in line for line in process.stdout)
            yield process, found[1]
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_its_server(
    page: tuple[subprocess.Popen[str], str], number: signal.Signals
) -> None:
    process, url = page
    children = psutil.Process(process.pid).children(recursive=True)
    with httpx.stream("GET", url, timeout=BOUND) as answer:
        assert answer.status_code == 200
        process.send_signal(number)
    # Ctrl-C is the usual end of watch.
    is_usual = "watch" in process.args and number == signal.SIGINT  # pyright: ignore[reportOperatorIssue]
    assert process.wait(BOUND) == (0 if is_usual else 128 + number)
    assert [one for one in children if one.is_running()] == []
    with pytest.raises(httpx.ConnectError):
        httpx.get(url)


@pytest.mark.parametrize("words", [("watch",), CONNECT], ids=lambda words: words[0])
def test_a_port_that_is_taken_is_one_line(words: tuple[str, ...], tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [COMMANDS / "harness", *words, "--port", port, "--dir", tmp_path]
        said = subprocess.run(command, capture_output=True, text=True, timeout=BOUND, check=False)
    assert said.returncode == 2
    assert (
        said.stderr.strip() == f"harness: --port {port}: Address already in use; 0 is any free one"
    )


def test_no_port_but_loopback_is_open(page: tuple[subprocess.Popen[str], str]) -> None:
    process, _ = page
    listening = [
        one for one in psutil.Process(process.pid).net_connections() if one.status == "LISTEN"
    ]
    assert listening
    assert {one.laddr.ip for one in listening} == {"127.0.0.1"}
