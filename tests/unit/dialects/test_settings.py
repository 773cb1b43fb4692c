"""Settings of a home as the edge reads them."""

from pathlib import Path

from harness.protocol.dialects.table import load_dialect
from reference_server.dialect.settings import Settings

NEWEST = load_dialect("codex-0.169")
UNKNOWN = NEWEST.unknown_settings, NEWEST.unknown_note


def test_settings_that_the_release_ignores_are_named_with_their_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[mcp_servers.west]\ntype = "stdio"\n[mcp_servers.east]\ntype = "stdio"\n')
    note = Settings(str(tmp_path), *UNKNOWN)["unknownNote"]
    assert note.splitlines() == [
        "Codex is ignoring 2 unrecognized configuration settings. "
        "Check for typos or deprecated settings.",
        f"  user ({path}): `mcp_servers.east.type` is ignored.",
        f"  user ({path}): `mcp_servers.west.type` is ignored.",
    ]


def test_a_single_ignored_setting_is_counted_as_one(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[mcp_servers.west]\ntype = "stdio"\n')
    note = Settings(str(tmp_path), *UNKNOWN)["unknownNote"]
    assert note.startswith("Codex is ignoring 1 unrecognized configuration setting. ")


def test_a_known_setting_is_not_named(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('model = "m"\n[mcp_servers.west]\ncommand = "w"\n')
    assert Settings(str(tmp_path), *UNKNOWN)["unknownNote"] == ""


def test_the_enabled_mcp_servers_are_listed(tmp_path: Path) -> None:
    text = "[mcp_servers.west]\nenabled = false\n[mcp_servers.east]\n"
    (tmp_path / "config.toml").write_text(text)
    assert Settings(str(tmp_path))["mcpServers"] == ["east"]
