"""The division of scenarios into shards of about equal duration.

Machines do not talk to each other: a shard follows from names and recorded durations alone. Each
name prefers shards in an order of its own (hashing with bounded loads) and takes the first that
has room, long scenarios first. Durations and the room are rounded to steps, so that a scenario that
comes, goes or takes a little longer moves few others.
"""

import math
from collections.abc import Collection, Mapping
from hashlib import blake2b
from statistics import median
from typing import Final

DEFAULT_SECONDS: Final = 1.0
MIN_SECONDS: Final = 0.02
"""Seconds that a scenario costs at least, whatever was recorded."""
STEPS_PER_DOUBLING: Final = 4
"""Rounding of durations: to one of so many steps between a duration and its double."""
SPARE_ROOM: Final = 1.1
"""The room of a shard, as a multiple of the mean, before it is rounded up by at most a step."""


def shards_of(names: Collection[str], seconds: Mapping[str, float], shards: int) -> dict[str, int]:
    """Return the shard of each name, from 1 to `shards`.

    `seconds` are recorded durations; a name without one counts as their median.
    """
    known = [seconds[name] for name in names if name in seconds]
    usual = median(known) if known else DEFAULT_SECONDS
    weights = {name: _round(max(seconds.get(name, usual), MIN_SECONDS)) for name in names}
    room = _round_up(SPARE_ROOM * sum(weights.values()) / shards)
    strides = [stride for stride in range(1, shards + 1) if math.gcd(stride, shards) == 1]
    loads = [0.0] * shards
    division: dict[str, int] = {}
    for name in sorted(weights, key=lambda name: (-weights[name], _hash(name), name)):
        first, stride = _hash(name) % shards, strides[_hash(f"stride {name}") % len(strides)]
        preferred = ((first + index * stride) % shards for index in range(shards))
        fitting = (shard for shard in preferred if loads[shard] + weights[name] <= room)
        shard = next(fitting, None)
        if shard is None:  # It is longer than the room, or all are nearly full.
            shard = loads.index(min(loads))
        loads[shard] += weights[name]
        division[name] = shard + 1
    return division


def _round(value: float) -> float:
    return 2.0 ** (round(math.log2(value) * STEPS_PER_DOUBLING) / STEPS_PER_DOUBLING)


def _round_up(value: float) -> float:
    steps = 4 * STEPS_PER_DOUBLING
    return 2.0 ** (math.ceil(math.log2(value) * steps) / steps) if value else 0.0


def _hash(text: str) -> int:
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")
