"""The model's script of a thread: what was said in each call, from the calls of a trace or without.

Where the calls are not in the trace they are inferred: after what a tool gave, a model is asked
again.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from harness.protocol.values import obj, text
from harness.scenario.from_trace.said_items import is_call, part_of, said_text
from harness.scenario.from_trace.story import PLAN, Made, Story, Turn, texts_of
from harness.scenario.from_trace.told_items import Workshop
from harness.trace.foreign import TARGET
from harness.trace.frame import parse
from harness.trace.marks import CallEnd, ModelCall, ModelEnd
from harness.trace.model_marks import ModelSaid

_USAGE: Final = {
    "input": ("inputTokens", 10),
    "cached": ("cachedInputTokens", 0),
    "output": ("outputTokens", 5),
    "reasoning": ("reasoningOutputTokens", 0),
}

WHY_FAILED: Final = "why a turn failed is not in the trace; here its model refuses the call"
_SUMMARY: Final = "A summary of what was said."
# For a call of a tool of which nothing is known: no file of this name can be changed.
_IN_VAIN: Final = {"update": {"not-in-the-trace.txt": {"old": "?\n", "new": "!\n"}}}


@dataclass(slots=True)
class Part:
    """A part of a reply, the frame that first told of it, and its deltas with theirs."""

    seq: int
    value: dict[str, Any]
    deltas: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    ends: int | None = None


@dataclass(slots=True)
class Call:
    """One model call: it was made after the frame `after`, in `turn`."""

    after: int
    turn: Turn | None
    parts: list[Part] = field(default_factory=list[Part])
    fail: dict[str, Any] | None = None
    cut: bool = False
    dropped: bool = False
    usage: dict[str, int] = field(default_factory=dict[str, int])
    holds: dict[int, str] = field(default_factory=dict[int, str])

    def step(self) -> dict[str, Any]:
        """The call as a model step; a gate stands before what came after the frame it is for."""
        if self.fail is not None:
            return {"fail": self.fail}
        holds = sorted(self.holds.items())
        reply: list[dict[str, Any]] = []
        for number, part in enumerate(self.parts):
            while holds and holds[0][0] < part.seq:
                reply.append({"hold": holds.pop(0)[1]})
            last = number == len(self.parts) - 1
            reply.append(_rendered(part, holds, cut=self.cut and last))
        reply += [{"hold": name} for _, name in holds]
        if self.dropped and not self.holds:
            reply.append({"hold": f"left-{self.after + 1}"})  # Its server listened no further.
        if self.cut and not (self.parts and self.parts[-1].deltas and self.parts[-1].ends is None):
            reply.append({"disconnect": True})
        if self.usage and not self.cut:
            reply.append({"usage": self.usage})
        return {"reply": reply}


def _rendered(part: Part, holds: list[tuple[int, str]], *, cut: bool) -> dict[str, Any]:
    """A part with the gates that stand between its deltas."""
    if not part.deltas:
        return part.value
    deltas: list[Any] = []
    for seq, said in part.deltas:
        while holds and holds[0][0] < seq:
            deltas.append({"hold": holds.pop(0)[1]})
        deltas.append(said)
    while holds and part.ends is not None and holds[0][0] < part.ends:
        deltas.append({"hold": holds.pop(0)[1]})
    if cut and part.ends is None:
        deltas.append({"disconnect": True})
    [(key, body)] = part.value.items()
    if len(deltas) == 1 and isinstance(deltas[0], str) and set(body) <= {"deltas"}:
        return {key: deltas[0]}
    return {key: {**body, "deltas": deltas}}


class ModelSide:
    """The calls of each thread of a trace, in order."""

    def __init__(self, story: Story, shop: Workshop) -> None:
        self._story = story
        self._shop = shop
        threads = list(dict.fromkeys(turn.thread for turn in story.turns.values()))
        groups = self._groups() if story.has_model else {}
        named = self._matched(groups, threads)
        self.calls = {
            thread: self._recorded(thread, groups[named[thread]])
            if thread in named
            else self._inferred(thread)
            for thread in threads
        }
        if not story.has_model and any(self.calls.values()):
            shop.note(
                "the model's calls are not in the trace: which items are of one call is inferred"
            )

    def call_at(self, thread: str, seq: int) -> Call | None:
        """The last call of a thread that was made before a frame."""
        turn = self._story.running(thread, seq)
        made = [one for one in self.calls.get(thread, ()) if one.after < seq]
        return made[-1] if made and (turn is None or made[-1].turn is turn) else None

    def _groups(self) -> dict[str, list[tuple[ModelCall, int, ModelEnd | None, ModelSaid | None]]]:
        """The calls by the thread that the trace gives them, each with its answer."""
        ends: dict[int, ModelEnd] = {}
        said: dict[int, ModelSaid] = {}
        for mark in self._story.trace.marks:
            if isinstance(mark.body, ModelEnd):
                ends[mark.body.call] = mark.body
            elif isinstance(mark.body, ModelSaid):
                said[mark.body.call] = mark.body
        ours = self._story.trace.header.target != TARGET
        found: dict[str, list[tuple[ModelCall, int, ModelEnd | None, ModelSaid | None]]] = {}
        for mark in self._story.marks:
            body = mark.body
            if not isinstance(body, ModelCall):
                continue
            if ours and not body.scripted:
                self._shop.note(f"call {body.call} of the model was not in the script of its run")
                continue
            row = (body, mark.after, ends.get(body.call), said.get(body.call))
            found.setdefault(body.thread, []).append(row)
        return found

    def _matched(self, groups: dict[str, Any], threads: list[str]) -> dict[str, str]:
        """Thread -> the group of its calls: by what was said, else by order."""
        if len(groups) == 1 and threads:
            busy = [one for one in threads if any(t.made for t in self._story.of_thread(one))]
            return dict.fromkeys((busy or threads)[:1], next(iter(groups)))
        left = list(threads)
        named: dict[str, str] = {}
        for group, rows in groups.items():
            said = {text_.text for _, _, end, _ in rows if end for text_ in end.texts}
            owner = next((one for one in left if said & self._words(one)), left[0] if left else "")
            if owner:
                left.remove(owner)
                named[owner] = group
        return named

    def _words(self, thread: str) -> set[str]:
        return {
            text(made.value.get("text"))
            for turn in self._story.of_thread(thread)
            for made in turn.made
        }

    def _recorded(
        self,
        thread: str,
        rows: list[tuple[ModelCall, int, ModelEnd | None, ModelSaid | None]],
    ) -> list[Call]:
        """The calls as the trace has them, with the items that each of them made."""
        turns = self._story.of_thread(thread)
        queue = [(turn, made) for turn in turns for made in turn.made]
        calls: list[Call] = []
        for number, (_, after, end, said) in enumerate(rows):
            turn = next((one for one in turns if one.ends is None or one.ends > after), None)
            then = rows[number + 1][1] if number + 1 < len(rows) else None
            call = Call(after, turn)
            calls.append(call)
            if end is not None and end.outcome in (CallEnd.STATUS, CallEnd.FAILED):
                call.fail = _failure(end)
                continue
            call.dropped = end is None or end.outcome is CallEnd.DROPPED
            call.cut = end is not None and end.outcome is CallEnd.DISCONNECTED
            if said is not None and said.items:
                self._said(call, [obj(parse(one.encode())) for one in said.items], queue)
                call.usage = _usage(dict(zip(_USAGE, said.usage, strict=False)))
            else:
                self._told(call, end, queue, then)
        self._failed(turns, calls)
        self._usage(thread, calls)
        return calls

    def _failed(self, turns: list[Turn], calls: list[Call]) -> None:
        """Let the last call of a turn fail that failed though no call of it did."""
        for turn in turns:
            own = [call for call in calls if call.turn is turn]
            if turn.status != "failed" or not own or own[-1].fail is not None or own[-1].cut:
                continue
            self._shop.note(WHY_FAILED)
            own[-1].fail = _refused(turn)

    def _said(self, call: Call, items: list[Any], queue: list[tuple[Turn, Made]]) -> None:
        """The parts of an answer that is in the trace word for word."""
        seq = call.after + 1
        for item in items:
            kind = text(item.get("type"))
            wanted = (
                "agentMessage" if kind == "message" else "reasoning" if kind == "reasoning" else ""
            )
            made = self._next(queue, wanted, tool=is_call(item))
            seq = made.begins if made is not None else seq
            if kind == "message":
                call.parts.append(
                    self._message(said_text(item), text(item.get("phase")), made, seq)
                )
                continue
            value = part_of(item, self._shop)
            if made is not None and made.is_tool:
                # For the files that it needs, and what it made of them; a patch as it was meant.
                told = self._shop.part(made)
                if value and "patch" in value and self._story.tells_files:
                    value = told
            if value is not None:
                call.parts.append(Part(seq, value))

    def _next(self, queue: list[tuple[Turn, Made]], wanted: str, *, tool: bool) -> Made | None:
        for at, (_, made) in enumerate(queue):
            if made.type == wanted or (tool and made.is_tool):
                del queue[: at + 1]
                return made
        return None

    def _told(
        self, call: Call, end: ModelEnd | None, queue: list[tuple[Turn, Made]], then: int | None
    ) -> None:
        """The parts of an answer of which the trace says in short what it held."""
        texts = list(end.texts) if end is not None else []
        tools = end.tools if end is not None else 0
        cut = call.dropped or call.cut
        while queue:
            turn, made = queue[0]
            if call.turn is not None and turn.begins > call.turn.begins:
                break
            if made.type in ("agentMessage", "plan"):
                whole = text(made.value.get("text")) or "".join(d[3] for d in made.deltas)
                if texts and not _same(texts[0].text, whole):
                    said = texts.pop(0)
                    call.parts.append(self._message(said.text, said.phase, None, made.begins))
                    continue
                if not texts and not (cut and (then is None or made.begins <= then)):
                    break
                if texts:
                    texts.pop(0)
            elif made.is_tool:
                if not tools and end is not None:
                    break
                tools -= 1
            elif not texts and tools <= 0 and then is not None and made.begins > then:
                break
            queue.pop(0)
            if (part := self._part(made)) is not None:
                call.parts.append(part)
        last = call.parts[-1].seq if call.parts else call.after + 1
        call.parts += [self._message(one.text, one.phase, None, last) for one in texts]
        if tools > 0:
            self._shop.note(
                f"a call of the model asked for {tools} tool(s) that the server told nothing of; "
                "here it asks for a patch that cannot be made"
            )
            call.parts.append(Part(last, {"patch": dict(_IN_VAIN)}))

    def _inferred(self, thread: str) -> list[Call]:
        """The calls of a thread whose model is not in the trace."""
        return [call for turn in self._story.of_thread(thread) for call in self._of_turn(turn)]

    def _of_turn(self, turn: Turn) -> Iterator[Call]:
        call = Call(turn.begins, turn)
        done = False  # Whether a tool of this call has given its outcome.
        retries, added = list(turn.retries), turn.inputs[1:]
        for made in turn.made:
            if retries and retries[0] < made.begins:
                retries.pop(0)
                call.cut = True
                self._shop.note("an answer was retried; here its stream is cut where it began anew")
                yield call
                call, done = Call(made.begins - 1, turn), False
            # What the user added is heard by the next call.
            heard = bool(call.parts) and bool(added) and added[0] < made.begins
            while added and added[0] < made.begins:
                added.pop(0)
            if done or heard:
                yield call
                call, done = Call(made.begins - 1, turn), False
            if (part := self._part(made)) is not None:
                call.parts.append(part)
            done = (made.is_tool and made.ends is not None) or made.type == PLAN
        if turn.compacts and not turn.made and turn.status == "completed":
            self._shop.note(f"the summary of a compaction is not in the trace; here: {_SUMMARY}")
            call.parts.append(Part(turn.begins, {"message": _SUMMARY}))
        for _ in retries:
            call.cut = True
            yield call
            call, done = Call(turn.ends or turn.begins, turn), False
        if turn.status == "failed":
            if call.parts:
                call.cut = True
                yield call
            self._shop.note(WHY_FAILED)
            yield Call(turn.ends or turn.begins, turn, fail=_refused(turn))
            return
        call.dropped = turn.status != "completed"
        if done and turn.status == "completed":
            yield call
            call = Call(turn.ends or turn.begins, turn)
        yield call

    def _part(self, made: Made) -> Part | None:
        value = made.value
        match made.type:
            case "agentMessage":
                return self._message(
                    text(value.get("text")), text(value.get("phase")), made, made.begins
                )
            case "plan":
                self._shop.needs["plan"] = None
                deltas = [(seq, said) for seq, _, _, said in made.deltas]
                whole = text(value.get("text"))
                if not deltas:
                    return Part(made.begins, {"plan_item": whole}, ends=made.ends)
                told = "".join(said for _, said in deltas)
                body = {} if told == whole else {"final": whole}
                return Part(made.begins, {"plan_item": body}, deltas, made.ends)
            case "reasoning":
                return self._reasoning(made)
            case _:
                part = self._shop.part(made)
                return None if part is None else Part(made.begins, part, ends=made.ends)

    def _message(self, whole: str, phase: str, made: Made | None, seq: int) -> Part:
        body: dict[str, Any] = {"phase": phase} if phase else {}
        deltas = [(at, said) for at, _, _, said in made.deltas] if made is not None else []
        if "".join(said for _, said in deltas) != whole and (made is None or made.ends is not None):
            deltas = [(seq, whole)]
        if len(deltas) > 1:
            self._shop.needs["deltas"] = None
        return Part(seq, {"message": body}, deltas or [(seq, whole)], made.ends if made else seq)

    def _reasoning(self, made: Made) -> Part:
        self._shop.needs["reasoning"] = None
        body: dict[str, Any] = {}
        for name, member in (("summary", "summary"), ("raw", "content")):
            blocks = texts_of(made.value.get(member))
            pieces: dict[int, str] = {}
            for _, kind, index, said in made.deltas:
                if kind == name:
                    pieces[index] = pieces.get(index, "") + said
            found = blocks or [pieces[index] for index in sorted(pieces)]
            if found:
                body[name] = found
        if "raw" in body:
            self._shop.needs["reasoning-raw"] = None
        return Part(made.begins, {"reasoning": body}, ends=made.ends)

    def _usage(self, thread: str, calls: list[Call]) -> None:
        """The tokens of each call, where the server told of as many as there were calls."""
        told = [last for _, owner, last in self._story.usage if owner == thread]
        whole = [one for one in calls if one.fail is None and not one.cut and not one.dropped]
        if len(told) != len(whole):
            return
        for call, last in zip(whole, told, strict=True):
            if not call.usage:
                counts = {name: last.get(key) for name, (key, _) in _USAGE.items()}
                call.usage = _usage({k: v for k, v in counts.items() if type(v) is int})


def _refused(turn: Turn) -> dict[str, Any]:
    """A call that ends its turn with the error that the turn had."""
    said = turn.error or "the model failed"
    return {"status": 400, "message": said, "times": "until-turn-ends"}


def _usage(counts: dict[str, int]) -> dict[str, int]:
    """Return the counts that differ from the usual."""
    return {
        name: counts[name]
        for name, (_, usual) in _USAGE.items()
        if counts.get(name, usual) != usual
    }


def _failure(end: ModelEnd) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if end.outcome is CallEnd.STATUS:
        body["status"] = end.status if end.status >= 400 else 500
    if end.code:
        body["code"] = end.code
    if end.said:
        body["message"] = end.said
    return body


def _same(noted: str, told: str) -> bool:
    """Return whether a text of a call is that of an item; what was noted may have been cut."""
    return noted.strip() == told.strip() or (len(noted) > 1000 and told.startswith(noted))
