"""A profile with one scenario's overrides: configuration, placeholders, listening."""

from __future__ import annotations

import sys
from pathlib import Path

from harness.client.target.overrides import (
    model_address_carriers,
    placeholder_values,
    with_overrides,
)
from harness.client.target.profile import Profile, load_profile, parse_profile
from harness.protocol.values import obj

PLAIN = Profile(
    name="p",
    command=["server"],
    listen_arguments=["--listen", "{listen}"],
    home={"config.toml": {"model": "m", "servers": {"one": {"url": "u"}}}},
)
PLACES = {"cwd": "/w", "agent": ".agent", "python": "/py"}


def test_a_scenario_that_asks_for_nothing_gets_the_profile_itself() -> None:
    assert with_overrides(PLAIN, config={}, placeholders=PLACES, several=False) is PLAIN


def test_configuration_is_added_table_by_table_with_its_places() -> None:
    config = {"servers": {"two": {"command": "{python}", "args": ["{cwd}/x.py", "{other}"]}}}
    found = with_overrides(PLAIN, config=config, placeholders=PLACES, several=False)
    assert found.home["config.toml"] == {
        "model": "m",
        "servers": {"one": {"url": "u"}, "two": {"command": "/py", "args": ["/w/x.py", "{other}"]}},
    }
    assert obj(PLAIN.home["config.toml"])["servers"] == {"one": {"url": "u"}}
    assert with_overrides(
        Profile(name="p"), config={"a": 1}, placeholders={}, several=False
    ).home == {"config.toml": {"a": 1}}


def test_a_table_stands_where_the_server_has_it() -> None:
    transport = {"type": "stdio", "command": "{python}"}
    servers = {"one": {"transport": transport, "env": {"A": "b"}}, "two": {"transport": "none"}}
    profile = PLAIN.model_copy(update={"lifted": ['servers."*".transport', "absent.table"]})
    config = {"servers": servers, "transport": {"kept": True}}
    found = with_overrides(profile, config=config, placeholders=PLACES, several=False)
    assert found.home["config.toml"] == {
        "model": "m",
        "servers": {
            "one": {"url": "u", "type": "stdio", "command": "/py", "env": {"A": "b"}},
            "two": {"transport": "none"},
        },
        "transport": {"kept": True},
    }
    assert servers["one"]["transport"] is transport


def test_a_client_is_named_beside_what_the_profile_says_of_it() -> None:
    told = {"clientInfo": {"name": "mine", "version": "7"}, "capabilities": {"x": True}}
    profile = PLAIN.model_copy(update={"initialize": told})
    found = with_overrides(
        profile, config={}, placeholders=PLACES, several=False, client_name="vscode"
    )
    assert found.initialize == {**told, "clientInfo": {"name": "vscode", "version": "7"}}
    plain = with_overrides(PLAIN, config={}, placeholders=PLACES, several=False, client_name="cli")
    assert plain.initialize == {"clientInfo": {"name": "cli", "version": "1"}}


def test_several_clients_make_a_server_listen_that_knows_how() -> None:
    found = with_overrides(PLAIN, config={}, placeholders=PLACES, several=True)
    assert found.command == ["server", "--listen", "{listen}"]
    assert found.listening_kind() == "ws"
    listening = PLAIN.model_copy(update={"command": ["server", "--at={listen}"]})
    assert with_overrides(listening, config={}, placeholders=PLACES, several=True) is listening
    cannot = Profile(name="p", command=["server"])
    assert with_overrides(cannot, config={}, placeholders=PLACES, several=True) is cannot


def test_places_are_the_workspace_the_folder_of_the_agent_and_an_interpreter() -> None:
    profile = Profile(name="p", agent_folder=".codex")
    found = placeholder_values(profile, Path("/w"))
    assert found == {"cwd": "/w", "agent": ".codex", "python": sys.executable}
    beside = placeholder_values(profile, Path("/w"), scenario_folder=Path("/s"))
    assert beside == {**found, "scenario_folder": "/s"}


def test_by_what_the_server_is_told_of_the_model() -> None:
    told = "PROVIDER_BASE_URL, OPENAI_BASE_URL and config.toml"
    assert model_address_carriers(load_profile("spec")) == told
    alone = 'name = "x"\nextends = "none"\n'
    assert model_address_carriers(parse_profile(alone, "x")) == ""
    command = 'command = "server --model={model_url}"\n'
    assert model_address_carriers(parse_profile(alone + command, "x")) == "the command"
    files = '[home."a.toml".b]\nc = ["{model_url}"]\n[home."d.toml"]\ne = 1\n'
    assert (
        model_address_carriers(parse_profile(alone + command + files, "x"))
        == "a.toml and the command"
    )
