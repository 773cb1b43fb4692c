"""The message that a wait of the run was for: what it named can be said again."""

from typing import Any

from harness.protocol.values import arr, dig, obj, text
from harness.scenario.from_trace.references import References
from harness.scenario.from_trace.story import Story
from harness.scenario.paths import fits
from harness.trace.frame import Direction, Frame, Kind

_KINDS = {"notification": Kind.NOTIFICATION, "request": Kind.REQUEST}


class Heard:
    """Messages that the waits of a run took so far."""

    def __init__(self, story: Story, refs: References) -> None:
        self._story = story
        self._refs = refs
        self._taken: set[int] = set()

    def learn(self, wait: Any) -> None:
        """A wait begins: note what it takes, and what is in it under the name that it gives."""
        kind = next((one for one in (*_KINDS, "message") if one in obj(wait)), "")
        frame = next((one for one in self._story.frames if self._fits(one, kind, wait)), None)
        if not kind or frame is None:
            return
        self._taken.add(frame.seq)
        name = text(wait.get("as"))
        if name:
            self._refs.learn(lambda: name, frame.json if kind == "message" else frame.params)

    def _fits(self, frame: Frame, kind: str, wait: Any) -> bool:
        if frame.direction is Direction.TO_TARGET or frame.seq in self._taken:
            return False
        if kind == "message":
            return self._has(frame.json, wait["message"])
        named = wait.get(kind)
        methods = [named] if isinstance(named, str) else arr(named)
        return (
            frame.kind is _KINDS.get(kind)
            and frame.method in methods
            and self._has(frame.params, wait.get("where"))
        )

    def _has(self, value: Any, where: Any) -> bool:
        named = {path: one for path, one in obj(where).items() if text(one).startswith("$")}
        plain = {path: one for path, one in obj(where).items() if path not in named}
        return fits(value, plain) and all(
            self._is(dig(value, *path.split(".")), one) for path, one in named.items()
        )

    def _is(self, found: Any, name: str) -> bool:
        """Return whether a value is what came back under a name."""
        known = isinstance(found, str) and self._refs.knows(found)
        return known and self._refs.named(found).split(".")[0] == name.split(".")[0]
