"""Discovery of modules: double registrations are rejected, and the plugin costs nothing."""

import json
import subprocess
import sys

import pytest

from harness.faults.base import all_faults
from harness.judge.base import Monitor, rule
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level
from harness.protocol.wire.methods import BY_METHOD
from reference_server.handlers import discover
from reference_server.handlers.registry import handles


def test_a_second_rule_with_the_same_id_is_refused() -> None:
    taken = next(iter(all_rules()))
    with pytest.raises(ValueError, match=f"{taken}.*is taken"):
        rule(taken, title="another", level=Level.MUST)(type("Another", (Monitor,), {}))


@pytest.mark.parametrize("name", ["nofamily", "Turn.completes", "turn.", ".completes", "turn/a.b"])
def test_a_rule_id_is_family_and_slug(name: str) -> None:
    with pytest.raises(ValueError, match=r"family\.slug"):
        rule(name, title="another", level=Level.MUST)(type("Another", (Monitor,), {}))


def test_rules_are_found_by_walking_and_come_sorted() -> None:
    found = list(all_rules())
    assert found == sorted(found)
    assert len(found) > 40
    assert {name.split(".")[0] for name in found} >= {"turn", "item", "thread", "delta", "error"}


def test_every_fault_names_a_rule_that_exists() -> None:
    faults = all_faults()
    assert list(faults) == sorted(faults)
    assert {fault.rule for fault in faults.values()} <= set(all_rules())


def test_no_handler_of_a_rule_replaces_one_of_its_base() -> None:
    """Both listen: a handler of the same name would silence the other one."""
    replaced = [
        f"{rule.__module__}: {rule.__name__}.{name}"
        for rule in all_rules().values()
        for name, handler in vars(rule).items()
        if hasattr(handler, "topics")
        and "super" not in handler.__code__.co_names
        and any(hasattr(vars(base).get(name), "topics") for base in rule.__mro__[1:])
    ]
    assert replaced == []


def test_a_second_handler_of_a_method_is_refused() -> None:
    discover()
    with pytest.raises(ValueError, match="turn/start already has a handler"):
        handles("turn/start")(lambda call, params: None)  # type: ignore[arg-type,return-value]


def test_every_handler_is_for_a_method_of_the_table() -> None:
    assert set(discover()) <= set(BY_METHOD)


HEAVY = ("pydantic", "httpx", "hypothesis", "anyio", "yaml", "jsonschema_rs", "faker", "typer")


def _loaded_by(statement: str) -> set[str]:
    code = f"import json, sys, {statement}; print(json.dumps(sorted(sys.modules)))"
    return set(json.loads(subprocess.check_output([sys.executable, "-c", code])))


def test_the_plugin_imports_nothing_but_pytest() -> None:
    ours = _loaded_by("harness.cli.plugin")
    assert ours - _loaded_by("pytest") == {"harness", "harness.cli", "harness.cli.plugin"}
    assert not ours & set(HEAVY)


def test_the_reference_server_chooses_its_command_before_it_imports_anything_heavy() -> None:
    assert not _loaded_by("reference_server.cli") & {*HEAVY, "pytest"}
