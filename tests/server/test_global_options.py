"""Options before the command: they count as those after it, for every command."""

import json

import pytest
from agent_mcp import Home

from reference_server import cli
from reference_server.cli import app_server, mcp
from reference_server.cli import exec as one_turn

LEADING = ["-c", "model=a", "--enable", "x", "--config=model=b", "-cmodel=c", "--disable=y"]
AS_CONFIG = ["model=a", "features.x=true", "model=b", "model=c", "features.y=false"]


@pytest.mark.parametrize(
    ("command", "module"), [("app-server", app_server), ("exec", one_turn), ("mcp", mcp)]
)
def test_options_before_every_command_stand_before_its_own(command, module, monkeypatch) -> None:
    called: list[list[str]] = []

    def run(rest, settings=()) -> int:
        called.append([*settings, *rest])
        return 7

    monkeypatch.setattr(module, "run", run)
    assert cli.main([*LEADING, command, "-c", "model=d"]) == 7
    assert called == [[*(f"--config={one}" for one in AS_CONFIG), "-c", "model=d"]]


def test_every_command_reads_them_as_its_own() -> None:
    from reference_server.agent_exec import options

    assert app_server.parse(LEADING).config == tuple(AS_CONFIG)
    assert options.parse(LEADING).config == tuple(AS_CONFIG)


@pytest.mark.parametrize("words", [["-c", "mcp_servers.x.command=new"], ["--enable", "y"]])
def test_the_mcp_command_takes_them_before_and_after_its_name(tmp_path, words, capsys) -> None:
    home = Home(tmp_path)
    home.write('[mcp_servers.x]\ncommand = "old"\n')
    expected = "new" if "-c" in words else "old"
    for line in ([*words, "get", "x", "--json"], ["get", "x", "--json", *words]):
        said = home.call(*line)
        assert (said.status, said.err) == (0, "")
        assert json.loads(said.out)["transport"]["command"] == expected
    for command in (["add", "y", "--", "c"], ["remove", "y"], ["logout", "x"]):
        assert home.call(*words, *command).status == 0
    assert home.servers() == {"x": {"command": "old"}}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "x", "exec"], "agent: there is no option --model before the command"),
        (["-q", "exec"], "agent: there is no option -q before the command"),
        (["--config"], "agent: --config: expected one argument"),
        (["mcp", "-q", "list"], "agent mcp: there is no option -q before the command"),
    ],
)
def test_a_wrong_option_is_one_line(words, message, capsys) -> None:
    assert cli.main(words) == 2
    assert capsys.readouterr().err == f"{message}; see {message.partition(':')[0]} --help\n"


def test_options_alone_show_the_usage(capsys) -> None:
    assert cli.main(["--config", "model=x"]) == 2
    assert capsys.readouterr().err.startswith("usage: agent ")
