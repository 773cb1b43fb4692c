"""The rule on ephemeral threads: nothing of them is on disk."""
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
from harness.trace.marks import FileSeen, HomeSearched, TextsFound
from harness.trace.trace import Mark


@rule(
    "ephemeral.not-stored",
    title="An ephemeral thread leaves no file",
    level=Level.MUST,
    needs=("ephemeral",),
)
class NotStored(Monitor):
    """Judges searches of the home for the id of an ephemeral thread and for what was said in it.

    MUST where a file that has the id, in its path or its bytes, has a text that was sent in a
    turn/start of the thread too, and no id of another thread that was searched for: that is a file
    of this thread. SHOULD where it has ids of other threads: it may be a log. A file that is named
    by the id and has nothing of what was said is recorded as INFO. Left open: files with the id in
    their bytes alone, and servers whose files nobody ever found in the home, since they may run on
    another machine.
    """

    @on_mark(HomeSearched)
    def on_home_searched(self, mark: Mark[HomeSearched]) -> Outcomes:
        exchanges = exchanges_at(self.trace, mark)
        ephemeral, stored = _threads(exchanges)
        here = any(one.body.exists for one in marks_until(self.trace, mark, FileSeen))
        for thread_id, shown in ephemeral.items():
            if thread_id not in mark.body.texts:
                continue
            others = {*ephemeral, *stored} - {thread_id}
            said = [one for one in _said(exchanges, thread_id) if one in mark.body.texts]
            found = list(_found(thread_id, shown, mark.body, said, others))
            yield from found
            if here and not found and mark.body.whole:
                yield Witness(f"thread {thread_id}", (shown,))


def _found(
    thread_id: str, shown: Frame, search: HomeSearched, said: list[str], others: set[str]
) -> Iterator[Outcome]:
    subject = f"thread {thread_id}"
    for file in search.found:
        if thread_id not in (*file.named, *file.held):
            continue
        held = [one for one in said if one in file.held]
        if not held and thread_id not in file.named:
            continue
        alone = not others & {*file.named, *file.held}
        level = (None if alone else Level.SHOULD) if held else Level.INFO
        expected = f"no file of {subject}, which is ephemeral"
        actual = f"{literal(file.path)} has {_what(file, thread_id, held)}"
        places = tuple(
            where.part("ephemeral").place
            for where in thread_members(shown)
            if obj(where.value).get("id") == thread_id
        )
        yield Violation(subject, (shown,), expected, actual, level, places=places)


def _what(file: TextsFound, thread_id: str, held: list[str]) -> str:
    where = "its id in the path" if thread_id in file.named else "its id"
    return f"{where} and the text {literal(held[0])} that was said in it" if held else where


def _threads(exchanges: Exchanges) -> tuple[dict[str, Frame], set[str]]:
    """The ephemeral threads, with the first message that shows each as such, and the others."""
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


def _said(exchanges: Exchanges, thread_id: str) -> list[str]:
    """The texts that were sent in the turns of a thread."""
    asked = [one for one in exchanges.sent("turn/start") if thread_of_request(one) == thread_id]
    parts = [obj(part) for one in asked for part in arr(obj(one.params).get("input"))]
    return [said for part in parts if (said := text(part.get("text")))]
