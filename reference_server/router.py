"""Routing of requests to their handlers."""

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic import ValidationError

from harness.protocol.wire.base import Json, WireModel
from harness.protocol.wire.methods import BY_METHOD, Direction, Scope
from harness.protocol.wire.rpc import ErrorCode
from reference_server.brief import brief, brief_value
from reference_server.call import Call
from reference_server.connection import Connection
from reference_server.envelope import IncomingRequest
from reference_server.extra_methods import FindExtraMethod, no_extra_method
from reference_server.handlers import handler_of
from reference_server.handlers.registry import AnyHandler
from reference_server.lanes import Lanes
from reference_server.limits import LimitExceeded, check_lists
from reference_server.refusal import (
    Refusal,
    describe_disk_error,
    invalid_request,
    unknown_method,
)
from reference_server.scripted_answers import (
    NO_ANSWERS,
    ScriptedAnswer,
    ScriptedAnswers,
    send_answer,
)

if TYPE_CHECKING:
    from reference_server.services import Services

_log = logging.getLogger(__name__)
_WORDS_LIMIT = 400
"""Characters of the validator's message, which lists all allowed values and the wrong one."""


class _Method(NamedTuple):
    """The order in which a method is carried out, the model of its params, and its handler.

    `malformed` is the error code of params that do not fit the model.
    """

    scope: Scope
    params: type[WireModel]
    handler: AnyHandler
    malformed: ErrorCode = ErrorCode.INVALID_PARAMS


class Router:
    """Router of the requests of all connections.

    `services` is called with the first request that needs it: making the services takes a while.
    """

    def __init__(
        self,
        lanes: Lanes,
        services: "Callable[[], Services]",
        *,
        requires_initialize: bool,
        answers: ScriptedAnswers = NO_ANSWERS,
        find_extra: FindExtraMethod = no_extra_method,
    ) -> None:
        self._lanes = lanes
        self._answers = answers
        self._find_extra = find_extra
        self._services = services
        self._requires_initialize = requires_initialize

    async def route(self, connection: Connection, request: IncomingRequest) -> None:
        """Carry a request out, or queue it; it is answered unless a scenario says otherwise."""
        if self._is_admitted(connection, request.method):
            answer = self._answers.take(request.method)
            if answer is not None:
                self._give(connection, request, answer)
                return
        call = Call(connection, request, self._services)
        try:
            scope, model, handler, malformed = self._find(connection, request.method)
            params = check_params(model, request.params, malformed)
        except Refusal as refusal:
            call.refuse(refusal.code, refusal.message)
            return
        connection.in_use = True
        job = partial(_carry_out, call, handler, params)
        lane: Json = getattr(params, "thread_id", None)
        if scope is Scope.THREAD and isinstance(lane, str):
            connection.begin_request()
            self._lanes.submit(lane, partial(_run_request, connection, job))
        elif scope is Scope.NONE:
            connection.begin_request()
            self._lanes.run_at_once(partial(_run_request, connection, job))
        else:
            await job()

    def _give(
        self, connection: Connection, request: IncomingRequest, answer: ScriptedAnswer
    ) -> None:
        connection.in_use = True
        if not answer.is_held:
            connection.begin_request()
            job = partial(send_answer, connection, request, answer)
            self._lanes.run_at_once(partial(_run_request, connection, job))

    def _is_admitted(self, connection: Connection, method: str) -> bool:
        """Return whether a client may send a request now."""
        is_early = self._requires_initialize and not connection.initialized
        return method == "initialize" or not is_early

    def _find(self, connection: Connection, method: str) -> _Method:
        """Return how a method is carried out. Raises Refusal if it is unknown or too early."""
        spec = BY_METHOD.get(method)
        found: _Method | None = None
        if spec is None:
            extra = self._find_extra(method)
            if extra is not None:
                found = _Method(Scope.NONE, extra.params, extra.handler, extra.malformed)
        elif spec.direction is Direction.CLIENT_REQUEST:
            # Not for an unknown method: looking for its handler would import all of them.
            handler = handler_of(method)
            if handler is not None:
                found = _Method(spec.scope, spec.params, handler)
        if found is None:
            raise unknown_method(brief_value(method))
        if not self._is_admitted(connection, method):
            raise invalid_request("Not initialized")
        return found


async def _run_request(connection: Connection, job: "partial[Any]") -> None:
    try:
        await job()
    finally:
        connection.end_request()


async def _carry_out(call: Call, handler: AnyHandler, params: WireModel) -> None:
    try:
        await handler(call, params)
        if not call.answered:
            raise RuntimeError("the handler gave no answer")
    except Refusal as refusal:
        call.refuse(refusal.code, refusal.message)
    except OSError as error:
        _log.warning("%s failed: %s", call.method, error)
        if not call.answered:
            call.refuse(ErrorCode.INTERNAL_ERROR, describe_disk_error(error))
    except Exception as error:
        _log.exception("%s failed", call.method)
        if not call.answered:
            call.refuse(ErrorCode.INTERNAL_ERROR, f"internal error: {type(error).__name__}")


def check_params(
    model: type[WireModel], params: Json, malformed: ErrorCode = ErrorCode.INVALID_PARAMS
) -> WireModel:
    """Return the params as a method's model; null counts as {}.

    Raises Refusal with the code `malformed` if they do not fit it.
    """
    fields: Json = {} if params is None else params
    if not isinstance(fields, dict):
        raise Refusal(malformed, "params: must be an object")
    try:
        check_lists(fields)
        return model.parse(fields)
    except LimitExceeded as error:
        raise Refusal(malformed, str(error)) from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        field = field_path(first["loc"], cast("dict[str, Any]", fields))
        message = f"{brief(field)}: {brief(first['msg'], _WORDS_LIMIT)}"
        raise Refusal(malformed, message) from error


def field_path(location: tuple[int | str, ...], value: Json) -> str:
    """Return the path of a field, such as `input[0].text`; "params" for an empty one.

    The validator's location also names the union member that it tried; the JSON has no such step,
    so it is left out.
    """
    path = ""
    for position, step in enumerate(location):
        is_last = position == len(location) - 1
        if isinstance(step, int):
            path += f"[{step}]"
            value = cast("list[Any]", value)[step] if isinstance(value, list) else None
        elif is_last or _has_container(value, step):
            path += f".{step}" if path else step
            value = cast("dict[str, Any]", value).get(step) if isinstance(value, dict) else None
    return path or "params"


def _has_container(value: Json, name: str) -> bool:
    """Return whether `value` has an object or array `name`; if not, it names a union's member."""
    inner: Json = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return isinstance(inner, dict | list)
