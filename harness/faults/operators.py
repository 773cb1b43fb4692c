"""Changes of the frame that a fault picked. Each changes only the queue."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from harness.faults.queue import FrameQueue
from harness.faults.site import FaultSite, NotApplied
from harness.protocol.values import Path, show_path
from harness.trace.frame import Frame, Origin

# A change of a picked frame.
Operator: TypeAlias = Callable[[FrameQueue, Frame], None]
# A value that depends on the conversation and on the frame that was picked.
Value: TypeAlias = Callable[[FaultSite, Frame], Any]


def drop(queue: FrameQueue, frame: Frame) -> None:
    """Remove the frame from the queue."""
    queue.drop(frame)


def duplicate(queue: FrameQueue, frame: Frame) -> None:
    """Pass the frame on twice."""
    queue.duplicate(frame)


def cut(queue: FrameQueue, frame: Frame) -> None:
    """Cut the frame to the first half of its bytes."""
    queue.cut(frame)


def edit(*path: str | int, to: Any) -> Operator:
    """Return an operator that sets the value at a path. It raises `NotApplied` without a parent."""
    return rewrite(lambda message: put(message, path, to))


def edit_by(*path: str | int, value: Value) -> Operator:
    """Return an operator that sets the value at a path to one computed from the conversation."""

    def operate(queue: FrameQueue, frame: Frame) -> None:
        new = value(queue.site, frame)
        queue.alter(frame, lambda message: put(message, path, new))

    return operate


def remove(*path: str | int) -> Operator:
    """Return an operator that removes the value at a path. It raises `NotApplied` without one."""
    return rewrite(lambda message: _remove_at(message, path))


def rewrite(how: Callable[[Any], Any]) -> Operator:
    """Return an operator that replaces the message by the result of `how` on a copy."""
    return lambda queue, frame: queue.alter(frame, how)


def answer(**members: Any) -> Operator:
    """Return an operator that replaces an answer by one with the same id and these members."""
    return lambda queue, frame: queue.alter(frame, lambda _: {"id": frame.id, **members})


def answer_by(result: Value) -> Operator:
    """Return an operator that replaces an answer by a result computed from the conversation."""
    return lambda queue, frame: answer(result=result(queue.site, frame))(queue, frame)


def refuse(message: str, code: int = -32602) -> Operator:
    """Return an operator that replaces an answer by an error."""
    return answer(error={"code": code, "message": message})


def insert(message: Any, origin: Origin = Origin.TARGET) -> Operator:
    """Return an operator that inserts a message, or bytes, after the frame."""
    return lambda queue, frame: queue.insert(message, after=frame, origin=origin)


def insert_by(message: Value) -> Operator:
    """Return an operator that inserts a message computed from the conversation."""
    return lambda queue, frame: queue.insert(message(queue.site, frame), after=frame)


def rename_ids(value: Any, names: Mapping[str, str]) -> Any:
    """Return a copy of a JSON value with these names replaced where they are whole strings."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {key: rename_ids(item, names) for key, item in members.items()}
    if isinstance(value, list):
        return [rename_ids(item, names) for item in cast("list[Any]", value)]
    return names.get(value, value) if isinstance(value, str) else value


def put(message: Any, path: Path, value: Any) -> Any:
    """Set the value at a path; return the message. Raises `NotApplied` if the parent is missing."""
    if not path:
        return value
    try:
        _holder(message, path)[path[-1]] = value
    except (KeyError, IndexError, TypeError) as error:
        raise NotApplied(f"no place for {show_path(path)} in a message") from error
    return message


def _remove_at(message: Any, path: Path) -> Any:
    try:
        del _holder(message, path)[path[-1]]
    except (KeyError, IndexError, TypeError) as error:
        raise NotApplied(f"no {show_path(path)} in a message") from error
    return message


def _holder(message: Any, path: Path) -> Any:
    """Return the object or list that has the last step of the path."""
    for step in path[:-1]:
        message = message[step]
    return message
