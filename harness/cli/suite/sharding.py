"""A run of one shard: `--shard K/N` plays a part of the scenarios, by their names alone."""

import argparse
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from harness.cli.suite.fuzz_items import MARK, FuzzItem
from harness.cli.suite.items import RaceItem, ScenarioItem
from harness.errors import UsageError
from harness.play.config import Config
from harness.protocol.escapes import json_text
from harness.report.json_form import DISTRIBUTION
from harness.report.shards.durations import read_durations
from harness.report.shards.partition import shards_of
from harness.report.shards.values import IDS, VERSION, Shard, SnapshotSettings, digest
from harness.scenario.identity import file_of
from harness.scenario.loader import Loaded

MAX_SHARDS = 10_000
_OPTIONS = ("rule", "suite", "require", "harness_strict", "timeout_scale", "repeat", "retries")
"""Options that change what is judged. What they select shows in the ids."""


class Sharding:
    """Pytest plugin that leaves the items of one shard.

    `ids` are those of all shards, `items` those of this one, `paths` the files of all scenarios,
    `suite` is the digest of their ids and texts. Raises `UsageError` for bad options.
    """

    def __init__(self, option: argparse.Namespace) -> None:
        found = re.fullmatch(r"(\d{1,5})/(\d{1,5})", option.shard)
        self.number, self.of = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= self.number <= self.of <= MAX_SHARDS:
            raise UsageError(f"--shard {option.shard}: give K/N, such as 2/8 for the second of 8")
        for name, reason in (
            ("update_baseline", "a baseline is written by a run of all scenarios"),
            ("lf", "what failed last differs between machines"),
        ):
            if getattr(option, name, False):
                raise UsageError(f"--shard and --{name.replace('_', '-')}: {reason}; leave one out")
        self._seconds = read_durations(Path(option.durations)) if option.durations else {}
        self.ids: list[str] = []
        self.items: list[str] = []
        self.paths: list[str] = []
        self.suite = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Drop what falls to other shards, after every other selection; keep the user's tests."""
        playable = [item for item in items if isinstance(item, ScenarioItem | RaceItem | FuzzItem)]
        self.ids = sorted(item.nodeid for item in playable)
        shards = shards_of(self.ids, self._seconds, self.of)
        self.items = [name for name in self.ids if shards[name] == self.number]
        loaded = [item.loaded for item in playable if not isinstance(item, FuzzItem)]
        self.paths = sorted({str(one.path) for one in loaded})
        self.suite = suite_digest(self.ids, loaded)
        dropped = {id(item) for item in playable if shards[item.nodeid] != self.number}
        if dropped:
            config.hook.pytest_deselected(items=[item for item in items if id(item) in dropped])
            items[:] = [item for item in items if id(item) not in dropped]

    def to_plain(self) -> dict[str, Any]:
        """Return the division as builtins, for the controller of a worker."""
        names = ("ids", "items", "paths", "suite")
        return {name: getattr(self, name) for name in names}

    def take(self, plain: Mapping[str, Any]) -> None:
        """Take the division of a worker; all workers have the same."""
        for name, value in plain.items():
            setattr(self, name, value)

    def shard(
        self,
        option: argparse.Namespace,
        config: Config,
        snapshots: SnapshotSettings | None,
        begun: Collection[str],
    ) -> Shard:
        """Return the shard, without outcomes. `begun` are the scenarios and races with one."""
        conditions = conditions_of(option, config, self.ids, self.suite, snapshots)
        conditions["file of --durations"] = digest([json_text(self._seconds)])
        fuzz = f"{MARK}/"
        left = [one for one in self.items if one not in begun and not one.startswith(fuzz)]
        return Shard(
            self.number, self.of, conditions, self.items, unplayed=left, snapshots=snapshots
        )


def suite_digest(ids: Sequence[str], loaded: Iterable[Loaded]) -> str:
    """Return a digest of the ids and the texts of scenarios."""
    files = sorted({file_of(one.path) for one in loaded})
    return digest([digest(ids), *map(_file_digest, files)])


def conditions_of(
    option: argparse.Namespace,
    config: Config,
    ids: Sequence[str],
    suite: str,
    snapshots: SnapshotSettings | None,
) -> dict[str, str]:
    """Return what parts of one run have in common; `suite` is the digest of all scenarios."""
    profile = config.profile
    lacks = [f"{lack.capability}: {lack.cause}" for lack in config.lacks]
    conditions = {
        VERSION: version(DISTRIBUTION),
        "target": f"{profile.name} ({config.option})",
        "server command": " ".join(profile.command),
        "agent command": " ".join(profile.exec.command),
        "driver command": " ".join(profile.sdk.command),
        "release of the server": config.release,
        "profile": digest([profile.model_dump_json()]),
        IDS: f"{len(ids)} ({digest(ids)})",
        "texts of scenarios": suite,
        "known deviations": digest(one.model_dump_json() for one in config.entries),
        "programs on the machine": "; ".join(lacks),
        "--confine": str(profile.is_confined),
        "snapshots": "" if snapshots is None else digest([json_text(asdict(snapshots))]),
    }
    for name in _OPTIONS:
        conditions[f"--{name.removeprefix('harness_').replace('_', '-')}"] = str(
            getattr(option, name)
        )
    return conditions


@cache
def _file_digest(file: Path) -> str:
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        return str(error.strerror)
