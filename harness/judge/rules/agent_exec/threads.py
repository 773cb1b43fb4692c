"""Rules on threads that outlive a process: their id, history, storage and model."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator
from pathlib import PurePosixPath

from harness.judge.base import Outcome, Outcomes, Violation, Witness, listen, on_mark, rule
from harness.judge.rules.shared.process_events import (
    StreamRule,
    event,
    member,
    model_marks_of,
    turn_request_of,
)
from harness.judge.rules.shared.violations import wrong
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import HomeSearched, ModelCall, Place, ProgramEnded, TurnRequested
from harness.trace.trace import Mark

SESSIONS = "sessions"


@rule(
    "exec.resumed-thread",
    title="A process that resumes a thread names that thread",
    level=Level.MUST,
    surface="exec",
)
class ResumedThread(StreamRule):
    """Judges that thread.started of a process that resumes a thread names that thread.

    Left open: whether the event is repeated for a resumed thread.
    """

    @listen(("event", "thread.started"))
    def on_thread_started(self, frame: Frame) -> Outcomes:
        request = turn_request_of(self.trace, frame.connection)
        if request is None or not request.thread:
            return
        subject = _subject(request, frame.connection)
        if event(frame).get("thread_id") == request.thread:
            yield Witness(subject, (frame,))
        else:
            place = member(frame, "thread_id")
            yield wrong(subject, (frame,), place, f"{literal(request.thread)}, which was resumed")


@rule(
    "exec.resumed-history",
    title="A process that resumes a thread sends the earlier prompts to the model",
    level=Level.MUST,
    surface="exec",
)
class ResumedHistory(StreamRule):
    """Judges the first model call of a process that resumes a thread: it has the earlier prompts.

    Not judged if several processes ran at once, or if the call was not read.
    """

    @on_mark(ProgramEnded)
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        connection = mark.body.connection
        request = turn_request_of(self.trace, connection)
        if request is None or not request.thread or not self.stream.turns:
            return
        calls = [
            call for call in model_marks_of(self.trace, connection, ModelCall) if call.is_scripted
        ]
        if not calls or calls[0].user_texts is None:
            return
        subject, proof = _subject(request, connection), (self.stream.turns[0].start,)
        user_texts = calls[0].user_texts
        missing = [
            prompt
            for prompt in request.earlier
            if not any(_is_prompt(prompt, text) for text in user_texts)
        ]
        if not missing:
            yield Witness(subject, proof)
        else:
            expected = f"model call {calls[0].call} with {literal(missing[0])}, said before"
            yield Violation(subject, proof, expected, f"the user's texts {list(user_texts)!r}")


def _subject(turn: TurnRequested, connection: str) -> str:
    """Return the subject of a thread: its name in the scenario, and the process."""
    return f"thread {turn.of} in {connection}"


def _is_prompt(prompt: str, user_text: str) -> bool:
    """Return whether a text of a call, which may have been cut short, is a prompt."""
    return bool(user_text.strip()) and (
        prompt.strip() in user_text or prompt.strip().startswith(user_text.strip())
    )


@rule(
    "exec.thread-kept",
    title="A thread is kept below the sessions folder of the agent's home",
    level=Level.MUST,
    needs=("storage",),
    surface="exec",
)
class ThreadKept(StreamRule):
    """Judges that a thread is stored below a `sessions` folder, by a search of the home.

    The search is for the thread's id and for the folder's name. A file below `sessions` with the id
    in its path or its bytes stores the thread. If there are such files without the id, they may use
    a format of their own: not judged. If there is no file below any `sessions` folder, nothing is
    stored there.
    """

    def finish(self) -> Outcomes:
        threads = [text(event(thread).get("thread_id")) for thread in self.stream.threads[:1]]
        homes = [mark.body.home for mark in self.trace.marks_of(Place)]
        request = (
            turn_request_of(self.trace, self.stream.threads[0].connection) if threads else None
        )
        if not threads or not homes or (request is not None and request.thread):
            return
        for mark in self.trace.marks_of(HomeSearched):
            if {threads[0], SESSIONS} <= set(mark.body.texts):
                yield from self._judge_search(mark.body, threads[0], homes[0])

    def _judge_search(self, search: HomeSearched, thread: str, home: str) -> Iterator[Outcome]:
        subject, proof = f"thread {thread}", (self.stream.threads[0],)
        session_files = [
            file
            for file in search.found
            if SESSIONS in PurePosixPath(file.path).relative_to(home).parts[:-1]
        ]
        if any(thread in (*file.named, *file.held) for file in session_files):
            yield Witness(subject, proof)
        elif not session_files and search.whole:
            elsewhere = [file.path for file in search.found if thread in (*file.named, *file.held)]
            actual = ", ".join(elsewhere[:3]) or "no file that has its id"
            expected = f"a file below a folder {SESSIONS!r} of the home {home}"
            yield Violation(subject, proof, expected, actual)


@rule(
    "exec.model-asked",
    title="The model that was named for a thread is called",
    level=Level.MUST,
    surface="exec",
)
class ModelAsked(StreamRule):
    """Judges the model calls of a process that was given a model: at least one of them names it.

    Others may be the program's own, for example for a title or a summary.
    """

    @on_mark(ProgramEnded)
    def on_program_ended(self, mark: Mark[ProgramEnded]) -> Outcomes:
        connection = mark.body.connection
        request = turn_request_of(self.trace, connection)
        calls = model_marks_of(self.trace, connection, ModelCall)
        names = [call.model for call in calls if call.is_scripted and call.model is not None]
        if request is None or not request.model or not names or not self.stream.turns:
            return
        subject, proof = _subject(request, connection), (self.stream.turns[0].start,)
        if request.model in names:
            yield Witness(subject, proof)
        else:
            yield Violation(subject, proof, f"calls of {request.model!r}", f"calls of {names!r}")
