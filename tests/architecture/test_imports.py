"""Imports point one way: the table of the design, proven over every module of ours.

Imports inside functions count; so do those under TYPE_CHECKING and `import_module("…")`.
"""

import re
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import entry_points

import pytest
from source_tree import (
    OURS,
    ROOT,
    imports,
    module_name,
    modules,
    package_of,
    python_files,
    reached_from,
    within,
)

# The rooms of the harness, lowest first: a room imports rooms above it in this table alone, and of
# others what its row names (beside the standard library).
ROOMS: dict[str, tuple[str, ...]] = {
    "harness.protocol": ("jsonschema_rs", "pydantic", "yaml"),
    "harness.trace": (),
    "harness.judge": (),
    "harness.model": ("anyio", "httpx", "pydantic", "uvicorn"),
    "harness.client": ("anyio", "psutil", "pydantic", "tomlkit", "websockets", "yaml"),
    "harness.faults": ("anyio",),
    "harness.scenario": ("anyio", "faker", "pydantic", "pydantic_core", "yaml"),
    "harness.report": ("jinja2", "jsonschema_rs", "markupsafe", "pydantic", "rich"),
    "harness.play": ("anyio", "psutil"),
    "harness.search": (
        "anyio",
        "covertable",
        "dask",
        "distributed",
        "hypothesis",
        "psutil",
        "pydantic",
        "yaml",
    ),
    "harness.load": ("anyio", "gevent", "locust", "psutil"),
    "harness.cli": ("anyio", "prompt_toolkit", "pytest", "starlette", "typer", "websockets"),
}
# What every room may import: the exceptions, and standard output.
FOUNDATIONS = ("harness.errors", "harness.console")
# What a part of the harness must not know although the order of the rooms would allow it (names
# below `harness.`; a module belongs to the most specific part). Double entry: who composes messages
# and who judges them share no table. What plays knows no verdict. A trace knows no surface.
APART: dict[str, str] = {
    "protocol.wire": "protocol.spec protocol.dialects",
    "protocol.spec": "protocol.wire protocol.dialects",
    "protocol.dialects": "protocol.spec protocol.wire",
    "trace": "protocol.spec protocol.wire trace.record trace.surface",
    "trace.record": "protocol.spec protocol.wire trace.surface",
    "trace.surface": "protocol.wire trace.record",
    "judge": "protocol.wire protocol.dialects trace.record judge.ledger judge.rules",
    "judge.ledger": "protocol.wire protocol.dialects trace.record judge.rules",
    "judge.rules": "protocol.wire protocol.dialects trace.record judge.ledger",
    "model": "protocol.spec protocol.wire trace.surface judge",
    "client": "protocol.spec protocol.wire trace.record trace.surface judge model client.target",
    "client.target": "protocol.spec protocol.wire trace.record trace.surface judge model "
    "client.peer",
    "client.transport": "protocol.spec protocol.wire trace.record trace.surface judge model "
    "client.peer client.target",
    "faults": "protocol.wire trace.record trace.surface judge.ledger model "
    "client.peer client.target",
    "scenario": "trace.record trace.surface judge faults",
    "report": "protocol.wire trace.record judge.ledger model client faults scenario report.compare "
    "report.snapshot",
    "report.compare": "protocol.wire trace.record trace.surface judge.ledger model client faults "
    "scenario report.snapshot report.terminal",
    "report.html": "protocol.wire trace.record judge.ledger model client faults report.snapshot",
    "report.results": "protocol.wire trace.record trace.surface model client.peer client.transport "
    "faults report.compare report.snapshot report.terminal",
    "report.shards": "protocol.wire trace.record judge.ledger model client.peer client.transport "
    "faults report.compare report.terminal",
    "report.snapshot": "protocol.spec protocol.wire trace.surface judge model client faults "
    "scenario report.compare report.results report.terminal",
    "play": "report.compare report.snapshot report.terminal play.client_duties play.client_tests",
    "play.client_duties": "protocol.wire trace.record judge.ledger model client faults scenario "
    "report.compare report.results report.snapshot play.bench play.client_tests",
    "play.client_tests": "protocol.wire trace.record trace.surface judge.ledger report",
    "search.fuzz": "protocol.wire trace.record trace.surface judge.ledger faults report.compare "
    "report.snapshot report.terminal play.client_duties play.client_tests search.mutation",
    "search.mutation": "protocol.wire trace.record judge.ledger report play.client_duties "
    "play.client_tests search.fuzz",
    "load": "protocol.wire trace.record trace.surface judge.ledger faults report.compare "
    "report.snapshot report.terminal play.client_duties play.client_tests search",
    "cli.commands": "protocol.wire play.client_tests cli.suite",
    "cli.connect": "trace.record trace.surface judge.ledger faults report.compare report.snapshot "
    "report.terminal play search cli.commands cli.suite",
    "cli.suite": "protocol.wire trace.record trace.surface judge.ledger faults report.compare "
    "play.client_duties play.client_tests search.mutation cli.commands cli.connect",
}
# Libraries of one part of their room alone.
ALONE = {
    "dask": "search.cluster",
    "distributed": "search.cluster",
    "gevent": "load",
    "locust": "load",
    "hypothesis": "search.fuzz",
    "jinja2": "report.html",
    "jsonschema_rs": "protocol.spec",
    "prompt_toolkit": "cli.connect cli.fold_view",
    "typer": "cli",
    "websockets": "client.transport cli.commands",
}
# No single rule is named from outside the room: whoever wants rules asks this module.
RULES, DISCOVERY = "harness.judge.rules", "harness.judge.rules.discovery"


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_only_rooms_above_it_in_the_table(room: str) -> None:
    earlier = tuple(ROOMS)[: tuple(ROOMS).index(room)]
    wrong = [
        f"{one.place}: {one.importer} imports {one.imported}"
        for one in imports("harness")
        if within(one.importer, room)
        # The name `harness` alone stands for its constants, such as the version.
        and one.imported != "harness"
        and not within(one.imported, room, *FOUNDATIONS, *earlier, *ROOMS[room])
        and one.imported.split(".")[0] not in sys.stdlib_module_names
    ]
    assert not wrong, "\n".join(wrong)


@cache
def _part_of(module: str) -> str:
    parts = [part for part in APART if within(module, f"harness.{part}")]
    return max(parts, key=len, default="")


@pytest.mark.parametrize("part", APART)
def test_a_part_does_not_know_what_it_is_kept_apart_from(part: str) -> None:
    others = tuple(f"harness.{other}" for other in APART[part].split())
    assert {f"harness.{part}", *others} <= modules(), "the table names what does not exist"
    wrong = [
        f"{one.place}: {one.importer} imports {one.imported}"
        for one in imports("harness")
        if _part_of(one.importer) == part and within(one.imported, *others)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_room_imports_each_library_of_its_row() -> None:
    unused = [
        f"{room}: {library}"
        for room, libraries in ROOMS.items()
        for library in libraries
        if not any(
            within(one.importer, room) and within(one.imported, library)
            for one in imports("harness")
        )
    ]
    assert unused == []


@pytest.mark.parametrize("library", ALONE)
def test_a_library_of_one_part_is_imported_there_alone(library: str) -> None:
    parts = tuple(f"harness.{part}" for part in ALONE[library].split())
    rooms = tuple(package_of(part) for part in parts)
    importers = {one.importer for one in imports("harness") if within(one.imported, library)}
    assert any(within(importer, *parts) for importer in importers)
    wrong = {one for one in importers if within(one, *rooms) and not within(one, *parts)}
    assert wrong == set()


def test_no_single_rule_is_named_outside_the_rules() -> None:
    wrong = [
        f"{one.place}: {one.importer} imports {one.imported}"
        for one in imports("harness")
        if within(one.imported, RULES)
        and not within(one.importer, RULES)
        and not within(one.imported, DISCOVERY)
    ]
    assert not wrong, "\n".join(wrong)


def test_the_foundations_import_no_room() -> None:
    wrong = [
        f"{one.importer} imports {one.imported}"
        for one in imports("harness")
        if one.importer in FOUNDATIONS and within(one.imported, *ROOMS)
    ]
    assert wrong == []


# What judges, and what tells of it.
JUDGES = ("harness.judge", "harness.faults", "harness.report", "harness.cli.suite")


@pytest.mark.parametrize("package", ["harness.scenario", "harness.model", "harness.client"])
def test_playing_reaches_no_rule(package: str) -> None:
    starts = [module for module in modules() if within(module, package)]
    wrong = [
        f"{start} reaches {reached}"
        for start in starts
        for reached in reached_from(start)
        if within(reached, *JUDGES)
    ]
    assert not wrong, "\n".join(wrong)


def test_nothing_in_the_harness_names_the_reference_server() -> None:
    texts = [
        path
        for path in (ROOT / "harness").rglob("*")
        if path.suffix in (".py", ".toml", ".yaml", ".json")
    ]
    assert len(texts) > 50
    assert [path for path in texts if "reference_server" in path.read_text("utf-8")] == []


# What judges the clients of a server that plays scenarios: the server hands it bytes, lazily, and
# takes verdicts (docs/adr/0035-the-server-hands-its-client-to-a-judge.md).
JUDGE_OF_CLIENTS = "harness.play.client_duties"
# The way there: what is laid out for a client and put before it, and what is told of it. A part of
# the server knows it, which a server without --scenario and --listen never imports
# (docs/adr/0036-a-server-for-each-client-under-test.md).
STAGE = "harness.play.client_tests"
KNOW_THE_STAGE = ("reference_server.cli.staging", "reference_server.client_tests")
# The way to the model of a scenario, which a server without --scenario never imports.
SCRIPTED = "reference_server.model.scripted"
# The edge that speaks a release, by a table that no rule reads.
DIALECT_EDGE = "reference_server.dialect"


def test_the_reference_server_imports_the_wire_models_and_no_judge() -> None:
    scenario_path = ("harness.model", "harness.scenario")
    wrong: list[str] = []
    for one in imports("reference_server"):
        on_the_stage = within(one.importer, *KNOW_THE_STAGE)
        if within(one.imported, SCRIPTED) and not one.lazy and not on_the_stage:
            wrong.append(f"{one.place}: {one.importer} imports {one.imported} at its start")
        if one.imported.split(".")[0] != "harness" or within(one.imported, "harness.protocol.wire"):
            continue
        if within(one.importer, DIALECT_EDGE) and within(one.imported, "harness.protocol.dialects"):
            continue
        if one.importer == SCRIPTED and within(one.imported, "harness.model"):
            continue
        if on_the_stage and within(one.imported, STAGE, *FOUNDATIONS):
            continue
        allowed = one.importer == "reference_server.cli.scenario_model" and one.lazy
        if not (allowed and within(one.imported, *scenario_path)):
            wrong.append(f"{one.place}: {one.importer} imports {one.imported}")
    assert not wrong, "\n".join(wrong)


def test_the_reference_server_never_reaches_the_player() -> None:
    stage = tuple(module for module in modules() if within(module, STAGE))
    reached = reached_from("reference_server.cli.app_server", but=stage)
    assert "harness.scenario.loader" in reached, "the way of --scenario is not seen at all"
    players = (
        "harness.scenario.player",
        "harness.scenario.ending",
        "harness.scenario.expect",
        "harness.client",
        "harness.protocol.spec",
        "harness.play",
        *JUDGES,
    )
    assert [module for module in sorted(reached) if within(module, *players)] == []


def test_a_server_that_is_not_told_to_never_imports_the_stage() -> None:
    importers = [
        one
        for one in imports("reference_server")
        if within(one.imported, *KNOW_THE_STAGE) and not within(one.importer, *KNOW_THE_STAGE)
    ]
    assert {one.importer for one in importers} == {"reference_server.cli.app_server"}
    assert all(one.lazy for one in importers)


def test_the_judge_of_clients_reaches_nothing_that_plays() -> None:
    reached = reached_from(f"{JUDGE_OF_CLIENTS}.live")
    assert "harness.judge.rules.discovery" in reached
    playing = (
        "reference_server",
        "harness.protocol.wire",
        "harness.model",
        "harness.client",
        "harness.scenario",
        "harness.play",
    )
    others = [module for module in sorted(reached) if not within(module, JUDGE_OF_CLIENTS)]
    assert [module for module in others if within(module, *playing)] == []


def _no_cycle(graph: dict[str, set[str]]) -> None:
    try:
        list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]))


def test_packages_form_no_cycle() -> None:
    """Lazy imports count: who needs a package inside a function depends on it all the same."""
    graph: dict[str, set[str]] = {}
    for one in imports(*OURS):
        importer, imported = package_of(one.importer), package_of(one.imported)
        # A package's own name stands for its constants, such as the version.
        if one.imported in modules() and imported not in (importer, *OURS):
            graph.setdefault(importer, set()).add(imported)
    _no_cycle(graph)


def test_modules_form_no_cycle() -> None:
    """Nor inside a package, and lazy imports count here too."""
    graph: dict[str, set[str]] = {}
    for one in imports(*OURS):
        if one.imported in modules() and one.imported not in (one.importer, *OURS):
            graph.setdefault(one.importer, set()).add(one.imported)
    _no_cycle(graph)


def test_the_runner_knows_no_pytest() -> None:
    runner = [module for module in modules() if within(module, "harness.play")]
    assert [module for module in runner if "harness.cli.suite" in reached_from(module)] == []
    named = [one.place for one in imports("harness") if one.imported.split(".")[0] == "pytest"]
    allowed = ("harness/cli/suite/", "harness/cli/plugin.py")
    assert [place for place in named if not place.startswith(allowed)] == []


def test_every_module_of_the_harness_belongs_to_a_room() -> None:
    found = {package_of(module) for module in modules() if within(module, "harness")}
    assert found - set(ROOMS) == {"harness", "harness.__main__", *FOUNDATIONS}


def test_the_walk_sees_imports_inside_functions() -> None:
    lazy = [one for one in imports("harness") if one.lazy and one.importer == "harness.cli.plugin"]
    assert {one.imported for one in lazy} >= {"harness.cli.suite.hooks", "harness.errors"}
    assert len(python_files("harness")) > 60


# Distribution names that differ from the module's.
MODULE_OF = {
    "pyyaml": "yaml",
    "jsonschema-rs": "jsonschema_rs",
    "markdown-it-py": "markdown_it",
    "pytest-xdist": "xdist",
}
# What pytest loads by itself, as a plugin: nothing needs to import it.
PLUGINS = {"xdist"}


def _modules_of(requirements: list[str]) -> set[str]:
    names = [re.split(r"[<>=!~\[; ]", one, maxsplit=1)[0].lower() for one in requirements]
    return {MODULE_OF.get(name, name.replace("-", "_")) for name in names}


def test_the_package_imports_only_its_requirements() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    extras = project["project"]["optional-dependencies"].values()
    named = [*project["project"]["dependencies"], *(one for extra in extras for one in extra)]
    declared = _modules_of(named)
    # The cores of pydantic, httpx and jinja2 come with them, gevent with Locust, dask with
    # distributed.
    cores = ("pydantic_core", "httpcore", "markupsafe", "gevent", "dask")
    known = {*declared, *OURS, *sys.stdlib_module_names, *cores}
    wrong = [
        f"{one.place}: {one.imported}"
        for one in imports(*OURS)
        if one.imported.split(".")[0] not in known
    ]
    assert not wrong, "\n".join(wrong)


def test_every_requirement_of_the_package_is_imported_or_a_plugin_of_pytest() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    used = {one.imported.split(".")[0] for one in imports(*OURS)}
    left = _modules_of(project["project"]["dependencies"]) - used
    loaded = {entry.value.split(".")[0] for entry in entry_points(group="pytest11")}
    assert left == PLUGINS
    assert left <= loaded


# Words of one surface, the modules that give them a meaning, and what of the judge still knows
# them: the decorators of rules, and the ends of recordings.
WORDS_OF_SESSIONS = ("method", "request", "response", "answer", "notification", "jsonrpc", "rpc")
PARTS_OF_SESSIONS = (
    "harness.trace.surface.session",
    "harness.trace.correlation",
    "harness.trace.obligations",
    "harness.trace.connection_ledgers",
    "harness.trace.views",
)
KNOW_SESSIONS = (
    "harness.judge.base",
    "harness.judge.missing_messages",
    "harness.judge.ledger",
    "harness.judge.rules",
)


def test_the_judge_knows_no_surface() -> None:
    """Only surfaces know kinds of lines and match answers: a new surface changes no judge."""
    judging = {
        module_name(path): set(re.findall(r"[a-z]+", path.read_text("utf-8").lower()))
        for path in python_files("harness/judge")
        if not within(module_name(path), *KNOW_SESSIONS)
    }
    assert {"surface", "monitors", "connection"} <= judging["harness.judge.judge"]
    known = {word for words in judging.values() for word in words}
    assert not {word for word in known if word.rstrip("s") in WORDS_OF_SESSIONS}
    named = {one.imported for one in imports("harness") if one.importer in judging}
    assert "harness.trace.surface.base" in named
    assert not [one for one in named if within(one, *PARTS_OF_SESSIONS)]
