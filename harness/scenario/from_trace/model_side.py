"""The model's script of each thread, from recorded model calls or inferred from items.

When inferred, the model is called anew after each tool output.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from harness.protocol.values import obj, text
from harness.scenario.from_trace.item_parts import Conversion
from harness.scenario.from_trace.recorded_timing import delays, timed_deltas
from harness.scenario.from_trace.said_items import is_call, message_text, part_of_output_item
from harness.scenario.from_trace.story import PLAN, Product, Story, Turn, texts_of
from harness.trace.foreign import TARGET
from harness.trace.frame import parse
from harness.trace.marks import CallEnd, ModelCall, ModelEnd
from harness.trace.model_marks import ModelOutput, ModelPiece

_USAGE: Final = {
    "input": ("inputTokens", 10),
    "cached": ("cachedInputTokens", 0),
    "output": ("outputTokens", 5),
    "reasoning": ("reasoningOutputTokens", 0),
}

UNKNOWN_FAILURE_NOTE: Final = (
    "why a turn failed is not in the trace; here its model refuses the call"
)
_DEFAULT_SUMMARY: Final = "A summary of what was said."
# For an unknown tool call: a patch of this file fails.
_IMPOSSIBLE_PATCH: Final = {"update": {"not-in-the-trace.txt": {"old": "?\n", "new": "!\n"}}}


@dataclass(slots=True)
class Part:
    """A reply part with the seq of its first and last frame, and its deltas with theirs."""

    seq: int
    value: dict[str, Any]
    deltas: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    ends: int | None = None


@dataclass(slots=True)
class Call:
    """One model call, made after the frame `after_seq`, in `turn`.

    `holds` maps frame numbers to gates; `was_cut` is a broken stream, `was_dropped` one that the
    server left.
    """

    after_seq: int
    turn: Turn | None
    parts: list[Part] = field(default_factory=list[Part])
    failure: dict[str, Any] | None = None
    was_cut: bool = False
    was_dropped: bool = False
    usage: dict[str, int] = field(default_factory=dict[str, int])
    holds: dict[int, str] = field(default_factory=dict[int, str])

    def step(self) -> dict[str, Any]:
        """Return the call as a model step, each gate before the parts after its frame."""
        if self.failure is not None:
            return {"fail": self.failure}
        holds = sorted(self.holds.items())
        reply: list[dict[str, Any]] = []
        for number, part in enumerate(self.parts):
            while holds and holds[0][0] < part.seq:
                reply.append({"hold": holds.pop(0)[1]})
            last = number == len(self.parts) - 1
            reply.append(_part_value(part, holds, is_cut=self.was_cut and last))
        reply += [{"hold": name} for _, name in holds]
        if self.was_dropped and not self.holds:
            reply.append({"hold": f"left-{self.after_seq + 1}"})  # The server stopped reading.
        if self.was_cut and not (
            self.parts and self.parts[-1].deltas and self.parts[-1].ends is None
        ):
            reply.append({"disconnect": True})
        if self.usage and not self.was_cut:
            reply.append({"usage": self.usage})
        return {"reply": reply}


def _part_value(part: Part, holds: list[tuple[int, str]], *, is_cut: bool) -> dict[str, Any]:
    """Return a part with gates between its deltas; removes these gates from `holds`."""
    if not part.deltas:
        return part.value
    deltas: list[Any] = []
    for seq, piece in part.deltas:
        while holds and holds[0][0] < seq:
            deltas.append({"hold": holds.pop(0)[1]})
        deltas.append(piece)
    while holds and part.ends is not None and holds[0][0] < part.ends:
        deltas.append({"hold": holds.pop(0)[1]})
    if is_cut and part.ends is None:
        deltas.append({"disconnect": True})
    [(key, body)] = part.value.items()
    if len(deltas) == 1 and isinstance(deltas[0], str) and set(body) <= {"deltas"}:
        return {key: deltas[0]}
    return {key: {**body, "deltas": deltas}}


class ModelSide:
    """Model calls of each thread of a trace, in order; with `timing` pieces wait as recorded."""

    def __init__(self, story: Story, conversion: Conversion, *, timing: bool = False) -> None:
        self._story = story
        self._timing = timing
        self._conversion = conversion
        threads = list(dict.fromkeys(turn.thread for turn in story.turns.values()))
        groups = self._calls_by_group() if story.has_model else {}
        group_names = self._group_of_each_thread(groups, threads)
        self.calls = {
            thread: self._recorded_calls(thread, groups[group_names[thread]])
            if thread in group_names
            else self._inferred_calls(thread)
            for thread in threads
        }
        if not story.has_model and any(self.calls.values()):
            conversion.add_note(
                "the model's calls are not in the trace: which items are of one call is inferred"
            )

    def call_at(self, thread: str, seq: int) -> Call | None:
        """Return a thread's last call before a frame; None if it is not of the current turn."""
        turn = self._story.turn_at(thread, seq)
        earlier = [call for call in self.calls.get(thread, ()) if call.after_seq < seq]
        return earlier[-1] if earlier and (turn is None or earlier[-1].turn is turn) else None

    def _calls_by_group(
        self,
    ) -> dict[str, list[tuple[ModelCall, int, ModelEnd | None, ModelOutput | None]]]:
        """Return recorded calls by the mark's thread name: call, seq, end and output of each."""
        ends: dict[int, ModelEnd] = {}
        answers: dict[int, ModelOutput] = {}
        for mark in self._story.trace.marks:
            if isinstance(mark.body, ModelEnd):
                ends[mark.body.call] = mark.body
            elif isinstance(mark.body, ModelOutput):
                answers[mark.body.call] = mark.body
        is_own_run = self._story.trace.header.target != TARGET
        groups: dict[str, list[tuple[ModelCall, int, ModelEnd | None, ModelOutput | None]]] = {}
        for mark in self._story.marks:
            body = mark.body
            if not isinstance(body, ModelCall):
                continue
            if is_own_run and not body.is_scripted:
                self._conversion.add_note(
                    f"call {body.call} of the model was not in the script of its run"
                )
                continue
            row = (body, mark.after, ends.get(body.call), answers.get(body.call))
            groups.setdefault(body.thread, []).append(row)
        return groups

    def _group_of_each_thread(self, groups: dict[str, Any], threads: list[str]) -> dict[str, str]:
        """Return the group of calls of each thread id, matched by texts, else by order."""
        if len(groups) == 1 and threads:
            active = [
                thread
                for thread in threads
                if any(t.products for t in self._story.turns_of_thread(thread))
            ]
            return dict.fromkeys((active or threads)[:1], next(iter(groups)))
        unmatched = list(threads)
        group_of: dict[str, str] = {}
        for group, rows in groups.items():
            texts_said = {text_.text for _, _, end, _ in rows if end for text_ in end.texts}
            owner = next(
                (one for one in unmatched if texts_said & self._texts_of_thread(one)),
                unmatched[0] if unmatched else "",
            )
            if owner:
                unmatched.remove(owner)
                group_of[owner] = group
        return group_of

    def _texts_of_thread(self, thread: str) -> set[str]:
        return {
            text(product.value.get("text"))
            for turn in self._story.turns_of_thread(thread)
            for product in turn.products
        }

    def _recorded_calls(
        self,
        thread: str,
        rows: list[tuple[ModelCall, int, ModelEnd | None, ModelOutput | None]],
    ) -> list[Call]:
        """Return the recorded calls, with the parts for the items that each made."""
        turns = self._story.turns_of_thread(thread)
        queue = [(turn, product) for turn in turns for product in turn.products]
        calls: list[Call] = []
        for number, (_, after, end, answer) in enumerate(rows):
            turn = next((turn for turn in turns if turn.ends is None or turn.ends > after), None)
            next_call = rows[number + 1][1] if number + 1 < len(rows) else None
            call = Call(after, turn)
            calls.append(call)
            if end is not None and end.outcome in (CallEnd.STATUS, CallEnd.FAILED):
                call.failure = _failure(end)
                continue
            call.was_dropped = end is None or end.outcome is CallEnd.DROPPED
            call.was_cut = end is not None and end.outcome is CallEnd.DISCONNECTED
            if answer is not None and answer.items:
                self._add_recorded_parts(
                    call,
                    [obj(parse(item.encode())) for item in answer.items],
                    queue,
                    answer.pieces if self._timing else (),
                )
                call.usage = _unusual_counts(dict(zip(_USAGE, answer.usage, strict=False)))
            else:
                self._add_noted_parts(call, end, queue, next_call)
        self._fail_last_calls(turns, calls)
        self._add_usage(thread, calls)
        return calls

    def _fail_last_calls(self, turns: list[Turn], calls: list[Call]) -> None:
        """Make the last call fail in each failed turn whose calls all succeeded."""
        for turn in turns:
            calls_of_turn = [call for call in calls if call.turn is turn]
            if (
                turn.status != "failed"
                or not calls_of_turn
                or calls_of_turn[-1].failure is not None
                or calls_of_turn[-1].was_cut
            ):
                continue
            self._conversion.add_note(UNKNOWN_FAILURE_NOTE)
            calls_of_turn[-1].failure = _refusal_until_end(turn)

    def _add_recorded_parts(
        self,
        call: Call,
        items: list[Any],
        queue: list[tuple[Turn, Product]],
        timing: tuple[tuple[ModelPiece, ...], ...],
    ) -> None:
        """Add the parts of an answer that the trace holds in full; take its items off `queue`."""
        seq = call.after_seq + 1
        for number, item in enumerate(items):
            pieces = timing[number] if number < len(timing) else ()
            kind = text(item.get("type"))
            product_type = (
                "agentMessage" if kind == "message" else "reasoning" if kind == "reasoning" else ""
            )
            product = self._take_product(queue, product_type, tool=is_call(item))
            seq = product.begins if product is not None else seq
            if kind == "message" and pieces:
                phase = text(item.get("phase"))
                body = {"deltas": timed_deltas(message_text(item), pieces)}
                message = {**body, **({"phase": phase} if phase else {})}
                call.parts.append(Part(seq, {"message": message}))
                self._conversion.needs["deltas"] = None
                continue
            call.parts += [
                Part(seq, wait) for wait in delays(sum(piece.seconds for piece in pieces))
            ]
            if kind == "message":
                call.parts.append(
                    self._message_part(message_text(item), text(item.get("phase")), product, seq)
                )
                continue
            value = part_of_output_item(item, self._conversion)
            if product is not None and product.is_tool:
                # Registers the files that it needs and makes; a patch is replaced by its effect.
                part_of_product = self._conversion.part_of_product(product)
                if value and "patch" in value and self._story.has_file_contents:
                    value = part_of_product
            if value is not None:
                call.parts.append(Part(seq, value))

    def _take_product(
        self, queue: list[tuple[Turn, Product]], product_type: str, *, tool: bool
    ) -> Product | None:
        for index, (_, product) in enumerate(queue):
            if product.type == product_type or (tool and product.is_tool):
                del queue[: index + 1]
                return product
        return None

    def _add_noted_parts(
        self,
        call: Call,
        end: ModelEnd | None,
        queue: list[tuple[Turn, Product]],
        next_call: int | None,
    ) -> None:
        """Add the parts of an answer that the trace only summarizes; take its items off `queue`."""
        texts = list(end.texts) if end is not None else []
        tools = end.tools if end is not None else 0
        is_cut = call.was_dropped or call.was_cut
        while queue:
            turn, product = queue[0]
            if call.turn is not None and turn.begins > call.turn.begins:
                break
            if product.type in ("agentMessage", "plan"):
                product_text = text(product.value.get("text")) or "".join(
                    d[3] for d in product.deltas
                )
                if texts and not _is_same_text(texts[0].text, product_text):
                    noted = texts.pop(0)
                    call.parts.append(
                        self._message_part(noted.text, noted.phase, None, product.begins)
                    )
                    continue
                if not texts and not (
                    is_cut and (next_call is None or product.begins <= next_call)
                ):
                    break
                if texts:
                    texts.pop(0)
            elif product.is_tool:
                if not tools and end is not None:
                    break
                tools -= 1
            elif not texts and tools <= 0 and next_call is not None and product.begins > next_call:
                break
            queue.pop(0)
            if (part := self._part_of_product(product)) is not None:
                call.parts.append(part)
        last_seq = call.parts[-1].seq if call.parts else call.after_seq + 1
        call.parts += [
            self._message_part(noted_text.text, noted_text.phase, None, last_seq)
            for noted_text in texts
        ]
        if tools > 0:
            self._conversion.add_note(
                f"a call of the model asked for {tools} tool(s) that the server told nothing of; "
                "here it asks for a patch that cannot be made"
            )
            call.parts.append(Part(last_seq, {"patch": dict(_IMPOSSIBLE_PATCH)}))

    def _inferred_calls(self, thread: str) -> list[Call]:
        """Return calls inferred from the items of a thread whose model is not in the trace."""
        return [
            call
            for turn in self._story.turns_of_thread(thread)
            for call in self._calls_of_turn(turn)
        ]

    def _calls_of_turn(self, turn: Turn) -> Iterator[Call]:
        call = Call(turn.begins, turn)
        has_output = False  # Whether a tool of this call has finished.
        retries, inputs = list(turn.retries), turn.inputs[1:]
        for product in turn.products:
            if retries and retries[0] < product.begins:
                retries.pop(0)
                call.was_cut = True
                self._conversion.add_note(
                    "an answer was retried; here its stream is cut where it began anew"
                )
                yield call
                call, has_output = Call(product.begins - 1, turn), False
            # Steered input is part of the next call.
            has_new_input = bool(call.parts) and bool(inputs) and inputs[0] < product.begins
            while inputs and inputs[0] < product.begins:
                inputs.pop(0)
            if has_output or has_new_input:
                yield call
                call, has_output = Call(product.begins - 1, turn), False
            if (part := self._part_of_product(product)) is not None:
                call.parts.append(part)
            has_output = (product.is_tool and product.ends is not None) or product.type == PLAN
        if turn.has_compacted and not turn.products and turn.status == "completed":
            self._conversion.add_note(
                f"the summary of a compaction is not in the trace; here: {_DEFAULT_SUMMARY}"
            )
            call.parts.append(Part(turn.begins, {"message": _DEFAULT_SUMMARY}))
        for _ in retries:
            call.was_cut = True
            yield call
            call, has_output = Call(turn.ends or turn.begins, turn), False
        if turn.status == "failed":
            if call.parts:
                call.was_cut = True
                yield call
            self._conversion.add_note(UNKNOWN_FAILURE_NOTE)
            yield Call(turn.ends or turn.begins, turn, failure=_refusal_until_end(turn))
            return
        if call.parts and not turn.status and turn.products[-1].is_tool:
            # A server runs a tool once its call has ended; the next call is where the trace ends.
            yield call
            call = Call(turn.products[-1].ends or turn.products[-1].begins, turn)
        call.was_dropped = turn.status != "completed"
        if has_output and turn.status == "completed":
            yield call
            call = Call(turn.ends or turn.begins, turn)
        yield call

    def _part_of_product(self, product: Product) -> Part | None:
        value = product.value
        match product.type:
            case "agentMessage":
                return self._message_part(
                    text(value.get("text")), text(value.get("phase")), product, product.begins
                )
            case "plan":
                self._conversion.needs["plan"] = None
                deltas = [(seq, piece) for seq, _, _, piece in product.deltas]
                final = text(value.get("text"))
                if not deltas:
                    return Part(product.begins, {"plan_item": final}, ends=product.ends)
                streamed = "".join(piece for _, piece in deltas)
                body = {} if streamed == final else {"final": final}
                return Part(product.begins, {"plan_item": body}, deltas, product.ends)
            case "reasoning":
                return self._reasoning_part(product)
            case _:
                part = self._conversion.part_of_product(product)
                return None if part is None else Part(product.begins, part, ends=product.ends)

    def _message_part(self, message: str, phase: str, product: Product | None, seq: int) -> Part:
        body: dict[str, Any] = {"phase": phase} if phase else {}
        deltas = (
            [(delta_seq, piece) for delta_seq, _, _, piece in product.deltas]
            if product is not None
            else []
        )
        if "".join(piece for _, piece in deltas) != message and (
            product is None or product.ends is not None
        ):
            deltas = [(seq, message)]
        if len(deltas) > 1:
            self._conversion.needs["deltas"] = None
        return Part(
            seq, {"message": body}, deltas or [(seq, message)], product.ends if product else seq
        )

    def _reasoning_part(self, product: Product) -> Part:
        self._conversion.needs["reasoning"] = None
        body: dict[str, Any] = {}
        for name, member in (("summary", "summary"), ("raw", "content")):
            blocks = texts_of(product.value.get(member))
            pieces: dict[int, str] = {}
            for _, kind, index, piece in product.deltas:
                if kind == name:
                    pieces[index] = pieces.get(index, "") + piece
            shown_blocks = blocks or [pieces[index] for index in sorted(pieces)]
            if shown_blocks:
                body[name] = shown_blocks
        if "raw" in body:
            self._conversion.needs["reasoning-raw"] = None
        return Part(product.begins, {"reasoning": body}, ends=product.ends)

    def _add_usage(self, thread: str, calls: list[Call]) -> None:
        """Set the token counts of each call if the server reported one count per call."""
        reported = [last for _, owner, last in self._story.usage if owner == thread]
        complete_calls = [
            call_made
            for call_made in calls
            if call_made.failure is None and not call_made.was_cut and not call_made.was_dropped
        ]
        if len(reported) != len(complete_calls):
            return
        for call, last in zip(complete_calls, reported, strict=True):
            if not call.usage:
                counts = {name: last.get(key) for name, (key, _) in _USAGE.items()}
                call.usage = _unusual_counts({k: v for k, v in counts.items() if type(v) is int})


def _refusal_until_end(turn: Turn) -> dict[str, Any]:
    """Return the failure that repeats until the turn ends, with the turn's error message."""
    message = turn.error or "the model failed"
    return {"status": 400, "message": message, "times": "until-turn-ends"}


def _unusual_counts(counts: dict[str, int]) -> dict[str, int]:
    """Return the token counts that differ from the model's defaults."""
    return {
        name: counts[name]
        for name, (_, default) in _USAGE.items()
        if counts.get(name, default) != default
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


def _is_same_text(noted: str, item_text: str) -> bool:
    """Return whether a call's text equals an item's but for outer blanks; long ones may be cut."""
    return noted.strip() == item_text.strip() or (len(noted) > 1000 and item_text.startswith(noted))
