"""Edge cases of the files of threads: conclusions that a check of a file allows."""

from harness.judge.verdict import Level
from harness.trace.marks import Closed, FileMatch, FileSeen, StepBegins
from tests.rules.case import opened
from tests.rules.cases_files import (
    HOME,
    IN_USE,
    OTHER,
    PUT_AWAY,
    SECRET,
    brought_back,
    kept,
    listed,
    misses,
    put_away,
    searched,
    sees,
    with_ephemeral,
)
from tests.rules.edge import Illegal, Legal
from tests.rules.traces import THREAD, Talk, stored_plain_turn

AT, MOVED, BACK = "rollout.at-its-path", "archive.file-moved", "unarchive.file-back"
NOT_STORED = "ephemeral.not-stored"
ELSEWHERE = "/srv/archive/thr_1.jsonl"


def written_late() -> Talk:
    """The file is not there after the turn, and is when the turns were read."""
    talk = misses(opened().plain_turn())
    return sees(talk.read(stored_plain_turn()))


def on_another_machine() -> Talk:
    """Neither files nor their folders can be seen from here."""
    talk = misses(kept(), folder=False)
    talk = misses(put_away(talk), folder=False)
    return misses(brought_back(listed(talk)), folder=False)


def looked_at_before_it_was_told() -> Talk:
    """The archive was asked for, and has not told of the end of it."""
    talk = sees(kept()).asks("thread/archive", threadId=THREAD)
    return sees(talk).answers({}).tells("thread/archived", threadId=THREAD)


def used_in_the_archive() -> Talk:
    """An archived thread that is resumed may lie where it lay."""
    talk = put_away().asks("thread/resume", threadId=THREAD).refuses("not now")
    return sees(talk)


def written_to_before_it_was_moved() -> Talk:
    """A turn comes between the look and the archive: the bytes are others."""
    talk = put_away(sees(kept()).start_turn("turn_2", text="more").end_turn("turn_2"))
    return sees(listed(misses(talk)), PUT_AWAY, "more")


def archive_elsewhere() -> Talk:
    """The archive is not in the home."""
    return sees(listed(misses(put_away()), ELSEWHERE), ELSEWHERE)


def restored_elsewhere() -> Talk:
    """The restored thread lies in another folder than before, and not in the archive."""
    other = f"{HOME}/sessions/2026/{THREAD}.jsonl"
    talk = brought_back(sees(listed(put_away()), PUT_AWAY), other)
    return misses(misses(sees(talk, other), IN_USE), PUT_AWAY)


def restarted() -> Talk:
    """Another process shows the same path."""
    talk = opened().plain_turn().mark(StepBegins("restart", 4)).mark(Closed("c1")).on("c2")
    return talk.read(include=False)


def told_relative() -> Talk:
    """A path that is not absolute is looked for below the home."""
    talk = kept().asks("thread/read", threadId=THREAD)
    shown = dict(talk.trace().frames[1].result["thread"], path="sessions/thr_1.jsonl")
    return sees(talk.answers({"thread": {**shown, "preview": "hello"}}))


def renamed_in_place() -> Talk:
    """The archived thread lies beside where it lay."""
    path = f"{HOME}/sessions/{THREAD}.archived"
    return sees(listed(put_away(), path), path)


def on_a_server_without_files() -> Talk:
    """The search finds the files of a server that keeps none here: there is no evidence."""
    talk = with_ephemeral()
    trace = talk.trace()
    trace.marks = [mark for mark in trace.marks if not isinstance(mark.body, FileSeen)]
    return searched(talk)


LEGAL: list[Legal] = [
    Legal(AT, "written-late", written_late, frozenset({AT})),
    Legal(AT, "on-another-machine", on_another_machine),
    Legal(AT, "told-relative", told_relative),
    Legal(AT, "after-a-restart", lambda: sees(restarted())),
    Legal(MOVED, "looked-at-before-it-was-told", looked_at_before_it_was_told),
    Legal(MOVED, "used-in-the-archive", used_in_the_archive),
    Legal(MOVED, "written-to-before", written_to_before_it_was_moved),
    Legal(MOVED, "archive-elsewhere", archive_elsewhere, frozenset({MOVED})),
    Legal(BACK, "restored-elsewhere", restored_elsewhere),
    Legal(BACK, "on-another-machine", on_another_machine),
    Legal(
        NOT_STORED,
        "id-in-a-database",
        lambda: searched(with_ephemeral(), FileMatch(f"{HOME}/state.db", (), (OTHER,))),
    ),
    Legal(
        NOT_STORED,
        "shell-of-the-thread",
        lambda: searched(with_ephemeral(), FileMatch(f"{HOME}/shells/{OTHER}", (OTHER,), ())),
        frozenset({NOT_STORED}),
    ),
    Legal(NOT_STORED, "no-files-here", on_a_server_without_files),
]

ILLEGAL: list[Illegal] = [
    Illegal(AT, "lost-after-a-restart", lambda: misses(restarted())),
    Illegal(AT, "not-there-yet", lambda: misses(opened().plain_turn()), Level.SHOULD),
    Illegal(MOVED, "a-copy", lambda: sees(put_away())),
    Illegal(MOVED, "beside-where-it-was", renamed_in_place),
    Illegal(BACK, "nowhere", lambda: misses(brought_back(put_away())), also=frozenset({AT})),
    Illegal(
        BACK,
        "a-copy",
        lambda: sees(sees(brought_back(sees(listed(put_away()), PUT_AWAY))), PUT_AWAY),
    ),
    Illegal(
        NOT_STORED,
        "a-file-of-its-own",
        lambda: searched(
            with_ephemeral(), FileMatch(f"{HOME}/sessions/{OTHER}", (OTHER,), (SECRET,))
        ),
    ),
    Illegal(
        NOT_STORED,
        "a-file-with-both",
        lambda: searched(with_ephemeral(), FileMatch(f"{HOME}/x", (), (OTHER, SECRET))),
    ),
]
