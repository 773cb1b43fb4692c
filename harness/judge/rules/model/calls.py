"""Rules on the model calls of a turn, by the marks of the scripted model."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

import posixpath
from abc import abstractmethod
from collections.abc import Iterator, Mapping

from harness.judge.base import Outcome, Outcomes, Witness, on, on_answer, rule
from harness.judge.rules.shared.turn_calls import Calls, TurnCalls, is_completed
from harness.judge.rules.shared.turn_overrides import Override, TurnOverrides
from harness.judge.rules.shared.view_queries import item_in, may_be_same_folder, same_folder
from harness.judge.rules.shared.violations import absent, different, member
from harness.judge.verdict import Level
from harness.protocol.values import arr, dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import ModelCall

# Enough of a text to identify it; a mark holds a little more.
MAX_PREFIX_CHARACTERS = 100


@rule("model.input-arrives", title="The user's input reaches the model", level=Level.SHOULD)
class InputArrives(Calls):
    """Judges that the first text of a turn's input is in one of the turn's model calls.

    Compared by its beginning, within any text of the user. The specification does not specify the
    content of a call; that the input reaches the model is derived: SHOULD. Left open: input without
    a text, turns without a call, turns that were cut off without it (their calls may have been for
    something before, such as a compaction), several threads or turns at once.
    """

    def on_turn_end(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        parts = [obj(part) for part in arr(turn_calls.params.get("input"))]
        texts = [index for index, part in enumerate(parts) if part.get("type") == "text"]
        user_text = text(parts[texts[0]].get("text")) if texts else ""
        prefix = user_text.strip()[:MAX_PREFIX_CHARACTERS]
        if not prefix:
            return
        model_texts = [words for call in turn_calls.calls for words in call.user_texts or ()]
        if any(prefix in words for words in model_texts):
            yield Witness(turn_calls.subject, (turn_calls.request, end))
        elif is_completed(end):
            field = member(turn_calls.request, "input", texts[0], "text")
            last = ", ".join(literal(words, 50) for words in model_texts[-3:]) or "none"
            expected = f"a model call with the user's text {literal(prefix)}"
            actual = f"{len(turn_calls.calls)} call(s); the last texts of the user in them: {last}"
            yield absent(turn_calls.subject, (turn_calls.request, end), expected, actual, field)


@rule("model.named", title="The model of turn/start is called, unless rerouted", level=Level.MUST)
class ModelNamed(Calls):
    """Judges that a turn calls the model that its turn/start, or the last one before, names.

    The override is for this turn and later ones of the thread, however this turn ends. One call by
    that name is enough, or by a longer one (`m` and `m-2026-01`): a server may call other models
    too. A name may be an alias: SHOULD if only models were called that no other name had led to
    before. Left open: turns before any override (also that of thread/start), turns that were cut
    off without it (their calls may have been for something before, such as a compaction),
    everything after a reroute; the override before a resume, an unsubscription, an archive, a
    restart, a refused turn/start, a rollback of its turn, or in a fork; several turns at once.
    """

    by_input = True

    def begin(self) -> None:
        super().begin()
        self._overrides = TurnOverrides(self.trace, "model")
        self._rerouted = False
        # The requested names that led to each called model ("" for none).
        self._names_for: dict[str, set[str]] = {}

    @on_answer("thread/start")
    def on_thread_start_answer(self, frame: Frame) -> Outcomes:
        self._names_for.setdefault(text(dig(frame.result, "model")), set()).add("")
        return None

    @on("model/rerouted")
    def on_model_rerouted(self, frame: Frame) -> Outcomes:
        self._rerouted = True
        return None

    def on_turn_end(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        override = self._overrides.of_turn(turn_calls.request, end) or Override()
        called = sorted({call.model or "" for call in turn_calls.calls})
        expected_model, source = override.value, override.request or turn_calls.request
        renamed = [
            model for model in called if self._names_for.get(model, set()) - {expected_model}
        ]
        for model in called:
            self._names_for.setdefault(model, set()).add(expected_model)
        if not expected_model or self._rerouted:
            return
        frames = (
            (source, end) if source is turn_calls.request else (source, turn_calls.request, end)
        )
        if any(same_model(model, expected_model) for model in called):
            yield Witness(turn_calls.subject, frames)
        elif is_completed(end):
            expected = f"a call of the model {literal(expected_model)}"
            field = member(source, "model")
            actual = f"{len(turn_calls.calls)} call(s), of {', '.join(map(literal, called))}"
            level = None if renamed == called else Level.SHOULD
            yield absent(turn_calls.subject, frames, expected, actual, field, level=level)


def same_model(name: str, model: str) -> bool:
    """Return whether a name is that of a model, or a longer one, as with a date."""
    return name == model or bool(model and name.startswith(f"{model}-"))


@rule("model.schema-this-turn", title="An output schema is for its turn only", level=Level.MUST)
class SchemaThisTurn(Calls):
    """Judges that a turn without outputSchema sends no schema to the model after a turn with one.

    That the schema is in the calls of its own turn is SHOULD: the specification says that it binds
    the last message, not how. Only if it was there does its later absence prove anything. SHOULD if
    some calls of a later turn have a schema and others do not: it may be one of the server's own,
    as for the name of a thread. Left open: schemas that no turn/start gave, turns that were cut off
    without theirs, several turns at once.
    """

    by_input = True

    def forget(self) -> None:
        self._with_schema: Frame | None = None

    def on_turn_end(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        has = any(call.schema for call in turn_calls.calls)
        frames = (turn_calls.request, end)
        if isinstance(turn_calls.params.get("outputSchema"), dict):
            self._with_schema = turn_calls.request if has else None
            if not has and is_completed(end):
                expected = "a model call that wants the schema of this turn"
                actual = f"none of {len(turn_calls.calls)} call(s) does"
                schema = member(turn_calls.request, "outputSchema")
                yield absent(
                    turn_calls.subject, frames, expected, actual, schema, level=Level.SHOULD
                )
        elif self._with_schema is not None:
            frames = (self._with_schema, *frames)
            if has:
                field = member(turn_calls.request, "outputSchema")
                expected = "no model call with a schema, since only the turn/start before had one"
                with_one = [call for call in turn_calls.calls if call.schema]
                actual = f"{len(with_one)} of {len(turn_calls.calls)} call(s) want one, and of this"
                schema = member(self._with_schema, "outputSchema")
                level = None if len(with_one) == len(turn_calls.calls) else Level.SHOULD
                message = f"{actual} turn/start {field}"
                yield absent(turn_calls.subject, frames, expected, message, schema, level=level)
            else:
                yield Witness(turn_calls.subject, frames)


class _PassedWordRule(Calls):
    """Base of rules on a word of turn/start that is passed unchanged to the model."""

    word = ""
    # Different words in the API of the harness's own model.
    names: Mapping[str, str] = {}

    def on_turn_end(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        word = text(turn_calls.params.get(self.word))
        if not word:
            return
        frames = (turn_calls.request, end)
        words = sorted({self.word_in(call) for call in turn_calls.calls} - {""})
        if not {word, self.names.get(word, word)}.isdisjoint(words):
            yield Witness(turn_calls.subject, frames)
        else:
            expected = f"{self.word} {literal(word)} in a model call"
            listed = ", ".join(map(literal, words)) or "none"
            actual = f"{len(turn_calls.calls)} call(s) with {self.word} {listed}"
            field = member(turn_calls.request, self.word)
            yield absent(turn_calls.subject, frames, expected, actual, field)

    @abstractmethod
    def word_in(self, call: ModelCall) -> str:
        """Return the word in a model call, "" for none."""


@rule("model.effort-passed", title="The effort of turn/start reaches the model", level=Level.INFO)
class EffortPassed(_PassedWordRule):
    """Records whether the effort of a turn/start is in one of the turn's model calls.

    The specification lists the values and not their effect: INFO. Left open: later turns, turns
    without a call, several threads or turns at once.
    """

    word = "effort"

    def word_in(self, call: ModelCall) -> str:
        return call.effort


@rule("model.summary-passed", title="The summary of turn/start reaches the model", level=Level.INFO)
class SummaryPassed(_PassedWordRule):
    """Records whether the summary of a turn/start is in one of the turn's model calls.

    The specification lists the values and not their effect: INFO. `verbose` may become `detailed`,
    which is the model's word for it. Left open: later turns, turns without a call, several threads
    or turns at once.
    """

    word = "summary"
    names: Mapping[str, str] = {"verbose": "detailed"}

    def word_in(self, call: ModelCall) -> str:
        return call.summary


class _CommandFolderRule(Calls):
    """Base of rules on the folder in which the commands of a turn run."""

    by_input = True

    def begin(self) -> None:
        super().begin()
        self._overrides = TurnOverrides(self.trace, "cwd", posixpath.isabs)

    def on_turn_end(self, turn_calls: TurnCalls, end: Frame) -> Iterator[Outcome]:
        override = self._overrides.of_turn(turn_calls.request, end)
        turn = self.conversation.turns.get(turn_calls.turn_id)
        folder_and_source = None if override is None else self.expected_folder(turn_calls, override)
        if turn is None or folder_and_source is None:
            return
        folder, source = folder_and_source
        commands = [item for item in turn.items.values() if item.type == "commandExecution"]
        for item in commands:
            frame = (item.starts or item.completions)[0]
            cwd_value, frames = item_in(frame).get("cwd"), (source, frame)
            if not isinstance(cwd_value, str):
                continue
            if same_folder(folder, cwd_value):
                yield Witness(item.subject, frames)
            else:
                path = ("cwd",) if source.method else ("thread", "cwd")
                also, field = (member(source, *path),), member(frame, "item", "cwd")
                level = Level.SHOULD if may_be_same_folder(folder, cwd_value) else None
                yield different(item.subject, frames, field, folder, also=also, level=level)

    @abstractmethod
    def expected_folder(
        self, turn_calls: TurnCalls, override: Override
    ) -> tuple[str, Frame] | None:
        """Return the folder that the rule expects, and the message that names it, or None."""


@rule(
    "turn.cwd-applies",
    title="The cwd of turn/start is where its commands run",
    level=Level.MUST,
    needs=("command-execution",),
)
class TurnCwd(_CommandFolderRule):
    """Judges that the commands of a turn run in the cwd that its turn/start, or one before, named.

    The override is for this turn and later ones of the thread, however this turn ends. Judged if
    the harness's model requested the commands, since it names no folder. SHOULD for another path
    with the same last name, which may be a link to it. Left open: relative folders; overrides
    before a resume, an unsubscription, an archive, a restart, a refused turn/start or a rollback of
    their turn, or in a fork; several turns at once.
    """

    def expected_folder(
        self, turn_calls: TurnCalls, override: Override
    ) -> tuple[str, Frame] | None:
        return None if override.request is None else (override.value, override.request)


@rule(
    "thread.cwd-used",
    title="Commands run in the working directory of their thread",
    level=Level.MUST,
    needs=("command-execution",),
)
class ThreadCwd(_CommandFolderRule):
    """Judges that the commands of a thread run in its cwd, unless a turn/start named another one.

    It is the one that the reply to thread/start names. Judged if the harness's model requested the
    commands, since it names no folder. SHOULD for another path with the same last name, which may
    be a link to it. Left open: threads that were not started within the trace; turns after a
    refused turn/start with a cwd, a resume, an unsubscription, an archive or a restart; several
    turns at once.
    """

    def expected_folder(
        self, turn_calls: TurnCalls, override: Override
    ) -> tuple[str, Frame] | None:
        thread = self.conversation.threads.get(text(turn_calls.params.get("threadId")))
        if override.request is not None or thread is None or thread.reply is None:
            return None
        folder = text(dig(thread.reply.result, "thread", "cwd"))
        return (folder, thread.reply) if posixpath.isabs(folder) else None
