"""Rule on ephemeral threads: they are not stored on disk."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Violation, Witness, on_mark, rule
from harness.judge.rules.shared.stored_threads import exchanges_at, marks_until
from harness.judge.rules.shared.subscriptions import Exchanges, thread_of_request
from harness.judge.rules.shared.view_queries import thread_members, threads_in
from harness.judge.verdict import Level
from harness.protocol.values import arr, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import FileMatch, FileSeen, HomeSearched
from harness.trace.trace import Mark


@rule(
    "ephemeral.not-stored",
    title="An ephemeral thread leaves no file",
    level=Level.MUST,
    needs=("ephemeral",),
)
class NotStored(Monitor):
    """Judges that a search of the home finds no file with the id and inputs of an ephemeral thread.

    MUST if a file that has the id, in its path or its bytes, also has the text of a turn/start of
    the thread, and no id of another thread in the search: that is a file of this thread. SHOULD if
    it has ids of other threads: it may be a log. A file that is named by the id and has none of the
    inputs is recorded as INFO. Left open: files with the id only in their bytes, and servers whose
    files were never found in the home, since they may run on another machine.
    """

    @on_mark(HomeSearched)
    def on_home_searched(self, mark: Mark[HomeSearched]) -> Outcomes:
        exchanges = exchanges_at(self.trace, mark)
        ephemeral, stored = _threads(exchanges)
        here = any(file_seen.body.exists for file_seen in marks_until(self.trace, mark, FileSeen))
        for thread_id, frame in ephemeral.items():
            if thread_id not in mark.body.texts:
                continue
            other_ids = {*ephemeral, *stored} - {thread_id}
            texts = [
                input_text
                for input_text in _input_texts(exchanges, thread_id)
                if input_text in mark.body.texts
            ]
            violations = list(_judge_files(thread_id, frame, mark.body, texts, other_ids))
            yield from violations
            if here and not violations and mark.body.whole:
                yield Witness(f"thread {thread_id}", (frame,))


def _judge_files(
    thread_id: str, frame: Frame, search: HomeSearched, texts: list[str], other_ids: set[str]
) -> Iterator[Outcome]:
    subject = f"thread {thread_id}"
    for file in search.found:
        if thread_id not in (*file.named, *file.held):
            continue
        held_texts = [input_text for input_text in texts if input_text in file.held]
        if not held_texts and thread_id not in file.named:
            continue
        alone = not other_ids & {*file.named, *file.held}
        level = (None if alone else Level.SHOULD) if held_texts else Level.INFO
        expected = f"no file of {subject}, which is ephemeral"
        actual = f"{literal(file.path)} has {_describe_match(file, thread_id, held_texts)}"
        places = tuple(
            field.part("ephemeral").place
            for field in thread_members(frame)
            if obj(field.value).get("id") == thread_id
        )
        yield Violation(subject, (frame,), expected, actual, level, places=places)


def _describe_match(file: FileMatch, thread_id: str, texts: list[str]) -> str:
    description = "its id in the path" if thread_id in file.named else "its id"
    return (
        f"{description} and the text {literal(texts[0])} that was said in it"
        if texts
        else description
    )


def _threads(exchanges: Exchanges) -> tuple[dict[str, Frame], set[str]]:
    """Return the ephemeral threads, by id with the first message that shows each, and other ids."""
    ephemeral: dict[str, Frame] = {}
    stored: set[str] = set()
    for frame in exchanges.frames:
        for thread in threads_in(frame) if frame.from_target else ():
            thread_id = text(thread.get("id"))
            if thread.get("ephemeral") is True and thread_id:
                ephemeral.setdefault(thread_id, frame)
            elif thread_id:
                stored.add(thread_id)
    return ephemeral, stored - ephemeral.keys()


def _input_texts(exchanges: Exchanges, thread_id: str) -> list[str]:
    """Return the texts of the inputs of a thread."""
    requests = [
        request
        for request in exchanges.requests("turn/start")
        if thread_of_request(request) == thread_id
    ]
    parts = [obj(part) for request in requests for part in arr(obj(request.params).get("input"))]
    return [said for part in parts if (said := text(part.get("text")))]
