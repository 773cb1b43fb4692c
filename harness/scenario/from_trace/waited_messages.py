"""Messages that satisfied the waits of a run: later steps can refer to their values."""

from typing import Any

from harness.protocol.values import arr, dig, obj, text
from harness.scenario.from_trace.references import References
from harness.scenario.from_trace.story import Story
from harness.scenario.paths import has_values
from harness.trace.frame import Direction, Frame, Kind

_KINDS = {"notification": Kind.NOTIFICATION, "request": Kind.REQUEST}


class WaitedMessages:
    """Messages that satisfied waits so far; their named values go to `refs`."""

    def __init__(self, story: Story, refs: References) -> None:
        self._story = story
        self._refs = refs
        self._taken_frames: set[int] = set()

    def take_message(self, wait: Any) -> None:
        """Take the next message that satisfies a wait; add its values if the wait has an alias."""
        kind = next((key for key in (*_KINDS, "message") if key in obj(wait)), "")
        frame = next(
            (frame for frame in self._story.frames if self._is_waited_for(frame, kind, wait)), None
        )
        if not kind or frame is None:
            return
        self._taken_frames.add(frame.seq)
        name = text(wait.get("as"))
        if name:
            self._refs.add_values(lambda: name, frame.json if kind == "message" else frame.params)

    def _is_waited_for(self, frame: Frame, kind: str, wait: Any) -> bool:
        if frame.direction is Direction.TO_TARGET or frame.seq in self._taken_frames:
            return False
        if kind == "message":
            return self._meets(frame.json, wait["message"])
        names = wait.get(kind)
        methods = [names] if isinstance(names, str) else arr(names)
        return (
            frame.kind is _KINDS.get(kind)
            and frame.method in methods
            and self._meets(frame.params, wait.get("where"))
        )

    def _meets(self, value: Any, conditions: Any) -> bool:
        references = {
            path: condition
            for path, condition in obj(conditions).items()
            if text(condition).startswith("$")
        }
        literals = {
            path: value for path, value in obj(conditions).items() if path not in references
        }
        return has_values(value, literals) and all(
            self._is_value_of(dig(value, *path.split(".")), name)
            for path, name in references.items()
        )

    def _is_value_of(self, value: Any, name: str) -> bool:
        """Return whether `value` came from the result to which the reference `name` points."""
        is_known = isinstance(value, str) and self._refs.knows(value)
        return is_known and self._refs.with_names(value).split(".")[0] == name.split(".")[0]
