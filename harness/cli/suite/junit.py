"""Names of scenarios and rules in JUnit files, so that tools can group them and find files."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.report.results.report import Report
from harness.report.terminal import verdict_words
from harness.scenario.identity import bundled_folder
from harness.scenario.race_id import RaceId


def name_scenario(config: pytest.Config, report: pytest.TestReport) -> None:
    """Set a case's class (`scenarios.turns`), name (`turns/plain-turn`) and file.

    Called before pytest writes the case.
    """
    race = RaceId.parse(report.nodeid)
    kind = "races" if race.action else "scenarios"
    folders = race.scenario.split("/")[:-1]
    for case, prefix in _cases(config, report):
        _name(case, [*prefix, kind, *folders], report.nodeid)
        file = _of_package(config, report.location[0])
        if file:
            case.add_attribute("file", file)


def name_rule(config: pytest.Config, report: pytest.TestReport) -> None:
    """Set a case's class (`rules.turn`), name (`turn.completed-once`), and file if it was broken.

    Called after pytest wrote it, since pytest requires a file.
    """
    kind, _, name = report.nodeid.partition("::")
    for case, prefix in _cases(config, report):
        _name(case, [*prefix, kind, name.split(".", 1)[0]], name)
        if report.location[0] == kind:
            case.attrs.pop("file", None)
            case.attrs.pop("line", None)
        elif "file" in case.attrs:
            case.add_attribute(
                "file", _of_package(config, report.location[0]) or report.location[0]
            )


def describe_run(config: pytest.Config, report: Report, harness_version: str) -> None:
    """Add properties of the test suite: the target, the harness, the time and the verdict."""
    properties = {
        "harness": harness_version,
        "target": report.target,
        "command": report.command or report.agent or report.sdk,
        "server": report.server,
        "revision": report.revision,
        "started": report.started,
        "verdict": verdict_words(report),
        **{f"time {one.step or one.name}": one.words() for one in report.times},
    }
    for plugin in config.pluginmanager.get_plugins():
        writer: Any = plugin
        if hasattr(writer, "add_global_property"):
            for name, value in properties.items():
                writer.add_global_property(name, value)


def _cases(config: pytest.Config, report: pytest.TestReport) -> Iterator[tuple[Any, list[str]]]:
    for plugin in config.pluginmanager.get_plugins():
        writer: Any = plugin
        if hasattr(writer, "node_reporter"):
            yield writer.node_reporter(report), [writer.prefix] if writer.prefix else []


def _name(case: Any, classname: list[str], name: str) -> None:
    case.add_attribute("classname", ".".join(classname))
    case.add_attribute("name", name)


def _of_package(config: pytest.Config, file: str) -> str:
    """Return the path of a bundled scenario in the package, "" if it is in the user's project."""
    path = (config.rootpath / file).resolve()
    if path.is_relative_to(config.rootpath) or not path.is_relative_to(bundled_folder()):
        return ""
    package = Path(harness.__file__).resolve().parent.parent
    return path.relative_to(package).as_posix()
