"""The time of `thread/list` on the reference server with many stored threads.

The first list, which builds the index, is timed too, and that of a next server, which finds it.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tools.bench import stored
from tools.bench.client import Client, MeasurementFailed, monotonic
from tools.bench.stats import Absent, Cell, Figure, median
from tools.bench.targets import Target

STORED_THREADS, MAX_STORED_THREADS = 10_000, 100_000
LIST_SIZE = 25
REPEATS = 50

FILTERS: Mapping[str, dict[str, Any]] = {
    "updated_at": {"sortKey": "updated_at"},
    "a provider": {"modelProviders": ["mock"]},
    "a rare provider": {"modelProviders": ["rare"]},
    "no such provider": {"modelProviders": ["none"]},
    "a source": {"sourceKinds": ["vscode", "cli"]},
    "a rare source": {"sourceKinds": ["rare"]},
    "a cwd": {"cwd": "/projects/part-7"},
    "archived": {"archived": True},
    "a source by update": {"sourceKinds": ["rare"], "sortKey": "updated_at"},
}
SEARCHES: Mapping[str, dict[str, Any]] = {
    "a common word": {"searchTerm": "project"},
    "a rare word": {"searchTerm": "Zebra"},
    "no such word": {"searchTerm": "zebra"},
    "a number": {"searchTerm": "part 4711 "},
}
KEYS = (
    "thread-list",
    "thread-list-many",
    "thread-list-filters",
    "thread-list-search",
    "thread-list-last",
    "thread-list-first",
    "thread-list-found",
    "thread-list-beside",
)


def all_of(target: Target, model_url: str) -> dict[str, Cell]:
    """Return the cells of all measurements; those of a failed one hold its reason."""
    cells: dict[str, Cell] = {}
    measurements: tuple[tuple[tuple[str, ...], Callable[[Target, str], dict[str, Cell]]], ...] = (
        (("thread-list", "thread-list-first", "thread-list-found", "thread-list-beside"), _few),
        (
            ("thread-list-many", "thread-list-filters", "thread-list-search", "thread-list-last"),
            _many,
        ),
    )
    for keys, measurement in measurements:
        try:
            cells.update(measurement(target, model_url))
        except MeasurementFailed as error:
            cells.update(dict.fromkeys(keys, Absent(f"failed: {error}")))
    return cells


def _few(target: Target, model_url: str) -> dict[str, Cell]:
    with target.start(model_url, partial(_store_threads, count=STORED_THREADS)) as (client, work):
        _greet(client, target)
        took, slowest = _first_list(client)
        plain = _time_lists(client, {})
        home = target.home_of(work)
    # The next server of the same home.
    with target.start(model_url, home=home) as (client, _):
        _greet(client, target)
        found_seconds, _ = _first_list(client)
    return {
        "thread-list": plain,
        "thread-list-first": Figure(took * 1000),
        "thread-list-found": Figure(found_seconds * 1000),
        "thread-list-beside": Figure(slowest * 1000),
    }


def _many(target: Target, model_url: str) -> dict[str, Cell]:
    with target.start(model_url, partial(_store_threads, count=MAX_STORED_THREADS)) as (client, _):
        _greet(client, target)
        _first_list(client)
        return {
            "thread-list-many": _time_lists(client, {}),
            "thread-list-filters": _slowest(client, FILTERS),
            "thread-list-search": _slowest(client, SEARCHES),
            "thread-list-last": _time_lists(client, _last_page(client)),
        }


def _store_threads(home: Path, count: int) -> None:
    stored.store(home, count)


def _greet(client: Client, target: Target) -> None:
    client.request("initialize", target.greeting())
    client.notify("initialized")
    # The server imports modules after its first answer; let that end before the timing begins.
    client.request("thread/read", {"threadId": "thr_1"})


def _first_list(client: Client) -> tuple[float, float]:
    """Return the seconds of the first list, and of the slowest `thread/read` meanwhile."""
    began = monotonic()
    listed = client.send("thread/list", {"limit": LIST_SIZE})
    took = slowest = 0.0
    answered: set[int] = set()
    while listed not in answered:
        sent_at = monotonic()
        read = client.send("thread/read", {"threadId": "thr_1"})
        while read not in answered:
            message = json.loads(next(client.lines()))
            if "error" in message:
                raise MeasurementFailed(f"refused: {message['error']}")
            answered.add(message["id"])
            if message["id"] == listed:
                took = monotonic() - began
        slowest = max(slowest, monotonic() - sent_at)
    return took, slowest


def _time_lists(client: Client, params: dict[str, Any]) -> Figure:
    seconds: list[float] = []
    for _ in range(REPEATS):
        began = monotonic()
        client.request("thread/list", {"limit": LIST_SIZE, **params})
        seconds.append(monotonic() - began)
    return median(seconds, scale=1000)


def _slowest(client: Client, kinds: Mapping[str, dict[str, Any]]) -> Figure:
    """Return the highest median of the kinds of list, with the name of that kind."""
    figures = {name: _time_lists(client, params) for name, params in kinds.items()}
    name = max(figures, key=lambda one: figures[one].value)
    figure = figures[name]
    return Figure(figure.value, figure.low, figure.high, note=name)


def _last_page(client: Client) -> dict[str, Any]:
    """Return the params of the last page of all threads sorted by update."""
    params: dict[str, Any] = {"sortKey": "updated_at"}
    while True:
        # The server caps the limit at its own maximum, which needs few requests.
        result = client.request("thread/list", {"limit": MAX_STORED_THREADS, **params})
        if result["nextCursor"] is None:
            return params
        params["cursor"] = result["nextCursor"]
