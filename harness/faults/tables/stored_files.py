"""Faults of the files in which threads are stored.

Files are not messages, so these faults change the marks of stored traces. A look is such a mark.
"""

from collections.abc import Callable
from dataclasses import replace

from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.site import FaultSite
from harness.faults.stored import replace_marks
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame
from harness.trace.marks import FileMatch, FileSeen, HomeSearched
from harness.trace.trace import Mark, Trace

WHY = "the change is in marks: looks at files are not messages"
ARCHIVED = "thread/archived"
UNARCHIVED = "thread/unarchived"
Seen = Mark[FileSeen]
# Picks the look to change among all looks in order, None if there is none.
Picks = Callable[[FaultSite, list[Seen]], Seen | None]


def _frames_of(site: FaultSite, method: str) -> list[Frame]:
    return [frame for frame in site.frames if frame.method == method]


def _looks_between(site: FaultSite, looks: list[Seen], method: str, *others: str) -> list[Seen]:
    """Return the looks between the first message of a method and the next one of the others."""
    first_frames = _frames_of(site, method)
    ends = [frame for other in others for frame in _frames_of(site, other)]
    return [
        look
        for look in looks
        if first_frames
        and look.after >= first_frames[0].seq
        and not any(first_frames[0].seq < end.seq <= look.after for end in ends)
    ]


def the_first_of_a_turn(site: FaultSite, looks: list[Seen]) -> Seen | None:
    """Return the first look that found a file between a turn's end and the archiving, or None."""
    candidates = _looks_between(site, looks, "turn/completed", "thread/archive", ARCHIVED)
    return next((look for look in candidates if look.body.exists), None)


def where_it_was(site: FaultSite, looks: list[Seen]) -> Seen | None:
    """Return the look at the path from which a thread was archived, None if there is none."""
    candidates = _looks_between(site, looks, ARCHIVED, "thread/unarchive", UNARCHIVED)
    paths = {look.body.path for look in looks if look.body.exists and look not in candidates}
    return next((look for look in candidates if look.body.path in paths), None)


def in_the_archive(site: FaultSite, looks: list[Seen]) -> Seen | None:
    """Return the look that found a file in the archive, None if there is none."""
    candidates = _looks_between(site, looks, ARCHIVED, "thread/unarchive", UNARCHIVED)
    return next((look for look in candidates if look.body.exists), None)


def brought_back(site: FaultSite, looks: list[Seen]) -> Seen | None:
    """Return the look that found the file of a restored thread, None if there is none."""
    candidates = _looks_between(site, looks, UNARCHIVED)
    return next((look for look in candidates if look.body.exists), None)


def left_in_the_archive(site: FaultSite, looks: list[Seen]) -> Seen | None:
    """Return the look at the path from which a thread was restored, None if there is none."""
    candidates = _looks_between(site, looks, UNARCHIVED)
    archived = in_the_archive(site, looks)
    path = archived.body.path if archived is not None else ""
    return next((look for look in candidates if look.body.path == path), None)


def edit_look(picks: Picks, how: Callable[[FileSeen], FileSeen], description: str) -> StoredOnly:
    """Return a change of the look that `picks` returns; it raises `NotApplied` for None."""

    def make(site: FaultSite, trace: Trace) -> Trace:
        picked = picks(site, trace.marks_of(FileSeen))
        if picked is None:
            raise NotApplied(f"no {description}")
        return replace_marks(trace, [picked], how)

    return StoredOnly(WHY, make)


def remove_file(file: FileSeen) -> FileSeen:
    """Return a look that finds no file anywhere."""
    return FileSeen(path=file.path, exists=False, folder=file.folder)


def keep_file(file: FileSeen) -> FileSeen:
    """Return a look that finds a file at the path."""
    return FileSeen(path=file.path, exists=True, size=1, sha256="00", folder=True)


def change_bytes(file: FileSeen) -> FileSeen:
    """Return a look that finds other bytes."""
    return replace(file, size=file.size + 1, sha256="00")


def find_ephemeral_file(site: FaultSite, trace: Trace) -> Trace:
    """Make a search find the id and the inputs of an ephemeral thread in a file."""
    threads = [
        thread.id for thread in site.conversation.threads.values() if _is_ephemeral(site, thread.id)
    ]
    searches = trace.marks_of(HomeSearched)
    texts = [text(part.get("text")) for part in map(obj, _input_parts(site, threads))]
    if not threads or not searches:
        raise NotApplied("no search of the home after an ephemeral thread")

    def add_match(body: HomeSearched) -> HomeSearched:
        held = (threads[0], *(user_text for user_text in texts if user_text in body.texts))
        return replace(body, found=(*body.found, FileMatch("/rollout.jsonl", (), held)))

    return replace_marks(trace, searches, add_match)


def _is_ephemeral(site: FaultSite, thread_id: str) -> bool:
    thread = site.conversation.thread(thread_id)
    ephemeral = thread.reply is not None and dig(thread.reply.result, "thread", "ephemeral")
    return ephemeral is True


def _input_parts(site: FaultSite, threads: list[str]) -> list[object]:
    """Return the parts of the input of the first ephemeral thread."""
    turns = [turn for turn in site.conversation.turns.values() if turn.thread_id in threads[:1]]
    requests = [turn.request for turn in turns if turn.request is not None]
    return [part for request in requests for part in obj(request.params).get("input", [])]


FAULTS: tuple[Fault, ...] = (
    Fault(
        "rollout-not-at-its-path",
        rule="rollout.at-its-path",
        on="on-disk",
        reason="The path of a stored thread is that of its rollout file.",
        change=edit_look(
            the_first_of_a_turn, remove_file, "look at the file of a thread with a turn"
        ),
    ),
    Fault(
        "archived-by-a-copy",
        rule="archive.file-moved",
        on="on-disk",
        reason="Archiving moves the rollout file: it is no longer where it was.",
        change=edit_look(where_it_was, keep_file, "look at where an archived file was"),
    ),
    Fault(
        "archived-with-other-bytes",
        rule="archive.file-moved",
        on="on-disk",
        reason="What was moved is what it was.",
        change=edit_look(in_the_archive, change_bytes, "look at an archived file"),
    ),
    Fault(
        "restored-nowhere",
        rule="unarchive.file-back",
        on="on-disk",
        reason="Taking a thread out of the archive moves the rollout file back.",
        change=edit_look(brought_back, remove_file, "look at a restored file"),
    ),
    Fault(
        "restored-by-a-copy",
        rule="unarchive.file-back",
        on="on-disk",
        reason="The rollout file is moved back: the archive has it no more.",
        change=edit_look(left_in_the_archive, keep_file, "look at where a restored file was"),
    ),
    Fault(
        "ephemeral-on-disk",
        rule="ephemeral.not-stored",
        on="ephemeral",
        reason="An ephemeral thread is not materialized on disk.",
        change=StoredOnly(WHY, find_ephemeral_file),
    ),
)
