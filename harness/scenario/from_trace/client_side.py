"""The client's steps of a scenario, from what the client of a trace sent and when."""

import itertools
from dataclasses import dataclass, field
from typing import Any, Final

from harness.protocol.values import arr, dig, obj, text
from harness.scenario.client_steps import gives
from harness.scenario.from_trace.answers import answer_body, question_of
from harness.scenario.from_trace.connections import Lines
from harness.scenario.from_trace.given import Given, waited_for
from harness.scenario.from_trace.heard import Heard
from harness.scenario.from_trace.holding import is_busy, last_told, was_interrupted
from harness.scenario.from_trace.model_side import ModelSide
from harness.scenario.from_trace.overlap import (
    GREETING,
    overlaps_an_earlier_one,
    spoke_before,
    went_on_before,
)
from harness.scenario.from_trace.references import References
from harness.scenario.from_trace.settings import SETTINGS, common_settings, setting_of
from harness.scenario.from_trace.story import Story, Turn
from harness.scenario.from_trace.told_items import Workshop
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
_COMPACTED: Final = {"item.type": "contextCompaction"}


@dataclass(slots=True)
class Acting:
    """State while the client's messages are turned into steps, one after the other."""

    steps: list[Step] = field(default_factory=list[Step])
    setup: list[Step] = field(default_factory=list[Step])
    in_setup: bool = False
    threads: dict[str, str] = field(default_factory=dict[str, str])
    turns: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    ended: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    unanswered: dict[str, int] = field(default_factory=dict[str, int])
    at: int = -1
    open_gate: str = ""


class ClientSide:
    """Makes the steps. `settings` are those of all threads, `turns` the names of the turns."""

    def __init__(
        self, story: Story, shop: Workshop, model: ModelSide, given: Given, *, recorded: bool
    ) -> None:
        self._story = story
        self._given = given
        self._shop = shop
        self._model = model
        self._recorded = recorded
        self._refs = References()
        self._heard = Heard(story, self._refs)
        self._now = Acting()
        self._lines = Lines(given, shop, self._add)
        self._gates = 0
        self._named = 0
        self._aliases: dict[int, Step] = {}
        self.settings = common_settings(story, recorded=recorded)
        self._play()

    @property
    def client(self) -> list[Step]:
        """The steps that are judged."""
        return self._now.steps

    @property
    def setup(self) -> list[Step]:
        """Those that only prepare."""
        return self._now.setup

    @property
    def turns(self) -> dict[tuple[str, str], str]:
        """(thread, turn) -> its name in the file."""
        return self._now.turns

    @property
    def threads(self) -> dict[str, str]:
        """Thread -> its name in the file."""
        return self._now.threads

    def _play(self) -> None:
        marks = sorted(self._story.marks, key=lambda mark: mark.after)
        at = 0
        for frame in self._story.frames:
            while at < len(marks) and marks[at].after < frame.seq:
                self._mark(marks[at])
                at += 1
            if frame.direction is Direction.TO_TARGET:
                self._sent(frame)
            else:
                self._learn(frame)
        for mark in marks[at:]:
            self._mark(mark)
        last = self._story.frames[-1].seq + 1 if self._story.frames else 0
        self._wait_until(last, None, "")
        self._open()

    # What is written.

    def _add(self, step: Step) -> Step:
        (self._now.setup if self._now.in_setup else self._now.steps).append(step)
        return step

    def _open(self) -> None:
        if self._now.open_gate:
            gate, self._now.open_gate = self._now.open_gate, ""
            self._add({"open": gate})

    def _mark(self, mark: Mark[MarkBody]) -> None:
        match mark.body:
            case Setup(active=active):
                self._now.in_setup = active
            case StepBegins():
                if step := self._given.begins(mark.body):
                    self._heard.learn(obj(step.get("wait")))
                    self._add(step)
            case GateOpened(gate=gate):
                if self._given.exact:
                    self._add({"open": gate})
            case ServerEnded() | Closed() | ModelListens() if self._given.exact:
                pass  # The head has the steps.
            case ServerEnded(killed=killed):
                self._wait_until(mark.after + 1, None, "")
                if killed:
                    self._add({"kill": True})
                self._lines.server_ended()
            case RecorderNote(server_ended=True):
                self._lines.server_ended()
            case Closed(connection=connection):
                self._closed(connection, mark.after + 1)
            case ModelListens(listening=listening):
                self._wait_until(mark.after + 1, None, "")
                self._add({"model_listens": listening})
            case FileWritten(path=path, exists=exists, text=content):
                self._file(path, content, exists=exists, before=mark.after < 0)
            case FileSeen(path=path):
                self._add({"look_at": {"path": self._path(path)}})
            case HomeSearched(texts=texts):
                self._add({"search_home": {"texts": [self._refs.named(one) for one in texts]}})
            case _:
                pass

    def _closed(self, connection: str, seq: int) -> None:
        following = [
            one.body
            for one in self._story.marks
            if one.after == seq - 1 and isinstance(one.body, ServerEnded)
        ]
        if following or not self._lines.end(connection):
            return
        if not self._recorded or any(one.seq >= seq for one in self._story.frames):
            self._wait_until(seq, None, connection)
            self._lines.disconnect(connection)

    def _file(self, path: str, content: str | None, *, exists: bool, before: bool) -> None:
        local = self._path(path)
        if self._given.exact and (not self._given.has_begun or (exists and content is None)):
            return  # It stands in the head of the trace.
        if before and exists and content is not None and local.startswith("{cwd}/"):
            self._shop.files[local.removeprefix("{cwd}/")] = content
        elif exists and content is not None:
            self._add({"write_file": {"path": local, "text": content}})
        elif not exists:
            self._add({"remove_file": {"path": local}})
        else:
            self._shop.note(f"the bytes of {local}, which was written here, are no text")

    def _path(self, path: str) -> Any:
        if self._refs.knows(path):
            return self._refs.named(path)
        return self._story.placed(path)

    def _said(self, value: Any) -> Any:
        return self._story.placed(self._refs.named(value))

    # What the client did.

    def _sent(self, frame: Frame) -> None:
        first = frame.connection not in self._lines
        if frame.method in GREETING and (first or not spoke_before(self._story, frame)):
            if frame.method == "initialize":
                self._greeted(frame)
            self._lines.on(frame.connection)
            self._now.at = frame.seq
            return
        if self._given.exact and self._given.name == "send_raw":
            self._raw(frame, self._lines.on(frame.connection))
        elif frame.kind in (Kind.RESPONSE, Kind.ERROR):
            if not self._given.exact:  # The head has the steps.
                self._answered(frame)
        else:
            on = self._lines.on(frame.connection)
            holds = self._wait_until(frame.seq, frame, frame.connection)
            if frame.kind is Kind.REQUEST:
                self._request(frame, on)
            elif frame.kind is Kind.NOTIFICATION:
                params = {"params": self._said(frame.params)} if "params" in obj(frame.json) else {}
                deliberate = {"deliberate": True} if frame.deliberate else {}
                self._add({"notify": {"method": frame.method, **params, **deliberate, **on}})
            else:
                self._raw(frame, on)
            if holds and frame.method != "turn/interrupt":
                self._open()
        self._now.at = frame.seq

    def _greeted(self, frame: Frame) -> None:
        extra = obj(frame.params).keys() - {"clientInfo", "capabilities"}
        left = obj(dig(frame.params, "capabilities"))
        if self._recorded and (left or extra):
            told = ", ".join([*extra, *left])
            self._shop.note(f"initialize is sent as the target's profile has it, without: {told}")

    def _raw(self, frame: Frame, on: Step) -> None:
        try:
            said = {"line": frame.raw.decode("utf-8")}
        except UnicodeDecodeError:
            said = {"hex": (frame.raw + b"\n").hex()}
        self._add({"send_raw": {**said, **on}})

    def _request(self, frame: Frame, on: Step) -> None:
        answer = self._story.answer(frame)
        later = answer is None or self._went_on(frame, answer)
        method = frame.method
        good = answer is not None and answer.kind is Kind.RESPONSE and not later
        contended = not self._given.exact and overlaps_an_earlier_one(self._story, frame)
        if answer is not None and good and not frame.deliberate:
            if self._began(frame, answer, on):
                return
            if not contended and self._moved(frame, on):
                return
        body: Step = {"method": method, **self._named_as()}
        if "params" in obj(frame.json):
            body["params"] = self._said(self._for_any_target(frame))
        if frame.deliberate:
            body["deliberate"] = True
        if answer is None or later:
            body = {"as": self._alias("r"), **body, "wait": False, "expect": "any"}
            if answer is not None:
                self._now.unanswered[body["as"]] = answer.seq
        elif method == "initialize":
            body["expect"] = "any"  # The player has said it before.
        elif contended:
            # A server that carries out the earlier one first may have to refuse this one.
            body["expect"] = "any"
        elif answer.kind is Kind.ERROR:
            # That every server must refuse it, a recording does not say.
            body["expect"] = "any" if self._recorded else "error"
        body |= on
        self._add({"request": body})
        self._result_of(frame, answer, body)

    def _began(self, frame: Frame, answer: Frame, on: Step) -> bool:
        """The step that starts a thread or a turn, where the request did; whether it is written."""
        if frame.method == "thread/start" and text(dig(answer.result, "thread", "id")):
            self._start_thread(frame, answer, on)
            return True
        started = frame.method == "turn/start" and text(dig(answer.result, "turn", "id"))
        return bool(started) and self._start_turn(frame, answer, on)

    def _moved(self, frame: Frame, on: Step) -> bool:
        """The step that ends a turn or adds to it, where the request did; whether it is written."""
        params = frame.params
        if frame.method == "turn/interrupt" and self._turn_of(params) and len(params) == 2:
            self._add({"interrupt": {"turn": self._turn_of(params), **on}})
            return True
        return frame.method == "turn/steer" and self._steer(frame, on)

    def _for_any_target(self, frame: Frame) -> Any:
        """The parameters of a request without the model, of which each target has its own."""
        params = frame.params
        if not self._recorded or frame.method not in ("thread/resume", "thread/fork"):
            return params
        found = self._without_null(dict(obj(params)), frame.method)
        if found.pop("model", None) is not None:
            self._shop.note(f"the model of {frame.method} is left to the target")
        return found

    def _result_of(self, frame: Frame, answer: Frame | None, body: Step) -> None:
        """Name what came back: threads and turns at once, the rest where it is said again."""
        if answer is None or answer.kind is not Kind.RESPONSE:
            return
        thread = text(dig(answer.result, "thread", "id"))
        turn = text(dig(answer.result, "turn", "id"))
        # Where the run's own steps are known, what has no name there needs none.
        names = "as" in body or not self._given.exact
        fresh = thread not in self._now.threads
        if thread and names and fresh and gives(frame.method, "thread"):
            body.setdefault("as", self._alias("t", self._now.threads.values()))
            self._now.threads[thread] = body["as"]
        if turn and names and gives(frame.method, "turn"):
            body.setdefault("as", self._alias("u", self._now.turns.values()))
            owner = text(dig(answer.result, "reviewThreadId")) or text(
                dig(frame.params, "threadId")
            )
            self._now.turns[owner, turn] = body["as"]

        def alias() -> str:
            return str(body.setdefault("as", self._alias("r")))

        self._refs.learn(alias, answer.result)

    def _went_on(self, frame: Frame, answer: Frame) -> bool:
        if self._given.exact:
            return not waited_for(self._story.marks, frame.seq, answer.seq)
        return went_on_before(self._story, frame, answer)

    def _named_as(self) -> Step:
        """The name that the run gave to what its step began."""
        return {"as": self._given.alias} if self._given.alias else {}

    def _alias(self, letter: str, taken: Any = None) -> str:
        if taken is None:
            taken = self._given.names
            numbered = (f"{letter}{number}" for number in itertools.count(self._named + 1))
            name = next(one for one in numbered if one not in taken)
            self._named = int(name[len(letter) :])
            return name
        names = {*taken, *self._given.names}
        numbered = (f"{letter}{number}" for number in itertools.count(2))
        return letter if letter not in names else next(n for n in numbered if n not in names)

    def _start_thread(self, frame: Frame, answer: Frame, on: Step) -> None:
        params = dict(obj(frame.params))
        if params.get("cwd") in self._story.cwds or self._recorded:
            params.pop("cwd", None)
        for name in SETTINGS:
            given = params.pop(name, None)
            told = given if given is not None else setting_of(name, answer.result)
            if name == "model" and self._recorded:
                if given is not None:
                    self._shop.note(f"the model {given} is left to the target")
            elif told is not None and told != self.settings.get(name):
                params[name] = told
        params = self._without_null(params, frame.method)
        alias = self._given.alias or self._alias("t", self._now.threads.values())
        self._now.threads[text(dig(answer.result, "thread", "id"))] = alias
        more = {"params": self._said(params)} if params else {}
        self._add({"start_thread": {"as": alias, **more, **on}})
        self._refs.learn(lambda: alias, answer.result)

    def _start_turn(self, frame: Frame, answer: Frame, on: Step) -> bool:
        thread = text(dig(frame.params, "threadId"))
        if thread not in self._now.threads:
            return False
        params = dict(obj(frame.params))
        given = [dict(obj(one)) for one in arr(params.pop("input", []))]
        params.pop("threadId", None)
        if self._recorded and params.get("cwd") in self._story.cwds:
            params.pop("cwd")
        if not self._recorded and given and text(given[0].get("text")).startswith("[thread "):
            given = given[1:]  # The player's own mark, by which it tells the threads' calls apart.
        given = [{k: v for k, v in one.items() if v not in (None, [])} for one in given]
        said: Step = {"input": self._said(given)}
        if len(given) == 1 and given[0].keys() == {"type", "text"} and given[0]["type"] == "text":
            said = {"text": self._story.placed(given[0]["text"])}
        alias = self._given.alias or self._alias("u", self._now.turns.values())
        self._now.turns[thread, text(dig(answer.result, "turn", "id"))] = alias
        params = self._without_null(params, frame.method)
        if self._recorded and params.pop("model", None) is not None:
            self._shop.note("the model of a turn is left to the target")
        more = {"params": self._said(params)} if params else {}
        name = self._now.threads[thread]
        self._add({"start_turn": {"thread": name, **said, "as": alias, **more, **on}})
        self._refs.learn(lambda: alias, answer.result)
        return True

    def _without_null(self, params: Step, method: str) -> Step:
        if nulls := sorted(name for name, value in params.items() if value is None):
            self._shop.note(
                f"{method} was sent with null for {', '.join(nulls)}; they are left out"
            )
        return {name: value for name, value in params.items() if value is not None}

    def _turn_of(self, params: Any) -> str:
        key = (text(dig(params, "threadId")), text(dig(params, "turnId")))
        return self._now.turns.get(key, "")

    def _steer(self, frame: Frame, on: Step) -> bool:
        params = obj(frame.params)
        key = (text(params.get("threadId")), text(params.get("expectedTurnId")))
        given = [obj(one) for one in arr(params.get("input"))]
        plain = len(given) == 1 and given[0].keys() <= {"type", "text", "text_elements"}
        if (
            key not in self._now.turns
            or not plain
            or set(params)
            - {
                "threadId",
                "expectedTurnId",
                "input",
            }
        ):
            return False
        self._shop.needs["steering"] = None
        turn = self._now.turns[key]
        self._add(
            {"steer": {"turn": turn, "text": text(given[0].get("text")), **on, **self._named_as()}}
        )
        return True

    def _answered(self, frame: Frame) -> None:
        on = self._lines.on(frame.connection)
        question = question_of(self._story, frame)
        if question is None:
            self._raw(frame, on)
            return
        body = answer_body(self._story, self._shop, frame, question)
        if "result" in body:
            body["result"] = self._said(body["result"])
        self._add({"answer": {**body, **on}})

    # What the client waited for.

    def _wait_until(self, seq: int, sent: Frame | None, connection: str) -> bool:
        """Wait for what the client had seen when it sent a frame; gives whether a gate is held."""
        if self._given.exact:
            return False
        for alias, answered in list(self._now.unanswered.items()):
            if answered < seq:
                del self._now.unanswered[alias]
                self._add({"wait": {"answer": alias}})
        for (thread, turn_id), turn in self._story.turns.items():
            key = (thread, turn_id)
            if turn.ends is None or turn.ends >= seq or key in self._now.ended:
                continue
            self._now.ended.add(key)
            if self._lines.is_gone(turn.told_on):
                continue
            on = self._lines.told(turn.told_on)
            if key in self._now.turns:
                self._add({"wait": {"turn": self._now.turns[key], "status": turn.status, **on}})
            elif thread in self._now.threads:
                if turn.compacts:
                    # Some servers are idle until it begins.
                    told = {"notification": "item/completed", "where": _COMPACTED, **on}
                    self._add({"wait": told})
                self._add({"wait": {"idle": self._now.threads[thread], **on}})
            self._open()
        if sent is None:
            return False
        turn = self._story.running(text(dig(sent.params, "threadId")), seq)
        if turn is None or (sent.method in ("turn/start", "") and turn.begins > seq):
            return False
        return self._in_mid_turn(turn, seq)

    def _in_mid_turn(self, turn: Turn, seq: int) -> bool:
        """The client acted while a turn was in progress: hold the model there, if it can be."""
        if was_interrupted(self._story, turn, seq):
            return False  # The server need not read on what the model says.
        if is_busy(self._story, turn, seq):
            self._open()
            told = last_told(self._story, turn, self._now.at, seq)
            if told is not None:
                self._add({"wait": told})
            return False
        call = self._model.call_at(turn.thread, seq)
        if call is None or call.fail is not None:
            return False
        if self._now.open_gate:
            self._open()
        self._gates += 1
        gate = f"gate-{self._gates}"
        call.holds[seq] = gate
        self._add({"wait": {"gate": gate}})
        self._now.open_gate = gate
        return True

    def _learn(self, frame: Frame) -> None:
        self._lines.first(frame.connection)
