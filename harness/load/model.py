"""The model of a load: the same answer at the same pace to each call, and the times it took.

Its answers depend on the call alone, so any number of threads share it, and it remembers nothing
but its times.
"""

import itertools
import re
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from anyio.abc import TaskGroup

from harness.load.operations import LONG, MARKER
from harness.model.encoder import Encoder
from harness.model.model import ScriptedModel
from harness.model.script import ModelStep
from harness.model.server import ModelServer, Receive, Send
from harness.model.wire.responses import ResponsesEncoder

_MARKER: Final = re.compile(rf"{MARKER}\d+-\d+({re.escape(' ' + LONG)})?".encode())
_FIRST: Final = "The first delta"
LONG_DELTAS: Final = 200
"""Deltas of an answer that is to be interrupted, at most a minute of them."""


@dataclass(frozen=True, slots=True)
class AnswerPace:
    """The pace of an answer: seconds to the first delta, number of deltas, seconds between them."""

    first: float = 0.05
    deltas: int = 10
    between: float = 0.01

    def step(self, *, long: bool) -> ModelStep:
        """Return the reply as a step of a script."""
        count = LONG_DELTAS if long else self.deltas
        between = max(self.between, 0.05) if long else self.between
        entries: list[Any] = [*_delay(self.first), f"{_FIRST}. "]
        for number in range(2, count + 1):
            entries += [*_delay(between), f"Delta {number}. "]
        return ModelStep.model_validate({"reply": [{"message": {"deltas": entries}}]})


def _delay(seconds: float) -> list[Any]:
    return [{"delay": {"seconds": seconds}}] if seconds > 0 else []


@dataclass(slots=True)
class ModelTimes:
    """Seconds of the model in one turn: until its first delta, and in all."""

    first: float = 0.0
    total: float = 0.0


@dataclass(slots=True)
class _Call:
    began: float = field(default_factory=monotonic)
    first: float = 0.0


class LoadModel(ModelServer):
    """Server of the model; `times` has those of each turn by the marker in its prompt."""

    def __init__(self, tasks: TaskGroup, pace: AnswerPace, *, port: int = 0) -> None:
        super().__init__(tasks, port=port)
        self.times: dict[str, ModelTimes] = {}
        self._steps = {long: pace.step(long=long) for long in (False, True)}
        self._numbers = itertools.count(1)

    async def reply(self, body: bytes, wire: Encoder, receive: Receive, send: Send) -> None:
        """Answer a call, and note its times."""
        call, marker = _Call(), _last_marker(body)

        async def watch(message: Any) -> None:
            if not call.first and _FIRST.encode() in message.get("body", b""):
                call.first = monotonic() - call.began
            await send(message)

        await super().reply(body, wire, receive, watch)
        times = self.times.setdefault(marker.removesuffix(f" {LONG}"), ModelTimes())
        times.first = times.first or call.first
        times.total += monotonic() - call.began

    def model_of(self, body: bytes, wire: Encoder) -> ScriptedModel:
        """Return a model for this call alone, since a shared one remembers each call."""
        step = self._steps[_last_marker(body).endswith(LONG)]
        return ScriptedModel([step], ResponsesEncoder(), numbers=self._numbers)


def _last_marker(body: bytes) -> str:
    """Return the last marker in a call, "" if it has none: earlier prompts stand before it."""
    matches = [match[0] for match in _MARKER.finditer(body)]
    return matches[-1].decode() if matches else ""
