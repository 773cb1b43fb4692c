"""Cases of the rules on files: the rollout's path, and no rollout of an ephemeral thread."""

from typing import Any

from harness.judge.verdict import Level
from harness.trace.marks import FileMatch, FileSeen, HomeSearched
from tests.rules.case import Case, Found, opened
from tests.rules.cases_archiving import archives
from tests.rules.traces import THREAD, Talk, settings, stored_plain_turn, thread_object

HOME = "/home/user/.agent"
IN_USE = f"{HOME}/sessions/{THREAD}.jsonl"
PUT_AWAY = f"{HOME}/archived/{THREAD}.jsonl"
THE_THREAD = f"thread {THREAD}"
SECRET, OTHER = "said in no file", "thr_2"


def sees(talk: Talk, path: str = IN_USE, content: str = "one", *, folder: bool = True) -> Talk:
    """Add a mark of a file that exists."""
    size = len(content)
    return talk.mark(FileSeen(path=path, exists=True, size=size, sha256=content, folder=folder))


def misses(talk: Talk, path: str = IN_USE, *elsewhere: str, folder: bool = True) -> Talk:
    """Add a mark of a file that does not exist."""
    seen = FileSeen(path=path, exists=False, folder=folder, elsewhere=elsewhere)
    return talk.mark(seen)


def kept() -> Talk:
    """Return a talk with a thread with a turn, read with its turns: seqs 0 to 16."""
    return opened().plain_turn().read(stored_plain_turn())


def put_away(talk: Talk | None = None) -> Talk:
    """Archive the thread of `talk`, by default of `kept()` with its file seen: seqs 0 to 19."""
    return archives(sees(kept()) if talk is None else talk)


def listed(talk: Talk, path: str = PUT_AWAY) -> Talk:
    """Add thread/list of the archive: two messages."""
    shown = thread_object(path=path, preview="hello", status={"type": "notLoaded"})
    talk.asks("thread/list", archived=True)
    return talk.answers({"data": [shown], "nextCursor": None})


def brought_back(talk: Talk, path: str = IN_USE) -> Talk:
    """Add thread/unarchive, its result and thread/unarchived: three messages."""
    talk.asks("thread/unarchive", threadId=THREAD)
    shown = thread_object(path=path, preview="hello", status={"type": "notLoaded"})
    return talk.answers({"thread": shown}).tells("thread/unarchived", threadId=THREAD)


def with_ephemeral() -> Talk:
    """Return a talk with a stored thread with a seen file, and an ephemeral one: seqs 0 to 31."""
    talk = sees(kept()).asks("thread/start", ephemeral=True)
    shown = thread_object(OTHER, ephemeral=True, path=None)
    talk.answers({"thread": shown, **settings()}).tells("thread/started", thread=shown)
    talk.start_turn("turn_2", OTHER, SECRET).message("m2", "Yes.", turn="turn_2", thread=OTHER)
    return talk.end_turn("turn_2", OTHER)


def searched(talk: Talk, *found: FileMatch, **more: Any) -> Talk:
    """Add a search of the home for both threads' ids and for the ephemeral one's text."""
    texts = (THREAD, OTHER, SECRET)
    return talk.mark(HomeSearched(texts=texts, found=found, files=9, **more))


def found_of_the_ephemeral() -> tuple[FileMatch, ...]:
    """Return matches for the ephemeral thread: its own file, a log, two files with only its id."""
    return (
        FileMatch(f"{HOME}/sessions/{OTHER}.jsonl", (OTHER,), (OTHER, SECRET)),
        FileMatch(f"{HOME}/log.txt", (), (THREAD, OTHER, SECRET)),
        FileMatch(f"{HOME}/state.db", (), (OTHER,)),
        FileMatch(f"{HOME}/shells/{OTHER}.sh", (OTHER,), ()),
    )


CASES = [
    Case(
        rule="rollout.at-its-path",
        good=misses(sees(opened().plain_turn()), "/home/user/other"),
        witnesses=(THE_THREAD,),
        bad=misses(kept()),
        found=(Found(THE_THREAD, (16,)),),
        # A server writes when it likes; and this one may run on another machine.
        not_exercised=misses(misses(opened()).plain_turn(), folder=False),
    ),
    Case(
        rule="archive.file-moved",
        good=sees(listed(misses(put_away(), IN_USE, PUT_AWAY)), PUT_AWAY),
        witnesses=(THE_THREAD,),
        bad=sees(listed(misses(sees(put_away()))), PUT_AWAY, "another"),
        found=(
            Found(THE_THREAD, (17, 18, 19)),
            Found(THE_THREAD, (17, 18, 19), Level.SHOULD),
            Found(THE_THREAD, (17, 18, 19), Level.SHOULD),
        ),
        # Nobody saw it before.
        not_exercised=misses(put_away(kept())),
    ),
    Case(
        rule="unarchive.file-back",
        good=sees(brought_back(listed(put_away()))),
        witnesses=(THE_THREAD,),
        bad=sees(misses(sees(brought_back(listed(put_away())), PUT_AWAY)), IN_USE, "another"),
        found=(
            Found(THE_THREAD, (22, 23, 24)),
            Found(THE_THREAD, (22, 23, 24)),
            Found(THE_THREAD, (22, 23, 24), Level.SHOULD),
        ),
        not_exercised=misses(brought_back(put_away(kept()))),
    ),
    Case(
        rule="ephemeral.not-stored",
        good=searched(with_ephemeral(), FileMatch(f"{HOME}/state.db", (), (OTHER,))),
        witnesses=(f"thread {OTHER}",),
        bad=searched(with_ephemeral(), *found_of_the_ephemeral()),
        found=(
            Found(f"thread {OTHER}", (18,)),
            Found(f"thread {OTHER}", (18,), Level.SHOULD),
            Found(f"thread {OTHER}", (18,), Level.INFO),
        ),
        not_exercised=searched(kept(), FileMatch(IN_USE, (THREAD,), (THREAD,))),
    ),
]
