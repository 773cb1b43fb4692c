"""Faults of the files in which threads are kept.

What is on disk is no message, so these are made on stored traces, in their marks.
"""

from collections.abc import Callable
from dataclasses import replace

from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.site import FaultSite
from harness.faults.stored import remark
from harness.protocol.values import dig, obj, text
from harness.trace.frame import Frame
from harness.trace.marks import FileSeen, HomeSearched, TextsFound
from harness.trace.trace import Mark, Trace

WHY = "what is on disk is seen by looks at it, which a stream of messages does not have"
ARCHIVED = "thread/archived"
UNARCHIVED = "thread/unarchived"
Seen = Mark[FileSeen]
# Which look is spoilt: given the site and all looks, in order.
Picks = Callable[[FaultSite, list[Seen]], Seen | None]


def _told(site: FaultSite, method: str) -> list[Frame]:
    return [frame for frame in site.frames if frame.method == method]


def _after(site: FaultSite, looks: list[Seen], method: str, *others: str) -> list[Seen]:
    """The looks between the first message of a method and the next one of the others."""
    told = _told(site, method)
    ends = [frame for other in others for frame in _told(site, other)]
    return [
        one
        for one in looks
        if told
        and one.after >= told[0].seq
        and not any(told[0].seq < end.seq <= one.after for end in ends)
    ]


def the_first_of_a_turn(site: FaultSite, looks: list[Seen]) -> Seen | None:
    """The first look at a file after a turn, and before the thread was archived."""
    found = _after(site, looks, "turn/completed", "thread/archive", ARCHIVED)
    return next((one for one in found if one.body.exists), None)


def where_it_was(site: FaultSite, looks: list[Seen]) -> Seen | None:
    """The look at the place from which a thread was archived."""
    found = _after(site, looks, ARCHIVED, "thread/unarchive", UNARCHIVED)
    paths = {one.body.path for one in looks if one.body.exists and one not in found}
    return next((one for one in found if one.body.path in paths), None)


def in_the_archive(site: FaultSite, looks: list[Seen]) -> Seen | None:
    """The look at a file in the archive."""
    found = _after(site, looks, ARCHIVED, "thread/unarchive", UNARCHIVED)
    return next((one for one in found if one.body.exists), None)


def brought_back(site: FaultSite, looks: list[Seen]) -> Seen | None:
    """The look at the file of a restored thread."""
    found = _after(site, looks, UNARCHIVED)
    return next((one for one in found if one.body.exists), None)


def left_in_the_archive(site: FaultSite, looks: list[Seen]) -> Seen | None:
    """The look at the place from which a thread was restored."""
    found = _after(site, looks, UNARCHIVED)
    archived = in_the_archive(site, looks)
    path = archived.body.path if archived is not None else ""
    return next((one for one in found if one.body.path == path), None)


def look(picks: Picks, how: Callable[[FileSeen], FileSeen], what: str) -> StoredOnly:
    """Another thing was seen at one look."""

    def make(site: FaultSite, trace: Trace) -> Trace:
        picked = picks(site, trace.marks_of(FileSeen))
        if picked is None:
            raise NotApplied(f"no {what}")
        return remark(trace, [picked], how)

    return StoredOnly(WHY, make)


def gone(seen: FileSeen) -> FileSeen:
    """Nothing is there, nor anywhere else."""
    return FileSeen(path=seen.path, exists=False, folder=seen.folder)


def still_there(seen: FileSeen) -> FileSeen:
    """A file is there."""
    return FileSeen(path=seen.path, exists=True, size=1, sha256="00", folder=True)


def changed(seen: FileSeen) -> FileSeen:
    """The file has other bytes."""
    return replace(seen, size=seen.size + 1, sha256="00")


def with_its_file(site: FaultSite, trace: Trace) -> Trace:
    """A search that finds the id of an ephemeral thread, and what was said in it, in a file."""
    threads = [one.id for one in site.conversation.threads.values() if _is_ephemeral(site, one.id)]
    searches = trace.marks_of(HomeSearched)
    said = [text(part.get("text")) for part in map(obj, _said(site, threads))]
    if not threads or not searches:
        raise NotApplied("no search of the home after an ephemeral thread")

    def found(body: HomeSearched) -> HomeSearched:
        held = (threads[0], *(one for one in said if one in body.texts))
        return replace(body, found=(*body.found, TextsFound("/rollout.jsonl", (), held)))

    return remark(trace, searches, found)


def _is_ephemeral(site: FaultSite, thread_id: str) -> bool:
    thread = site.conversation.thread(thread_id)
    shown = thread.reply is not None and dig(thread.reply.result, "thread", "ephemeral")
    return shown is True


def _said(site: FaultSite, threads: list[str]) -> list[object]:
    """The parts of the input of the first ephemeral thread."""
    turns = [one for one in site.conversation.turns.values() if one.thread_id in threads[:1]]
    asked = [one.request for one in turns if one.request is not None]
    return [part for one in asked for part in obj(one.params).get("input", [])]


FAULTS: tuple[Fault, ...] = (
    Fault(
        "rollout-not-at-its-path",
        rule="rollout.at-its-path",
        on="on-disk",
        reason="The path of a stored thread is that of its rollout file.",
        change=look(the_first_of_a_turn, gone, "look at the file of a thread with a turn"),
    ),
    Fault(
        "archived-by-a-copy",
        rule="archive.file-moved",
        on="on-disk",
        reason="Archiving moves the rollout file: it is no longer where it was.",
        change=look(where_it_was, still_there, "look at where an archived file was"),
    ),
    Fault(
        "archived-with-other-bytes",
        rule="archive.file-moved",
        on="on-disk",
        reason="What was moved is what it was.",
        change=look(in_the_archive, changed, "look at an archived file"),
    ),
    Fault(
        "restored-nowhere",
        rule="unarchive.file-back",
        on="on-disk",
        reason="Taking a thread out of the archive moves the rollout file back.",
        change=look(brought_back, gone, "look at a restored file"),
    ),
    Fault(
        "restored-by-a-copy",
        rule="unarchive.file-back",
        on="on-disk",
        reason="The rollout file is moved back: the archive has it no more.",
        change=look(left_in_the_archive, still_there, "look at where a restored file was"),
    ),
    Fault(
        "ephemeral-on-disk",
        rule="ephemeral.not-stored",
        on="ephemeral",
        reason="An ephemeral thread is not materialized on disk.",
        change=StoredOnly(WHY, with_its_file),
    ),
)
