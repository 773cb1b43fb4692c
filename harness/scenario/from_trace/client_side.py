"""The client's steps of a scenario, from the messages of a trace's client and their order."""

import itertools
from typing import Any, Final

from harness.protocol.values import arr, dig, obj, text
from harness.scenario.client_steps import result_has
from harness.scenario.from_trace.answers import answer_body, question_of
from harness.scenario.from_trace.connections import ConnectionNames
from harness.scenario.from_trace.conversion_state import ConversionState
from harness.scenario.from_trace.item_parts import Conversion
from harness.scenario.from_trace.model_side import ModelSide
from harness.scenario.from_trace.odd_messages import initialize_note, raw_content
from harness.scenario.from_trace.overlap import (
    GREETING_METHODS,
    accepted_ends,
    has_spoken_before,
    overlaps_earlier_request,
    sent_more_before,
    starts_beside_a_turn,
)
from harness.scenario.from_trace.references import References
from harness.scenario.from_trace.settings import SETTINGS, common_settings, setting_of
from harness.scenario.from_trace.setup import TraceHead, waited_for_answer
from harness.scenario.from_trace.story import Story, Turn
from harness.scenario.from_trace.turn_state import (
    is_server_busy,
    last_message_of_turn,
    was_interrupted,
)
from harness.scenario.from_trace.waited_messages import WaitedMessages
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import (
    Closed,
    FileSeen,
    FileWritten,
    GateOpened,
    HomeSearched,
    MarkBody,
    ModelListens,
    RecorderNote,
    ServerEnded,
    Setup,
    StepBegins,
)
from harness.trace.trace import Mark

Step = dict[str, Any]
_COMPACTION: Final = {"item.type": "contextCompaction"}


class ClientSide:
    """Converter of the client's messages to steps; `settings` are those common to all threads."""

    def __init__(
        self,
        story: Story,
        conversion: Conversion,
        model: ModelSide,
        head: TraceHead,
        *,
        is_recording: bool,
    ) -> None:
        self._story = story
        self._head = head
        self._conversion = conversion
        self._model = model
        self._is_recording = is_recording
        self._refs = References()
        self._waited_messages = WaitedMessages(story, self._refs)
        self._state = ConversionState()
        self._connections = ConnectionNames(head, conversion, self._add)
        self._gate_count = self._last_number = 0
        self._aliases: dict[int, Step] = {}
        self.settings = common_settings(story, is_recording=is_recording)
        self._make_steps()

    @property
    def client(self) -> list[Step]:
        """Return the steps of the file's `client`."""
        return self._state.steps

    @property
    def setup(self) -> list[Step]:
        """Return the steps of the file's `setup`, which only prepare."""
        return self._state.setup

    @property
    def turns(self) -> dict[tuple[str, str], str]:
        """Return the alias of each turn, keyed by thread id and turn id."""
        return self._state.turns

    @property
    def threads(self) -> dict[str, str]:
        """Return the alias of each thread, keyed by thread id."""
        return self._state.threads

    def _make_steps(self) -> None:
        marks = sorted(self._story.marks, key=lambda mark: mark.after)
        next_mark = 0
        for frame in self._story.frames:
            while next_mark < len(marks) and marks[next_mark].after < frame.seq:
                self._on_mark(marks[next_mark])
                next_mark += 1
            if frame.direction is Direction.TO_TARGET:
                self._on_client_frame(frame)
            else:
                self._on_server_frame(frame)
        for mark in marks[next_mark:]:
            self._on_mark(mark)
        end = self._story.frames[-1].seq + 1 if self._story.frames else 0
        self._wait_for_seen(end, None, "")
        self._add_open()

    # Adding steps.
    def _add(self, step: Step) -> Step:
        (self._state.setup if self._state.in_setup else self._state.steps).append(step)
        return step

    def _add_open(self) -> None:
        if self._state.open_gate:
            gate, self._state.open_gate = self._state.open_gate, ""
            self._add({"open": gate})

    def _on_mark(self, mark: Mark[MarkBody]) -> None:
        match mark.body:
            case Setup(active=active):
                self._state.in_setup = active
            case StepBegins():
                if step := self._head.begin_step(mark.body):
                    self._waited_messages.take_message(obj(step.get("wait")))
                    self._add(step)
            case GateOpened(gate=gate):
                if self._head.has_steps:
                    self._add({"open": gate})
            case ServerEnded() | Closed() | ModelListens() if self._head.has_steps:
                pass  # The head has the steps.
            case ServerEnded(killed=killed):
                self._wait_for_seen(mark.after + 1, None, "")
                if killed:
                    self._add({"kill": True})
                self._connections.note_server_end()
            case RecorderNote(server_ended=True):
                self._connections.note_server_end()
            case Closed(connection=connection):
                self._add_disconnect(connection, mark.after + 1)
            case ModelListens(listening=listening):
                self._wait_for_seen(mark.after + 1, None, "")
                self._add({"model_listens": listening})
            case FileWritten(path=path, exists=exists, text=content):
                self._add_file_step(path, content, exists=exists, before=mark.after < 0)
            case FileSeen(path=path):
                self._add({"look_at": {"path": self._scenario_path(path)}})
            case HomeSearched(texts=texts):
                searched = [self._refs.with_names(text_value) for text_value in texts]
                self._add({"search_home": {"texts": searched}})
            case _:
                pass

    def _add_disconnect(self, connection: str, seq: int) -> None:
        server_ends = [
            item.body
            for item in self._story.marks
            if item.after == seq - 1 and isinstance(item.body, ServerEnded)
        ]
        if server_ends or not self._connections.is_open(connection):
            return
        if not self._is_recording or any(frame.seq >= seq for frame in self._story.frames):
            # Before the end is noted: of closed connections nothing is waited for.
            self._wait_for_seen(seq, None, connection)
            self._connections.add_disconnect(connection)
        self._connections.note_end(connection)

    def _add_file_step(self, path: str, content: str | None, *, exists: bool, before: bool) -> None:
        local = self._scenario_path(path)
        if self._head.has_steps and (not self._head.has_begun_step or (exists and content is None)):
            return  # The trace's head holds the file.
        if before and exists and content is not None and local.startswith("{cwd}/"):
            self._conversion.files[local.removeprefix("{cwd}/")] = content
        elif exists and content is not None:
            self._add({"write_file": {"path": local, "text": content}})
        elif not exists:
            self._add({"remove_file": {"path": local}})
        else:
            self._conversion.add_note(f"the bytes of {local}, which was written here, are no text")

    def _scenario_path(self, path: str) -> Any:
        if self._refs.knows(path):
            return self._refs.with_names(path)
        return self._story.with_placeholders(path)

    def _with_names(self, value: Any) -> Any:
        return self._story.with_placeholders(self._refs.with_names(value))

    # Messages of the client.
    def _on_client_frame(self, frame: Frame) -> None:
        first = frame.connection not in self._connections
        if frame.method in GREETING_METHODS and (
            first or not has_spoken_before(self._story, frame)
        ):
            is_greeting = self._is_recording and frame.method == "initialize"
            if is_greeting and (note := initialize_note(frame)):
                self._conversion.add_note(note)
            self._connections.on_of(frame.connection)
            self._state.last_seq = frame.seq
            return
        if self._head.has_steps and self._head.step_name == "send_raw":
            on = self._connections.on_of(frame.connection)
            self._add({"send_raw": {**raw_content(frame), **on}})
        elif frame.kind in (Kind.RESPONSE, Kind.ERROR):
            if not self._head.has_steps:  # The head has the steps.
                self._add_answer(frame)
        else:
            on = self._connections.on_of(frame.connection)
            holds = self._wait_for_seen(frame.seq, frame, frame.connection)
            if frame.kind is Kind.REQUEST:
                self._add_request(frame, on)
            elif frame.kind is Kind.NOTIFICATION:
                params = (
                    {"params": self._with_names(frame.params)}
                    if "params" in obj(frame.json)
                    else {}
                )
                deliberate = {"deliberate": True} if frame.deliberate else {}
                self._add({"notify": {"method": frame.method, **params, **deliberate, **on}})
            else:
                self._add({"send_raw": {**raw_content(frame), **on}})
            if holds and frame.method != "turn/interrupt":
                self._add_open()
        self._state.last_seq = frame.seq

    def _add_request(self, frame: Frame, on: Step) -> None:
        answer = self._story.answer_to(frame)
        is_late = answer is None or self._sent_more_before(frame, answer)
        method = frame.method
        succeeded = answer is not None and answer.kind is Kind.RESPONSE and not is_late
        is_beside = not self._head.alias and starts_beside_a_turn(self._story, frame)
        overlaps = is_beside or (
            not self._head.has_steps and overlaps_earlier_request(self._story, frame)
        )
        if answer is not None and succeeded and not frame.deliberate and not is_beside:
            if self._add_start(frame, answer, on):
                return
            if not overlaps and self._add_change_of_turn(frame, on):
                return
        body: Step = {"method": method, **self._alias_member()}
        if "params" in obj(frame.json):
            body["params"] = self._with_names(self._params_for_any_target(frame))
        if frame.deliberate:
            body["deliberate"] = True
        if answer is None or is_late:
            body = {"as": self._new_alias("r"), **body, "wait": False, "expect": "any"}
            if answer is not None:
                self._state.unanswered_requests[body["as"]] = answer.seq
        elif method == "initialize":
            body["expect"] = "any"  # The player has sent one already.
        elif overlaps:
            # A server that handles the earlier request first may reject this one.
            body["expect"] = "any"
        elif answer.kind is Kind.ERROR:
            # Other servers need not reject a request that a recorded one rejected.
            body["expect"] = "any" if self._is_recording else "error"
        body |= on
        self._add({"request": body})
        if not is_beside:
            self._name_result(frame, answer, body)

    def _add_start(self, frame: Frame, answer: Frame, on: Step) -> bool:
        """Add the step for a request that started a thread or turn; return whether it did."""
        if frame.method == "thread/start" and text(dig(answer.result, "thread", "id")):
            self._add_start_thread(frame, answer, on)
            return True
        started = frame.method == "turn/start" and text(dig(answer.result, "turn", "id"))
        return bool(started) and self._add_start_turn(frame, answer, on)

    def _add_change_of_turn(self, frame: Frame, on: Step) -> bool:
        """Add the step for a request that interrupts or steers; return whether it did."""
        params = frame.params
        if frame.method == "turn/interrupt" and self._turn_alias(params) and len(params) == 2:
            self._add({"interrupt": {"turn": self._turn_alias(params), **on}})
            return True
        return frame.method == "turn/steer" and self._add_steer(frame, on)

    def _params_for_any_target(self, frame: Frame) -> Any:
        """Return a request's parameters; a recorded model is removed: targets differ in it."""
        params = frame.params
        if not self._is_recording or frame.method not in ("thread/resume", "thread/fork"):
            return params
        shortened = self._without_null(dict(obj(params)), frame.method)
        if shortened.pop("model", None) is not None:
            self._conversion.add_note(f"the model of {frame.method} is left to the target")
        return shortened

    def _name_result(self, frame: Frame, answer: Frame | None, body: Step) -> None:
        """Add `as` to a request: now for new threads and turns, else once a step refers to it."""
        if answer is None or answer.kind is not Kind.RESPONSE:
            return
        thread = text(dig(answer.result, "thread", "id"))
        turn = text(dig(answer.result, "turn", "id"))
        # If the head has the run's steps, values without a name there need none.
        may_name = "as" in body or not self._head.has_steps
        is_new_thread = thread not in self._state.threads
        if thread and may_name and is_new_thread and result_has(frame.method, "thread"):
            body.setdefault("as", self._new_alias("t", self._state.threads.values()))
            self._state.threads[thread] = body["as"]
        if turn and may_name and result_has(frame.method, "turn"):
            body.setdefault("as", self._new_alias("u", self._state.turns.values()))
            owner = text(dig(answer.result, "reviewThreadId")) or text(
                dig(frame.params, "threadId")
            )
            self._state.turns[owner, turn] = body["as"]

        self._refs.add_values(
            lambda: str(body.setdefault("as", self._new_alias("r"))), answer.result
        )

    def _sent_more_before(self, frame: Frame, answer: Frame) -> bool:
        if self._head.has_steps:
            return not waited_for_answer(self._story.marks, frame.seq, answer.seq)
        return sent_more_before(self._story, frame, answer)

    def _alias_member(self) -> Step:
        """Return the `as` member that the traced run gave to the step; {} if it had none."""
        return {"as": self._head.alias} if self._head.alias else {}

    def _new_alias(self, letter: str, used_names: Any = None) -> str:
        if used_names is None:
            used_names = self._head.names
            numbered = (f"{letter}{number}" for number in itertools.count(self._last_number + 1))
            name = next(alias for alias in numbered if alias not in used_names)
            self._last_number = int(name[len(letter) :])
            return name
        names = {*used_names, *self._head.names}
        numbered = (letter, *(f"{letter}{number}" for number in range(2, len(names) + 3)))
        return next(alias for alias in numbered if alias not in names)

    def _add_start_thread(self, frame: Frame, answer: Frame, on: Step) -> None:
        params = dict(obj(frame.params))
        if params.get("cwd") in self._story.cwds or self._is_recording:
            params.pop("cwd", None)
        for name in SETTINGS:
            requested = params.pop(name, None)
            setting = requested if requested is not None else setting_of(name, answer.result)
            if name == "model" and self._is_recording:
                if requested is not None:
                    self._conversion.add_note(f"the model {requested} is left to the target")
            elif setting is not None and setting != self.settings.get(name):
                params[name] = setting
        params = self._without_null(params, frame.method)
        alias = self._head.alias or self._new_alias("t", self._state.threads.values())
        self._state.threads[text(dig(answer.result, "thread", "id"))] = alias
        params_member = {"params": self._with_names(params)} if params else {}
        self._add({"start_thread": {"as": alias, **params_member, **on}})
        self._refs.add_values(lambda: alias, answer.result)

    def _add_start_turn(self, frame: Frame, answer: Frame, on: Step) -> bool:
        thread = text(dig(frame.params, "threadId"))
        if thread not in self._state.threads:
            return False
        params = dict(obj(frame.params))
        inputs = [dict(obj(entry)) for entry in arr(params.pop("input", []))]
        params.pop("threadId", None)
        if self._is_recording and params.get("cwd") in self._story.cwds:
            params.pop("cwd")
        if not self._is_recording and inputs and text(inputs[0].get("text")).startswith("[thread "):
            inputs = inputs[1:]  # The player's own marker of the thread.
        inputs = [{k: v for k, v in entry.items() if v not in (None, [])} for entry in inputs]
        input_member: Step = {"input": self._with_names(inputs)}
        if (
            len(inputs) == 1
            and inputs[0].keys() == {"type", "text"}
            and inputs[0]["type"] == "text"
        ):
            input_member = {"text": self._story.with_placeholders(inputs[0]["text"])}
        alias = self._head.alias or self._new_alias("u", self._state.turns.values())
        self._state.turns[thread, text(dig(answer.result, "turn", "id"))] = alias
        params = self._without_null(params, frame.method)
        if self._is_recording and params.pop("model", None) is not None:
            self._conversion.add_note("the model of a turn is left to the target")
        params_member = {"params": self._with_names(params)} if params else {}
        name = self._state.threads[thread]
        self._add(
            {"start_turn": {"thread": name, **input_member, "as": alias, **params_member, **on}}
        )
        self._refs.add_values(lambda: alias, answer.result)
        return True

    def _without_null(self, params: Step, method: str) -> Step:
        if nulls := sorted(name for name, value in params.items() if value is None):
            self._conversion.add_note(
                f"{method} was sent with null for {', '.join(nulls)}; they are left out"
            )
        return {name: value for name, value in params.items() if value is not None}

    def _turn_alias(self, params: Any) -> str:
        key = (text(dig(params, "threadId")), text(dig(params, "turnId")))
        return self._state.turns.get(key, "")

    def _add_steer(self, frame: Frame, on: Step) -> bool:
        params = obj(frame.params)
        key = (text(params.get("threadId")), text(params.get("expectedTurnId")))
        inputs = [obj(entry) for entry in arr(params.get("input"))]
        is_plain_text = len(inputs) == 1 and inputs[0].keys() <= {"type", "text", "text_elements"}
        if (
            key not in self._state.turns
            or not is_plain_text
            or set(params) - {"threadId", "expectedTurnId", "input"}
        ):
            return False
        self._conversion.needs["steering"] = None
        turn = self._state.turns[key]
        self._add(
            {
                "steer": {
                    "turn": turn,
                    "text": text(inputs[0].get("text")),
                    **on,
                    **self._alias_member(),
                }
            }
        )
        return True

    def _add_answer(self, frame: Frame) -> None:
        on = self._connections.on_of(frame.connection)
        question = question_of(self._story, frame)
        if question is None:
            self._add({"send_raw": {**raw_content(frame), **on}})
            return
        body = answer_body(self._story, self._conversion, frame, question)
        if "result" in body:
            body["result"] = self._with_names(body["result"])
        self._add({"answer": {**body, **on}})

    # Waits of the client.
    def _wait_for_seen(self, seq: int, request: Frame | None, connection: str) -> bool:
        """Add waits for all that the client saw before `seq`; return whether a gate is held."""
        if self._head.has_steps:
            return False
        for alias, answer_seq in list(self._state.unanswered_requests.items()):
            if answer_seq < seq:
                del self._state.unanswered_requests[alias]
                self._add({"wait": {"answer": alias}})
        for (thread, turn_id), turn in self._story.turns.items():
            key = (thread, turn_id)
            if turn.ends is None or turn.ends >= seq or key in self._state.ended_turns:
                continue
            self._state.ended_turns.add(key)
            if self._connections.is_closed(turn.connection):
                continue
            on = self._connections.on_of_open(turn.connection)
            if key in self._state.turns:
                self._add(
                    {
                        "wait": {
                            "turn": self._state.turns[key],
                            "status": accepted_ends(self._story, turn),
                            **on,
                        }
                    }
                )
            elif thread in self._state.threads:
                if turn.has_compacted:
                    # Some servers are idle until the compaction begins.
                    compaction = {"notification": "item/completed", "where": _COMPACTION, **on}
                    self._add({"wait": compaction})
                self._add({"wait": {"idle": self._state.threads[thread], **on}})
            self._add_open()
        if request is None:
            return False
        turn = self._story.turn_at(text(dig(request.params, "threadId")), seq)
        if turn is None or (request.method in ("turn/start", "") and turn.begins > seq):
            return False
        return self._hold_mid_turn(turn, seq)

    def _hold_mid_turn(self, turn: Turn, seq: int) -> bool:
        """Add a gate where the client acted during a turn; return whether it is held."""
        if was_interrupted(self._story, turn, seq):
            return False  # The server need not read the rest of the model's answer.
        if is_server_busy(self._story, turn, seq):
            self._add_open()
            message_wait = last_message_of_turn(self._story, turn, self._state.last_seq, seq)
            if message_wait is not None:
                self._add({"wait": message_wait})
            return False
        call = self._model.call_at(turn.thread, seq)
        if call is None or call.failure is not None:
            return False
        if self._state.open_gate:
            self._add_open()
        self._gate_count += 1
        gate = f"gate-{self._gate_count}"
        call.holds[seq] = gate
        self._add({"wait": {"gate": gate}})
        self._state.open_gate = gate
        return True

    def _on_server_frame(self, frame: Frame) -> None:
        self._connections.name_first(frame.connection)
