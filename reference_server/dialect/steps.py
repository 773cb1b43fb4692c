"""Messages of the server by their steps.

A step is the name of a message: its method, `METHOD result` for an answer, with the type of the
item or the status after it (`item/started plan`, `thread/status/changed idle`, `turn/completed
failed`). A row names steps by their first words.
"""

from typing import Any, cast

from reference_server.envelope import ASIDE

Message = dict[str, Any]
STATUS = "thread/status/changed"
ACTIVE = f"{STATUS} active"
_TURN_COMPLETED = "turn/completed"
_ITEM_COMPLETED = "item/completed"
_ITEM = "item/"


class Written:
    """A message of the server with its step, and the params of the request that it answers.

    `body` is the params of a notification or request; of an answer the result, with the ids asked.
    With `is_aside` the client is not subscribed to the thread.
    """

    __slots__ = ("body", "is_aside", "message", "params", "step")

    def __init__(
        self, message: Message, step: str, body: dict[str, Any], params: Any = None
    ) -> None:
        self.is_aside = False
        self.message = message
        self.step = step
        self.body = body
        self.params = params


def notification_of(message: Message, method: str) -> Written:
    """Return a notification as a message of its step."""
    params: dict[str, Any] | None = message.get("params")
    body = params if isinstance(params, dict) else {}
    return Written(message, _step_of(method, body), body)


def aside_of(notification: Written) -> Written:
    """Return a notification of a thread to which the client is not subscribed.

    Its step has no words of rows, so that no other message is ordered by it.
    """
    aside = Written(notification.message, ASIDE + notification.step, notification.body)
    aside.is_aside = True
    return aside


def request_of(message: Message, method: str) -> Written:
    """Return a request of the server as a message of its step."""
    return Written(message, f"{method} request", object_of(message.get("params")))


def answer_of(message: Message, method: str, params: Any) -> Written:
    """Return the answer to a request as a message of its step."""
    asked = object_of(params)
    ids = {name: asked[name] for name in ("threadId", "turnId") if isinstance(asked.get(name), str)}
    step = f"{method} {'error' if 'error' in message else 'result'}"
    return Written(message, step, {**ids, **object_of(message.get("result"))}, params)


def begins(step: str, name: str) -> bool:
    """Return whether a step has the words of `name` first; False if there are none."""
    return step.startswith(name) and bool(name) and (step == name or step[len(name)] == " ")


def begins_with_one(step: str, names: tuple[str, ...]) -> bool:
    """Return whether a step begins with one of the names."""
    # Seldom one does: then one test is enough.
    return step.startswith(names) and any(begins(step, name) for name in names)


def item_id_of(body: Message) -> Any:
    """Return the id of the item of a body, None if it has none."""
    return object_of(body.get("item")).get("id")


def thread_id_of(body: Message) -> Any:
    """Return the id of the thread that a body has, None if it has none."""
    return object_of(body.get("thread")).get("id")


def object_of(value: Any) -> dict[str, Any]:
    """Return a value that is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _step_of(method: str, params: Message) -> str:
    if method.startswith(_ITEM):
        item: Message | None = params.get("item")
        if not isinstance(item, dict):
            return method
        kind = item.get("type")
        step = f"{method} {kind}" if kind else method
        status = item.get("status") if method == _ITEM_COMPLETED else None
        return f"{step} {status}" if status else step
    if method == STATUS:
        status = object_of(params.get("status"))
        flags = status.get("activeFlags")
        step = f"{method} {status.get('type')}"
        return " ".join([step, *flags]) if flags else step
    if method == _TURN_COMPLETED:
        return f"{method} {object_of(params.get('turn')).get('status')}"
    return method
