"""Rules on what the model was asked in a turn, by the marks of the scripted model."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from abc import abstractmethod
from collections.abc import Iterator, Mapping

from harness.judge.base import Outcome, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.turn_calls import Calls, TurnCalls, came_to_its_end
from harness.judge.rules.shared.view_queries import item_in, perhaps_same_folder, same_folder
from harness.judge.rules.shared.violations import absent, differs, member
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall

# Enough of a text to know it by; a mark holds a little more.
_BEGINNING = 100


@rule("model.input-arrives", title="The model is asked what the user said", level=Level.SHOULD)
class InputArrives(Calls):
    """Judges that the first text of a turn's input is in one of the turn's model calls.

    Compared by its beginning, within any text of the user. The text never says what a call holds;
    that an input given to the agent reaches the model is derived: SHOULD. Left open: input without
    a text, turns without a call, turns that were cut off without it (what they asked the model may
    have been something before, as a compaction is), several threads or turns at once.
    """

    def ended(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        parts = [obj(part) for part in arr(asked.params.get("input"))]
        texts = [index for index, part in enumerate(parts) if part.get("type") == "text"]
        said = text(parts[texts[0]].get("text")) if texts else ""
        wanted = said.strip()[:_BEGINNING]
        if not wanted:
            return
        heard = [words for call in asked.calls for words in call.user_texts or ()]
        if any(wanted in words for words in heard):
            yield Witness(asked.subject, (asked.request, end))
        elif came_to_its_end(end):
            where = member(asked.request, "input", texts[0], "text")
            last = ", ".join(literal(words, 50) for words in heard[-3:]) or "none"
            expected = f"a model call with the user's text {literal(wanted)}"
            actual = f"{len(asked.calls)} call(s); the last texts of the user in them: {last}"
            yield absent(asked.subject, (asked.request, end), expected, actual, where)


@rule("model.named", title="The model of turn/start is called, unless rerouted", level=Level.MUST)
class ModelNamed(Calls):
    """Judges that a turn calls the model that its turn/start, or the last one before, names.

    The override is for this turn and those after it. One call by that name is enough, or by a
    longer one (`m` and `m-2026-01`): a server may ask other models too. A name may stand for a
    model with another name: where only such are called that no other name had led to before, it is
    SHOULD. Left open: turns before any override (also that of thread/start), turns that were cut
    off without it (what they asked may have been something before, as a compaction is), all after a
    reroute, a resume, a refused turn/start; several threads or turns at once.
    """

    def begin(self) -> None:
        super().begin()
        self._rerouted = False
        # What was called, and by which names it had been asked for ("" for none).
        self._asked_by: dict[str, set[str]] = {}

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        self._asked_by.setdefault(text(dig(frame.result, "model")), set()).add("")
        return None

    def forget(self) -> None:
        self._named: tuple[str, Frame] | None = None

    @on("model/rerouted")
    def on_model_rerouted(self, frame: Frame) -> Outcomes:
        self._rerouted = True
        return None

    def ended(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        name = text(asked.params.get("model"))
        if name:
            self._named = (name, asked.request)
        called = sorted({call.model or "" for call in asked.calls})
        wanted, source = self._named or ("", asked.request)
        others = [model for model in called if self._asked_by.get(model, set()) - {wanted}]
        for model in called:
            self._asked_by.setdefault(model, set()).add(wanted)
        if not wanted or self._rerouted:
            return
        frames = (source, end) if source is asked.request else (source, asked.request, end)
        if any(same_model(model, wanted) for model in called):
            yield Witness(asked.subject, frames)
        elif came_to_its_end(end):
            expected, where = f"a call of the model {literal(wanted)}", member(source, "model")
            actual = f"{len(asked.calls)} call(s), of {', '.join(map(literal, called))}"
            level = None if others == called else Level.SHOULD
            yield absent(asked.subject, frames, expected, actual, where, level=level)


def same_model(name: str, asked: str) -> bool:
    """Return whether this is a model that was asked, by its name or by a longer one, as with a
    date.
    """
    return name == asked or bool(asked and name.startswith(f"{asked}-"))


@rule("model.schema-this-turn", title="An output schema is for its turn only", level=Level.MUST)
class SchemaThisTurn(Calls):
    """Judges that the calls of a turn without outputSchema want none after a turn that had one.

    That the schema is in the calls of its own turn is SHOULD: the text says that it binds the last
    message, not how. Only where it was there does its absence later prove anything. Where some
    calls of a later turn want one and others do not, it may be one of the server's own, as for the
    name of a thread: SHOULD. Left open: schemas that no turn/start gave, turns that were cut off
    without theirs, several threads or turns at once.
    """

    def forget(self) -> None:
        self._given: Frame | None = None

    def ended(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        has = any(call.schema for call in asked.calls)
        frames = (asked.request, end)
        if isinstance(asked.params.get("outputSchema"), dict):
            self._given = asked.request if has else None
            if not has and came_to_its_end(end):
                expected = "a model call that wants the schema of this turn"
                actual = f"none of {len(asked.calls)} call(s) does"
                schema = member(asked.request, "outputSchema")
                yield absent(asked.subject, frames, expected, actual, schema, level=Level.SHOULD)
        elif self._given is not None:
            frames = (self._given, *frames)
            if has:
                where = member(asked.request, "outputSchema")
                expected = "no model call with a schema, since only the turn/start before had one"
                with_one = [call for call in asked.calls if call.schema]
                actual = f"{len(with_one)} of {len(asked.calls)} call(s) want one, and of this"
                schema = member(self._given, "outputSchema")
                level = None if len(with_one) == len(asked.calls) else Level.SHOULD
                told = f"{actual} turn/start {where}"
                yield absent(asked.subject, frames, expected, told, schema, level=level)
            else:
                yield Witness(asked.subject, frames)


class _Passed(Calls):
    """A word of turn/start that is passed on to the model as it is."""

    word = ""
    # What the API of the harness's own model calls it, where that is another word.
    names: Mapping[str, str] = {}

    def ended(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        wanted = text(asked.params.get(self.word))
        if not wanted:
            return
        frames = (asked.request, end)
        passed = sorted({self.passed(call) for call in asked.calls} - {""})
        if not {wanted, self.names.get(wanted, wanted)}.isdisjoint(passed):
            yield Witness(asked.subject, frames)
        else:
            expected = f"{self.word} {literal(wanted)} in a model call"
            given = ", ".join(map(literal, passed)) or "none"
            actual = f"{len(asked.calls)} call(s) with {self.word} {given}"
            where = member(asked.request, self.word)
            yield absent(asked.subject, frames, expected, actual, where)

    @abstractmethod
    def passed(self, call: ModelCall) -> str:
        """The word in a model call, "" for none."""


@rule("model.effort-passed", title="The effort of turn/start reaches the model", level=Level.INFO)
class EffortPassed(_Passed):
    """Records whether the effort of a turn/start is in one of the turn's model calls.

    The text lists the values and does not say what becomes of them: INFO. Left open: later turns,
    turns without a call, several threads or turns at once.
    """

    word = "effort"

    def passed(self, call: ModelCall) -> str:
        return call.effort


@rule("model.summary-passed", title="The summary of turn/start reaches the model", level=Level.INFO)
class SummaryPassed(_Passed):
    """Records whether the summary of a turn/start is in one of the turn's model calls.

    The text lists the values and does not say what becomes of them: INFO. `verbose` may go on as
    `detailed`, which is the model's word for it. Left open: later turns, turns without a call,
    several threads or turns at once.
    """

    word = "summary"
    names: Mapping[str, str] = {"verbose": "detailed"}

    def passed(self, call: ModelCall) -> str:
        return call.summary


class _Folder(Calls):
    """The folder in which the commands of a turn run."""

    def forget(self) -> None:
        self._override: tuple[str, Frame] | None = None
        self._lost = False

    def ended(self, asked: TurnCalls, end: Frame) -> Iterator[Outcome]:
        if "cwd" in asked.params:
            folder = text(asked.params["cwd"])
            self._lost = not posixpath.isabs(folder)
            self._override = None if self._lost else (folder, asked.request)
        turn = self.conversation.turns.get(asked.turn_id)
        wanted = None if self._lost else self.wanted(asked, self._override)
        if turn is None or wanted is None:
            return
        folder, source = wanted
        commands = [item for item in turn.items.values() if item.type == "commandExecution"]
        for item in commands:
            frame = (item.started or item.completed)[0]
            where, frames = item_in(frame).get("cwd"), (source, frame)
            if not isinstance(where, str):
                continue
            if same_folder(folder, where):
                yield Witness(item.subject, frames)
            else:
                cwd = ("cwd",) if source.method else ("thread", "cwd")
                also, shown = (member(source, *cwd),), member(frame, "item", "cwd")
                level = Level.SHOULD if perhaps_same_folder(folder, where) else None
                yield differs(item.subject, frames, shown, folder, also=also, level=level)

    @abstractmethod
    def wanted(
        self, asked: TurnCalls, override: tuple[str, Frame] | None
    ) -> tuple[str, Frame] | None:
        """The folder that the rule is about, and the message that names it."""


@rule(
    "turn.cwd-applies",
    title="The cwd of turn/start is where its commands run",
    level=Level.MUST,
    needs=("command-execution",),
)
class TurnCwd(_Folder):
    """Judges the cwd of the commands of a turn whose turn/start, or one before it, named a cwd.

    The override is for this turn and those after it. Judged where the harness's model asked for the
    commands, since it asks for no folder of its own. Another path whose last name is the same may
    lead there through a link: SHOULD. Left open: relative folders, turns after a refused
    turn/start, a resume or a turn that was cut off; several threads or turns at once.
    """

    def wanted(
        self, asked: TurnCalls, override: tuple[str, Frame] | None
    ) -> tuple[str, Frame] | None:
        return override


@rule(
    "thread.cwd-used",
    title="Commands run in the working directory of their thread",
    level=Level.MUST,
    needs=("command-execution",),
)
class ThreadCwd(_Folder):
    """Judges the cwd of the commands of a thread that no turn/start has moved to another folder.

    It is the one that the reply to thread/start names. Judged where the harness's model asked for
    the commands, since it asks for no folder of its own. Another path whose last name is the same
    may lead there through a link: SHOULD. Left open: threads that were not started within the
    trace; turns after a refused turn/start, a resume or a turn that was cut off; several threads or
    turns at once.
    """

    def wanted(
        self, asked: TurnCalls, override: tuple[str, Frame] | None
    ) -> tuple[str, Frame] | None:
        thread = self.conversation.threads.get(text(asked.params.get("threadId")))
        if override is not None or thread is None or thread.reply is None:
            return None
        folder = text(dig(thread.reply.result, "thread", "cwd"))
        return (folder, thread.reply) if posixpath.isabs(folder) else None
