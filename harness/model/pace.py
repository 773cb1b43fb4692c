"""The speed of a model's stream: a wait before each piece, drawn from a seed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

import anyio
from pydantic import Field

from harness.model.strict import Strict

CHARACTERS_PER_TOKEN: Final = 4
MAX_PACE_SECONDS: Final = 30.0
"""Maximum seconds that all waits of one answer take."""
Sleep = Callable[[float], Awaitable[None]]


class Pace(Strict):
    """`pace: {tokens_per_second: 50, jitter: 0.2}`: the speed from this step of a script on.

    Four characters count as a token, and a piece as one at least. `jitter` is the part by which a
    wait may be shorter or longer; `seed` and the number of the call give the draws.
    """

    tokens_per_second: float = Field(gt=0, le=100_000)
    jitter: float = Field(default=0, ge=0, le=1)
    seed: int = 1

    def seconds_of(self, characters: int) -> float:
        """Return the wait before a piece, without jitter."""
        return max(1.0, characters / CHARACTERS_PER_TOKEN) / self.tokens_per_second


async def sleep(seconds: float) -> None:
    """Wait that long: with `Delay`, the model's only wait that depends on time."""
    with anyio.move_on_after(seconds):
        await anyio.sleep_forever()


@dataclass(slots=True)
class Pacer:
    """The waits of one answer; `left` are the seconds that they may still take."""

    pace: Pace
    number: int
    sleep: Sleep
    left: float = MAX_PACE_SECONDS
    _random: Random = field(init=False)

    def __post_init__(self) -> None:
        """Seed the draws."""
        self._random = Random(f"{self.pace.seed} {self.number}")

    async def wait(self, characters: int) -> None:
        """Wait before a piece of that many characters."""
        drawn = 1 + self.pace.jitter * self._random.uniform(-1, 1)
        seconds = min(self.left, self.pace.seconds_of(characters) * drawn)
        self.left -= seconds
        if seconds > 0:
            await self.sleep(seconds)
