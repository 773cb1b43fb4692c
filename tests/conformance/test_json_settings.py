"""A server with JSON settings of its own is judged by the profile that `profile new` begins."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.processes import ROOT, run_warm

SERVER = f"{sys.executable} {ROOT}/fixtures/servers/plain/plain.py"
# The model's address reaches it by its settings file alone.
COMMAND = f"env -u PROVIDER_BASE_URL -u OPENAI_BASE_URL {SERVER}"


@pytest.mark.slow
@pytest.mark.socket
def test_a_server_that_reads_json_is_judged_by_a_new_profile(tmp_path: Path) -> None:
    options = ("--settings", "settings.json", "--model-key", "llm.baseUrl", "-o", "mine.toml")
    made = run_warm("harness", "profile", "new", "--server-cmd", COMMAND, *options, cwd=tmp_path)
    assert made.status == 0, made.out + made.err
    assert "harness run --target mine.toml" in made.out
    again = run_warm("harness", "profile", "new", "--server-cmd", COMMAND, *options, cwd=tmp_path)
    assert again.status == 2
    assert "mine.toml exists; --force writes over it" in again.err
    profile = tmp_path / "mine.toml"
    text = profile.read_text()
    assert "# shell_command(command, " in text
    profile.write_text(
        text.replace(
            "[settings.names]\n",
            '[settings.names]\n"model_providers.mock.request_max_retries" = "llm.retries"\n'
            '"model_providers.mock.stream_max_retries" = "llm.streamRetries"\n'
            'mcp_servers = "mcpServers"\n',
        )
    )
    scenarios = ("turns/plain-turn", "tools/mcp-call", "compaction/fails")
    run = run_warm(
        "harness", "run", "--target", "mine.toml", *scenarios, "--lanes", "1", cwd=tmp_path
    )
    assert run.status == 0, run.out
    assert "scenarios: 3 (2 PASS, 1 NOT_APPLICABLE)" in run.out
    reason = "the profile's settings.names has no place for model_auto_compact_token_limit"
    assert reason in run.out
