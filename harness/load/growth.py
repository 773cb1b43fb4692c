"""The growth of a server in a soak: its readings, and the trend of each measure."""

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from harness.client.target.process_tree import NO_ANSWER
from harness.load.judging import BrokenRule
from harness.load.operations import Sample
from harness.load.trend import Trend, trend_of

WARM_UP: Final = 1 / 3
"""Share of the readings that is left out at the beginning."""
DISK: Final = "disk of a thread"
_KIB: Final = 1024.0
# Of each measure: its unit, that unit's size, and the least growth that counts, in the unit and as
# a share of its beginning. Times of operations have no row; they are noisier than what is counted.
_MEASURES: Final = {
    "memory": ("MiB", _KIB**2, 2.0, 0.05),
    "descriptors": ("descriptors", 1.0, 5.0, 0.1),
    "threads": ("threads", 1.0, 3.0, 0.1),
    "child processes": ("processes", 1.0, 3.0, 0.1),
    DISK: ("KiB", _KIB, 2.0, 0.5),
}
_TIMES: Final = ("ms", 0.001, 5.0, 0.5)


@dataclass(slots=True)
class Reading:
    """Measures at one time, by name: bytes, counts, and seconds for a kind of operation.

    `turns` and `threads` count those since the beginning, `disk` the bytes of the server's home.
    """

    turns: int
    threads: int
    disk: int
    values: dict[str, float]


def read_server(pid: int, home: Path) -> tuple[dict[str, float], int]:
    """Return the measures of a server and its descendants, and the bytes of its home."""
    values = {name: 0.0 for name in _MEASURES if name != DISK}
    with suppress(*NO_ANSWER):
        server = psutil.Process(pid)
        for number, process in enumerate([server, *server.children(recursive=True)]):
            with suppress(*NO_ANSWER):
                values["memory"] += process.memory_info().rss
                values["descriptors"] += process.num_fds()
                values["threads"] += process.num_threads()
                values["child processes"] += number > 0
    disk = 0
    for folder, _, files in os.walk(home):
        for name in files:
            with suppress(OSError):  # It was removed meanwhile.
                disk += os.lstat(os.path.join(folder, name)).st_size
    return values, disk


def shortest_times(samples: Sequence[Sample]) -> dict[str, float]:
    """Return the shortest seconds of each kind of operation that succeeded.

    A busy machine lengthens the others first, and is not the server.
    """
    times: dict[str, float] = {}
    for one in samples:
        if not one.error:
            times[one.kind] = min(one.seconds, times.get(one.kind, one.seconds))
    return times


def trends_of(readings: Sequence[Reading]) -> dict[str, Trend]:
    """Return the trend of each measure per 1,000 turns, in its unit, after the warm-up.

    Of the disk that is the growth for each new thread: more threads take more disk.
    """
    kept = readings[int(len(readings) * WARM_UP) :]
    series: dict[str, list[tuple[float, float]]] = {}
    previous = kept[0] if kept else None
    for reading in kept:
        if previous and reading.threads > previous.threads:
            share = (reading.disk - previous.disk) / (reading.threads - previous.threads)
            series.setdefault(DISK, []).append((reading.turns / 1000, share))
            previous = reading
        for name, value in reading.values.items():
            series.setdefault(name, []).append((reading.turns / 1000, value))
    trends: dict[str, Trend] = {}
    for name in sorted(series):
        _, size, min_growth, min_share = _MEASURES.get(name, _TIMES)
        points = [(x, value / size) for x, value in series[name]]
        trend = trend_of(points, min_growth=min_growth, min_share=min_share)
        if trend is not None:
            trends[name] = trend
    return trends


@dataclass(slots=True)
class SoakReport:
    """A soak: what grew, what failed, and the rules that the judged conversations broke.

    `must_be_flat` makes growth a failure, else it is only reported.
    """

    server: str
    seconds: float
    must_be_flat: bool
    turns: int = 0
    trends: dict[str, Trend] = field(default_factory=dict[str, Trend])
    errors: dict[str, int] = field(default_factory=dict[str, int])
    judged: int = 0
    broken: list[BrokenRule] = field(default_factory=list[BrokenRule])

    @property
    def grown_measures(self) -> list[str]:
        """Return the measures that grow."""
        return [name for name, trend in self.trends.items() if trend.grows]

    @property
    def is_clean(self) -> bool:
        """Return whether nothing failed; growth counts if the profile promises flatness."""
        failed = self.errors or self.broken or (self.must_be_flat and self.grown_measures)
        return bool(self.turns and self.trends) and not failed

    def text_lines(self) -> list[str]:
        """Return the report for a terminal."""
        lines = [f"{self.server}, {self.seconds:.0f} s, {self.turns} turns"]
        for name, trend in self.trends.items():
            unit = _MEASURES.get(name, _TIMES)[0]
            slope = f"{trend.slope:+.3g} {unit} per 1,000 turns (p {_p(trend.p)})"
            words = "grows" if trend.grows else "flat"
            lines.append(f"  {name:16} {words:5}  median {trend.level:.4g} {unit}, {slope}")
        lines += [f"  failed {count} times: {error}" for error, count in self.errors.items()]
        lines.append(f"  {self.judged} conversations judged, {len(self.broken)} findings")
        lines += [f"  {one.rule}: {one.text}; harness show {one.recording}" for one in self.broken]
        if not self.trends:
            return [*lines, "too short: no measure has enough readings"]
        level = "MUST" if self.must_be_flat else "INFO"
        grown = ", ".join(self.grown_measures)
        return [*lines, f"{level}: grows with the turns: {grown}" if grown else "no measure grows"]

    def to_plain(self) -> dict[str, Any]:
        """Return the report as JSON values, each trend in its unit per 1,000 turns."""
        units = {name: _MEASURES.get(name, _TIMES)[0] for name in self.trends}
        return {
            **asdict(self),
            "units": units,
            "grown": self.grown_measures,
            "clean": self.is_clean,
        }


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"= {value:.3f}"
