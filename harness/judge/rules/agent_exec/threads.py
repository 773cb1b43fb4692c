"""Rules on threads that outlive a process: their id, history, place and model."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from pathlib import PurePosixPath

from harness.judge.base import Outcome, Outcomes, Violation, Witness, listen, on_mark, rule
from harness.judge.rules.shared.streams import StreamRule, asked_of, event, member, of_process
from harness.judge.rules.shared.violations import wrong
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import HomeSearched, ModelCall, Place, ProgramEnded, TurnAsked
from harness.trace.trace import Mark

SESSIONS = "sessions"


@rule(
    "exec.resumed-thread",
    title="A process that goes on with a thread names that thread",
    level=Level.MUST,
    surface="exec",
)
class ResumedThread(StreamRule):
    """Judges thread.started of a process that was given the id of an earlier thread.

    It names that thread. Left open: whether the event is told again where a thread goes on.
    """

    @listen(("event", "thread.started"))
    def on_thread_started(self, frame: Frame) -> Outcomes:
        asked = asked_of(self.trace, frame.connection)
        if asked is None or not asked.thread:
            return
        subject = _subject(asked, frame.connection)
        if event(frame).get("thread_id") == asked.thread:
            yield Witness(subject, (frame,))
        else:
            place = member(frame, "thread_id")
            yield wrong(subject, (frame,), place, f"{literal(asked.thread)}, which was resumed")


@rule(
    "exec.resumed-history",
    title="A process that goes on with a thread asks the model with what was said before",
    level=Level.MUST,
    surface="exec",
)
class ResumedHistory(StreamRule):
    """Judges the first model call of such a process: it has the prompts of the earlier turns.

    Not judged where several processes ran at once, and where the call was not read.
    """

    @on_mark(ProgramEnded)
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        connection = mark.body.connection
        asked = asked_of(self.trace, connection)
        if asked is None or not asked.thread or not self.stream.turns:
            return
        calls = [one for one in of_process(self.trace, connection, ModelCall) if one.scripted]
        if not calls or calls[0].user_texts is None:
            return
        subject, proof = _subject(asked, connection), (self.stream.turns[0].started,)
        said = calls[0].user_texts
        lost = [one for one in asked.earlier if not any(_begins(one, text) for text in said)]
        if not lost:
            yield Witness(subject, proof)
        else:
            expected = f"model call {calls[0].call} with {literal(lost[0])}, said before"
            yield Violation(subject, proof, expected, f"the user's texts {list(said)!r}")


def _subject(asked: TurnAsked, connection: str) -> str:
    """Name a thread as the scenario does, and by the process."""
    return f"thread {asked.of} in {connection}"


def _begins(prompt: str, said: str) -> bool:
    """Return whether a text of a call, of which only the beginning may be kept, is a prompt."""
    return bool(said.strip()) and (
        prompt.strip() in said or prompt.strip().startswith(said.strip())
    )


@rule(
    "exec.thread-kept",
    title="A thread is kept below the sessions folder of the agent's home",
    level=Level.MUST,
    needs=("storage",),
    surface="exec",
)
class ThreadKept(StreamRule):
    """Judges a search of the home for the id of a thread, and for the folder's name.

    A file below `sessions` that has the id in its path or its bytes keeps it. Where such files have
    it not, it may be written in a form of its own: nothing is said. Where there is no file at all
    below any `sessions` folder, nothing is kept there.
    """

    def finish(self) -> Outcomes:
        threads = [text(event(one).get("thread_id")) for one in self.stream.threads[:1]]
        homes = [mark.body.home for mark in self.trace.marks_of(Place)]
        asked = asked_of(self.trace, self.stream.threads[0].connection) if threads else None
        if not threads or not homes or (asked is not None and asked.thread):
            return
        for mark in self.trace.marks_of(HomeSearched):
            if {threads[0], SESSIONS} <= set(mark.body.texts):
                yield from self._judged(mark.body, threads[0], homes[0])

    def _judged(self, search: HomeSearched, thread: str, home: str) -> Iterator[Outcome]:
        subject, proof = f"thread {thread}", (self.stream.threads[0],)
        there = [
            one
            for one in search.found
            if SESSIONS in PurePosixPath(one.path).relative_to(home).parts[:-1]
        ]
        if any(thread in (*one.named, *one.held) for one in there):
            yield Witness(subject, proof)
        elif not there and search.whole:
            elsewhere = [one.path for one in search.found if thread in (*one.named, *one.held)]
            found = ", ".join(elsewhere[:3]) or "no file that has its id"
            expected = f"a file below a folder {SESSIONS!r} of the home {home}"
            yield Violation(subject, proof, expected, found)


@rule(
    "exec.model-asked",
    title="The model that was named for a thread is asked",
    level=Level.MUST,
    surface="exec",
)
class ModelAsked(StreamRule):
    """Judges the model calls of a process that was told a model: one of them at least names it.

    Others may be the program's own, for example for a title or a summary.
    """

    @on_mark(ProgramEnded)
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        connection = mark.body.connection
        asked = asked_of(self.trace, connection)
        calls = of_process(self.trace, connection, ModelCall)
        names = [one.model for one in calls if one.scripted and one.model is not None]
        if asked is None or not asked.model or not names or not self.stream.turns:
            return
        subject, proof = _subject(asked, connection), (self.stream.turns[0].started,)
        if asked.model in names:
            yield Witness(subject, proof)
        else:
            yield Violation(subject, proof, f"calls of {asked.model!r}", f"calls of {names!r}")
