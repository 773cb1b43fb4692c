"""The dialect at work between a connection and its transport, in both directions.

A message that no row concerns passes as it is. A request that the text lacks reaches the server,
which does not know it; its error becomes the answer of the table. So a scenario that answers the
request itself comes first.
"""

from collections.abc import Iterator
from typing import Any, cast

from harness.protocol.dialects.table import Dialect, JoinRow, MethodRow, RefuseRow
from harness.protocol.wire.methods import BY_METHOD
from harness.protocol.wire.rpc import ErrorCode
from reference_server.dialect.ids import to_uuid, with_uuids
from reference_server.dialect.lines import decode_foreign, decode_own, encode_own
from reference_server.dialect.mappers import Mapper, Step
from reference_server.dialect.mapping import Compiler
from reference_server.dialect.memory import NOTED_AT_ONCE, Memory
from reference_server.dialect.placeholders import Conditions, filler
from reference_server.dialect.sequence import Sequencer
from reference_server.dialect.settings import Settings
from reference_server.dialect.steps import Written, answer_of, aside_of, notification_of, request_of
from reference_server.envelope import ASIDE
from reference_server.refusal import HIDDEN_METHOD, UNKNOWN_METHOD
from reference_server.transport.base import Incoming, Transport

Message = dict[str, Any]


class DialectTransport:
    """A transport whose peer speaks a release. `home` is the folder of settings that it is told."""

    def __init__(
        self, inner: Transport, dialect: Dialect, home: str, memory: Memory | None = None
    ) -> None:
        self._inner = inner
        self._dialect = dialect
        self.memory = memory or Memory()
        self._facts: dict[str, Any] = {
            "version": dialect.release,
            "home": home,
            "memory": self.memory,
            "settings": Settings(home, dialect.unknown_settings, dialect.unknown_note),
        }
        self._outgoing = Compiler(dialect, self._facts, outgoing=True)
        self._incoming = Compiler(dialect, self._facts, outgoing=False)
        self._notifications: dict[str, tuple[Mapper | None, list[Step]]] = {}
        self._requests: dict[Any, Message] = {}
        """Requests of the client that are not answered, by id."""
        self._server_requests: dict[Any, str] = {}
        """Methods of the server's requests that are not answered, by id."""
        self._unwanted: set[str] = set()
        """Notifications that the client does not want; the edge learns from them."""
        self._refusals: dict[str, list[tuple[RefuseRow, Conditions]]] = {}
        for row in dialect.refusals:
            conditions = Conditions.of_row(row.needs, (), self._facts)
            self._refusals.setdefault(row.method, []).append((row, conditions))
        self._sequencer = Sequencer(dialect, self._facts, self.memory, self._complete)

    @property
    def amount_read(self) -> int:
        """Return how much the peer has taken."""
        return self._inner.amount_read

    async def wait_for_end(self) -> None:
        """Wait until the peer has closed its side."""
        await self._inner.wait_for_end()

    async def receive(self) -> list[Incoming]:
        """Return the next messages, in the words of the text."""
        return [
            self._read(message) if isinstance(message, bytes) else message
            for message in await self._inner.receive()
        ]

    async def send(self, messages: list[bytes]) -> None:
        """Write all messages, in the words of the release. Raises PeerGone."""
        written: list[Written] = []
        for message in decode_own(messages):
            self._write(message, written)
        arranged = [one.message for one in self._sequencer.arrange(written)]
        if self._unwanted:
            arranged = [one for one in arranged if one.get("method") not in self._unwanted]
        if arranged:
            await self._inner.send(encode_own(arranged))

    def _read(self, line: bytes) -> bytes:
        """Return a line of the client in the words of the text; as it is if it is not a message."""
        try:
            value, encode = decode_foreign(line)
        except (ValueError, RecursionError):
            return line
        if not isinstance(value, dict):
            return line
        message = cast("Message", value)
        method, request_id = message.get("method"), message.get("id")
        if not isinstance(request_id, str | int | float | None):
            return line
        if isinstance(method, str):
            if request_id is not None:
                method = self._begin_request(request_id, method, message)
            mapper = self._params_mapper(method)
            if mapper is not None and "params" in message:
                message["params"] = mapper(message["params"])
        else:
            # An error ends the server's request too, and has nothing to map.
            spec = BY_METHOD.get(self._server_requests.pop(request_id, ""))
            if spec is None or spec.result is None or "result" not in message:
                return line
            self.memory.note_decision(request_id, message["result"])
            mapper = self._incoming.of_model(spec.result, spec.method)
            if mapper is not None:
                message["result"] = mapper(message["result"])
        return encode(message)

    def _begin_request(self, request_id: Any, method: str, message: Message) -> str:
        """Note a request, and name the method for the server; return that of its params."""
        row = self._dialect.methods.get(method)
        params = message.get("params")
        # The ids of these params stay as the client wrote them.
        kept = dict(cast("Message", params)) if isinstance(params, dict) else params
        # Of names that a client makes up nothing is kept: plans are by method.
        known = method if row is not None or method in BY_METHOD else ""
        self._requests[request_id] = {"method": known, "params": kept}
        refusal = self._refusal_of(method, params)
        if refusal:
            self._requests[request_id]["refusal"] = refusal
            message["method"] = HIDDEN_METHOD + method
            return method
        if isinstance(params, dict):
            self._requests[request_id]["undo"] = self.memory.note_request(
                method, cast("Message", params)
            )
        join = self._join_of(method, params)
        if join is not None:
            self._requests[request_id]["join"] = join
            message["method"] = join.via
            facts = {**self._facts, "params": kept}
            message["params"] = filler(join.params, facts)(cast("Message", kept))
            return join.via
        if row is not None and row.via:
            message["method"] = row.via
            if row.params is not None:
                facts = {**self._facts, "params": kept}
                message["params"] = filler(row.params, facts)({})
        elif row is not None and method in BY_METHOD:
            message["method"] = HIDDEN_METHOD + method
        if method == "initialize":
            self._begin(message.get("params"))
        return method

    def _join_of(self, method: str, params: Any) -> JoinRow | None:
        """Return the row by which a request joins the turn that runs in its thread, or None."""
        row = self._dialect.joins.get(method)
        if row is None or not isinstance(params, dict):
            return None
        thread_id = cast("Message", params).get("threadId")
        if not isinstance(thread_id, str):
            return None
        return row if self.memory.thread_fact("runningTurn", thread_id) else None

    def _begin(self, params: Any) -> None:
        """Note what the handshake says of the client."""
        members = cast("Message", params) if isinstance(params, dict) else {}
        client = members.get("clientInfo")
        client = cast("Message", client) if isinstance(client, dict) else {}
        self._facts["client"] = client.get("name") or "codex"
        self._facts["client_version"] = client.get("version") or "0"
        capabilities = members.get("capabilities")
        if isinstance(capabilities, dict):
            names = cast("Message", capabilities).get("optOutNotificationMethods")
            if isinstance(names, list):
                self._unwanted |= {
                    name for name in cast("list[Any]", names) if isinstance(name, str)
                }

    def _params_mapper(self, method: str) -> Mapper | None:
        row = self._dialect.methods.get(method)
        spec = BY_METHOD.get(row.via if row is not None and row.via else method)
        return None if spec is None else self._incoming.of_model(spec.params, method)

    def _refusal_of(self, method: str, params: Any) -> str:
        """Return the message with which the release refuses a word of the params, "" for none."""
        rows = self._refusals.get(method)
        if rows is None or not isinstance(params, dict):
            return ""
        for row, conditions in rows:
            word = cast("Message", params).get(row.name)
            if not isinstance(word, str) or (row.words and word.strip() not in row.words):
                continue
            if conditions.hold_for(cast("Message", params)):
                return row.message.replace("{word}", word)
        return ""

    def _write(self, message: Message, written: list[Written]) -> None:
        """Append the messages of the release for one of the text: none, one or several."""
        method = message.get("method")
        if method is None:
            written += self._answer(message)
            return
        is_request = "id" in message
        is_aside = method.startswith(ASIDE)
        if is_aside:
            method = message["method"] = method.removeprefix(ASIDE)
        if is_request:
            self._server_requests[message["id"]] = method
            self.memory.note_question(message["id"], method, message["params"])
        mapper, steps = self._of_notification(method)
        if mapper is not None:
            self._facts["message"] = message["params"]
            message["params"] = mapper(message["params"])
        if is_request:
            written.append(request_of(message, method))
            return
        for step in steps:
            step(message)
        notification = notification_of(message, method)
        if is_aside:
            written.append(aside_of(notification))
            return
        if method in NOTED_AT_ONCE:
            self.memory.note_at_once(notification.step, notification.body)
        written.append(notification)

    def _complete(self, message: Message) -> None:
        """Add the members around the params of a notification that the dialect adds."""
        for step in self._of_notification(message["method"])[1]:
            step(message)

    def _of_notification(self, method: str) -> tuple[Mapper | None, list[Step]]:
        found = self._notifications.get(method)
        if found is None:
            spec = BY_METHOD.get(method)
            mapper = None if spec is None else self._outgoing.of_model(spec.params, method)
            found = self._notifications[method] = (mapper, self._outgoing.envelope(method))
        return found

    def _answer(self, message: Message) -> Iterator[Written]:
        request = self._requests.pop(message.get("id"), None)
        method = "" if request is None else request["method"]
        params = None if request is None else request["params"]
        for answer in self._answers(message, request, method):
            if "method" in answer:
                yield notification_of(answer, answer["method"])
            else:
                yield answer_of(answer, method, params)

    def _answers(self, message: Message, request: Message | None, method: str) -> Iterator[Message]:
        row = self._dialect.methods.get(method)
        error = message.get("error")
        if request is not None and "refusal" in request:
            code = self._dialect.error_codes.get(ErrorCode.INVALID_PARAMS, ErrorCode.INVALID_PARAMS)
            error = {"code": code, "message": request["refusal"]}
            yield {"id": message["id"], "error": error}
            return
        if error is not None:
            if (
                row is not None
                and request is not None
                and not row.via
                and _is_unknown_method(error)
            ):
                yield from self._answer_by_row(message["id"], row, request)
                return
            if row is not None and row.own:
                # It is answered in the codes of the release already.
                yield message
                return
            undo = None if request is None else request.get("undo")
            if undo is not None:
                undo()
            code = error["code"]
            error["code"] = self._dialect.error_codes.get(code, code)
            error["message"] = with_uuids(error["message"])
        elif request is not None and "join" in request:
            join: JoinRow = request["join"]
            spec = BY_METHOD[join.via]
            assert spec.result is not None
            mapper = self._outgoing.of_model(spec.result, join.via)
            result = message["result"] if mapper is None else mapper(message["result"])
            yield {"id": message["id"], "result": filler(join.result, {"result": result})({})}
            return
        else:
            spec = BY_METHOD.get(row.via if row is not None and row.via else method)
            self._note_settings(method, request, message["result"])
            if method == "review/start" and request is not None:
                target = cast("Message", request["params"])["target"]["type"]
                self.memory.note_review(to_uuid(message["result"]["reviewThreadId"]), target)
            if spec is not None and spec.result is not None:
                self._facts["params"] = None if request is None else request["params"]
                self._facts["message"] = self._facts["params"]
                mapper = self._outgoing.of_model(spec.result, method)
                if mapper is not None:
                    message["result"] = mapper(message["result"])
            if row is not None and row.via and request is not None:
                yield from self._answer_by_row(message["id"], row, request, message["result"])
                return
        yield message

    def _note_settings(self, method: str, request: Message | None, result: Any) -> None:
        if method not in ("thread/start", "thread/resume", "thread/fork") or request is None:
            return
        thread_id = to_uuid(result["thread"]["id"])
        if method == "thread/fork":
            source = cast("Message", request["params"] or {}).get("threadId")
            model = self._facts["settings"].get("model")
            self.memory.note_fork(to_uuid(str(source)), thread_id, model)
        else:
            self.memory.note_settings(thread_id, result)
            if method == "thread/start":
                self.memory.note_blank(thread_id)

    def _answer_by_row(
        self, request_id: Any, row: MethodRow, request: Message, result: Any = None
    ) -> Iterator[Message]:
        facts = {**self._facts, "params": request["params"], "result": result}
        if row.error is not None:
            code, words = row.error
            words = filler(words, facts)({})
            yield {"id": request_id, "error": {"code": code, "message": words}}
        else:
            yield {"id": request_id, "result": filler(row.result, facts)({})}
        for method, params in row.notifications:
            message = {"method": method, "params": filler(params, facts)({})}
            self._complete(message)
            yield message


def _is_unknown_method(error: Message) -> bool:
    """Return whether this server does not know a method; an error of a scenario has other words."""
    is_code = error["code"] == ErrorCode.METHOD_NOT_FOUND
    return is_code and str(error["message"]).startswith(UNKNOWN_METHOD)
