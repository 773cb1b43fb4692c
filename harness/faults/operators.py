"""Changes of the frames that faults picked. Each changes the queue, and nothing else."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from harness.faults.queue import FrameQueue
from harness.faults.site import FaultSite, NotApplied
from harness.protocol.values import Path, show_path
from harness.trace.frame import Frame, Origin

# What is done with a frame that was picked.
Operator: TypeAlias = Callable[[FrameQueue, Frame], None]
# A value that depends on the conversation and on the frame that was picked.
Value: TypeAlias = Callable[[FaultSite, Frame], Any]


def drop(queue: FrameQueue, frame: Frame) -> None:
    """Do not pass it on."""
    queue.drop(frame)


def duplicate(queue: FrameQueue, frame: Frame) -> None:
    """Pass it on twice."""
    queue.duplicate(frame)


def cut(queue: FrameQueue, frame: Frame) -> None:
    """Pass on the first half of its bytes alone, as a line of its own."""
    queue.cut(frame)


def edit(*path: str | int, to: Any) -> Operator:
    """Set the value at a path. Raises `NotApplied` for a message that has no such place."""
    return rewrite(lambda message: put(message, path, to))


def edit_by(*path: str | int, value: Value) -> Operator:
    """Set the value at a path to one that depends on the conversation."""

    def operate(queue: FrameQueue, frame: Frame) -> None:
        new = value(queue.site, frame)
        queue.alter(frame, lambda message: put(message, path, new))

    return operate


def remove(*path: str | int) -> Operator:
    """Take the member or element at a path away; raises `NotApplied` where there is none."""
    return rewrite(lambda message: _removed(message, path))


def rewrite(how: Callable[[Any], Any]) -> Operator:
    """Replace the message by what `how` makes of a copy of it."""
    return lambda queue, frame: queue.alter(frame, how)


def answer(**members: Any) -> Operator:
    """Another answer to the same request: its id, and these members."""
    return lambda queue, frame: queue.alter(frame, lambda _: {"id": frame.id, **members})


def answer_by(result: Value) -> Operator:
    """Answer the same request with a result that depends on the conversation."""
    return lambda queue, frame: answer(result=result(queue.site, frame))(queue, frame)


def refuse(message: str, code: int = -32602) -> Operator:
    """Answer with an error in place of a success."""
    return answer(error={"code": code, "message": message})


def insert(message: Any, origin: Origin = Origin.TARGET) -> Operator:
    """Pass on a message, or bytes, behind it, on its connection."""
    return lambda queue, frame: queue.insert(message, after=frame, origin=origin)


def insert_by(message: Value) -> Operator:
    """Pass on a message that depends on the conversation."""
    return lambda queue, frame: queue.insert(message(queue.site, frame), after=frame)


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A JSON value with every string in it that is one of these names replaced."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: renamed(item, names) for key, item in members.items()}
    if isinstance(value, list):
        return [renamed(item, names) for item in cast("list[Any]", value)]
    return names.get(value, value) if isinstance(value, str) else value


def put(message: Any, path: Path, value: Any) -> Any:
    """The message with the value at a path set."""
    if not path:
        return value
    try:
        _holder(message, path)[path[-1]] = value
    except (KeyError, IndexError, TypeError) as error:
        raise NotApplied(f"no place for {show_path(path)} in a message") from error
    return message


def _removed(message: Any, path: Path) -> Any:
    try:
        del _holder(message, path)[path[-1]]
    except (KeyError, IndexError, TypeError) as error:
        raise NotApplied(f"no {show_path(path)} in a message") from error
    return message


def _holder(message: Any, path: Path) -> Any:
    """Return the object or list that holds the last step of the path."""
    for step in path[:-1]:
        message = message[step]
    return message
