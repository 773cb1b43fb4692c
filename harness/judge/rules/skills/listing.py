"""Rules on the entries of skills/list: which working directories they are about."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.skill_listings import LIST, Listing, listing
from harness.judge.rules.shared.subscriptions import Exchanges
from harness.judge.rules.shared.view_queries import perhaps_same_folder, same_folder
from harness.judge.rules.shared.violations import absent, member, several, wrong
from harness.judge.verdict import Level
from harness.protocol.values import dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import Place
from harness.trace.views import OPENING


@rule(
    "skills.entry-per-cwd",
    title="Each working directory that was asked for has one entry",
    level=Level.MUST,
    needs=("skills",),
)
class EntryPerCwd(Monitor):
    """Judges the entries of a skills/list that names working directories.

    Each directory has an entry, also one without skills, and no second one. Where an entry is about
    a path with the same last name, which may lead there through a link, and for an entry of a
    directory that was not asked for: SHOULD. Left open: relative paths, a directory that was asked
    for twice.
    """

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        shown = listing(self.conversation.request_of(frame), frame)
        if shown is None or not shown.asked or not shown.all_absolute:
            return None
        found = list(_wrong(shown))
        return found or [Witness(shown.subject, shown.frames)]


def _wrong(shown: Listing) -> Iterator[Outcome]:
    there = ", ".join(literal(one.cwd) for one in shown.entries) or "none"
    for index, cwd in enumerate(shown.asked):
        entries = shown.of(cwd)
        twice = sum(same_folder(cwd, one) for one in shown.asked) > 1
        if not entries:
            linked = any(perhaps_same_folder(cwd, one.cwd) for one in shown.entries)
            level = Level.SHOULD if linked else None
            where = member(shown.request, "cwds", index)
            expected, actual = f"an entry of {literal(cwd)}", f"entries of: {there}"
            yield absent(shown.subject, shown.frames, expected, actual, where, level=level)
        elif len(entries) > 1 and not twice:
            ours = [(one.where.part("cwd"), "in one entry only") for one in entries]
            yield several(shown.subject, shown.frames, ours)
    strange = [
        one
        for one in shown.entries
        if not any(
            same_folder(one.cwd, cwd) or perhaps_same_folder(one.cwd, cwd) for cwd in shown.asked
        )
    ]
    if strange:
        ours = [(one.where.part("cwd"), "a directory that was asked for") for one in strange]
        yield several(shown.subject, shown.frames, ours, level=Level.SHOULD)


@rule(
    "skills.session-directory",
    title="Without directories that of the session is scanned",
    level=Level.MUST,
    needs=("skills",),
)
class SessionDirectory(Monitor):
    """Judges a skills/list without `cwds`, or with an empty list, once there is a thread.

    There is an entry, and one only. What a session is the text does not say: it may be the server
    or any thread, so an entry of another directory than that of the server's process or of a thread
    is SHOULD, and so are several while there are threads in several directories. Left open: what is
    listed before there is a thread, and after a turn in another directory.
    """

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        shown = listing(self.conversation.request_of(frame), frame)
        if shown is None or shown.asked:
            return None
        known = self._known(shown.request)
        if not known:
            return None
        data = member(shown.answer, "data")
        entries = list(shown.entries)
        if not entries:
            return [wrong(shown.subject, shown.frames, data, "an entry of the session's directory")]
        if len(entries) > 1:
            level = Level.SHOULD if len(known) > 2 else None
            expected = "one entry, that of the session's directory"
            return [wrong(shown.subject, shown.frames, data, expected, level=level)]
        cwd = entries[0].cwd
        if any(same_folder(one, cwd) or perhaps_same_folder(one, cwd) for one in known):
            return [Witness(shown.subject, shown.frames)]
        expected = f"one of {', '.join(map(literal, sorted(known)))}"
        where = entries[0].where.part("cwd")
        return [wrong(shown.subject, shown.frames, where, expected, level=Level.SHOULD)]

    def _known(self, request: Frame) -> set[str]:
        """The directories of the server and of the threads; empty while there is no thread."""
        exchanges = Exchanges(self.trace, request)
        moved = any("cwd" in obj(one.params) for one in exchanges.sent("turn/start"))
        answers = [exchanges.answer_of(one) for one in exchanges.sent(*OPENING)]
        shown = [text(dig(one.result, "thread", "cwd")) for one in answers if one is not None]
        threads = {one for one in shown if one}
        places = self.trace.marks_of(Place)
        server = {places[-1].body.server_cwd} - {""} if places else set[str]()
        return set() if moved or not threads else threads | server
