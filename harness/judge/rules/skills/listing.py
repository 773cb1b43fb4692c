"""Rules on the entries of skills/list and their working directories."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from collections.abc import Iterator

from harness.judge.base import Monitor, Outcome, Outcomes, Witness, on_answer, rule
from harness.judge.rules.shared.skill_listings import LIST, Listing, parse_listing
from harness.judge.rules.shared.subscriptions import Exchanges
from harness.judge.rules.shared.view_queries import may_be_same_folder, same_folder
from harness.judge.rules.shared.violations import absent, member, several, wrong
from harness.judge.verdict import Level
from harness.protocol.values import dig, obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.marks import Place
from harness.trace.views import OPENING_METHODS


@rule(
    "skills.entry-per-cwd",
    title="Each requested working directory has one entry",
    level=Level.MUST,
    needs=("skills",),
)
class EntryPerCwd(Monitor):
    """Judges the entries of a skills/list that names working directories.

    Each directory has exactly one entry, even without skills. SHOULD if an entry has a path with
    the same last component, which may lead there through a link, and for an entry of a directory
    that was not requested. Left open: relative paths, a directory that was requested twice.
    """

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        listing = parse_listing(self.conversation.request_of(frame), frame)
        if listing is None or not listing.requested_folders or not listing.all_absolute:
            return None
        violations = list(_wrong(listing))
        return violations or [Witness(listing.subject, listing.frames)]


def _wrong(listing: Listing) -> Iterator[Outcome]:
    there = ", ".join(literal(entry.cwd) for entry in listing.entries) or "none"
    for index, cwd in enumerate(listing.requested_folders):
        entries = listing.entries_of(cwd)
        twice = sum(same_folder(cwd, folder) for folder in listing.requested_folders) > 1
        if not entries:
            linked = any(may_be_same_folder(cwd, entry.cwd) for entry in listing.entries)
            level = Level.SHOULD if linked else None
            field = member(listing.request, "cwds", index)
            expected, actual = f"an entry of {literal(cwd)}", f"entries of: {there}"
            yield absent(listing.subject, listing.frames, expected, actual, field, level=level)
        elif len(entries) > 1 and not twice:
            ours = [(entry.field.part("cwd"), "in one entry only") for entry in entries]
            yield several(listing.subject, listing.frames, ours)
    strange = [
        entry
        for entry in listing.entries
        if not any(
            same_folder(entry.cwd, cwd) or may_be_same_folder(entry.cwd, cwd)
            for cwd in listing.requested_folders
        )
    ]
    if strange:
        ours = [(entry.field.part("cwd"), "a directory that was asked for") for entry in strange]
        yield several(listing.subject, listing.frames, ours, level=Level.SHOULD)


@rule(
    "skills.session-directory",
    title="skills/list without cwds scans the session's directory",
    level=Level.MUST,
    needs=("skills",),
)
class SessionDirectory(Monitor):
    """Judges a skills/list without `cwds`, or with an empty list, once there is a thread.

    There is exactly one entry. The specification does not define a session: it may be the server or
    any thread, so an entry of a directory other than that of the server's process or of a thread is
    SHOULD, and so are several entries while threads have several directories. Left open: listings
    before the first thread, and after a turn in another directory.
    """

    @on_answer(LIST)
    def on_list_answer(self, frame: Frame) -> Outcomes:
        listing = parse_listing(self.conversation.request_of(frame), frame)
        if listing is None or listing.requested_folders:
            return None
        folders = self._known_directories(listing.request)
        if not folders:
            return None
        data = member(listing.answer, "data")
        entries = list(listing.entries)
        if not entries:
            return [
                wrong(
                    listing.subject,
                    listing.frames,
                    data,
                    "an entry of the session's directory",
                )
            ]
        if len(entries) > 1:
            level = Level.SHOULD if len(folders) > 2 else None
            expected = "one entry, that of the session's directory"
            return [wrong(listing.subject, listing.frames, data, expected, level=level)]
        cwd = entries[0].cwd
        if any(same_folder(folder, cwd) or may_be_same_folder(folder, cwd) for folder in folders):
            return [Witness(listing.subject, listing.frames)]
        expected = f"one of {', '.join(map(literal, sorted(folders)))}"
        field = entries[0].field.part("cwd")
        return [wrong(listing.subject, listing.frames, field, expected, level=Level.SHOULD)]

    def _known_directories(self, request: Frame) -> set[str]:
        """Return the directories of the server and the threads.

        Empty if there is no thread, or a turn/start has named another directory.
        """
        exchanges = Exchanges(self.trace, request)
        moved = any("cwd" in obj(frame.params) for frame in exchanges.requests("turn/start"))
        answers = [exchanges.answer_of(frame) for frame in exchanges.requests(*OPENING_METHODS)]
        folders = [
            text(dig(answer.result, "thread", "cwd")) for answer in answers if answer is not None
        ]
        threads = {folder for folder in folders if folder}
        places = self.trace.marks_of(Place)
        server = {places[-1].body.server_cwd} - {""} if places else set[str]()
        return set() if moved or not threads else threads | server
