"""Faults of the filters of thread/list, and of threads that are not loaded."""

from collections.abc import Callable
from typing import Any, TypeAlias

from harness.faults.base import Fault
from harness.faults.changes import first
from harness.faults.list_selectors import is_resting, page_threads, unlisted_threads
from harness.faults.operators import Operator, edit, edit_by
from harness.faults.selectors import Fits, Selector, answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind

DATA = ("result", "data")
NAMED_KINDS = {"cli", "vscode"}
# Finds the threads that a page must not have, by its request.
Threads: TypeAlias = Callable[[FaultSite, Frame], list[dict[str, Any]]]


def asked_by(name: str, value: Fits) -> Selector:
    """Select an answer to thread/list with a filter for which `value` holds."""
    return answer_to("thread/list").where(
        lambda site, f: site.params_of(f).get(name) is not None and value(site, f), f"by {name}"
    )


def outside_of_the_archive(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """Return the threads that a list of the archive must not show, [] for another list."""
    return unlisted_threads(site, frame) if site.params_of(frame).get("archived") is True else []


def within_the_archive(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """Return the archived threads, for a page without a limit of a list that must not show them."""
    params = site.params_of(frame)
    is_whole = params.get("limit") is None and params.get("archived") is not True
    return unlisted_threads(site, frame, archived=True) if is_whole else []


def of_other_folders(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """Return the threads that show another folder than the requested one."""
    name = text(site.params_of(frame).get("cwd")).rstrip("/")
    last = name.rpartition("/")[2]
    return [thread for thread in unlisted_threads(site, frame) if folder(thread) not in ("", last)]


def folder(thread: dict[str, Any]) -> str:
    """Return the last name in the path of a thread's folder."""
    return text(thread.get("cwd")).rstrip("/").rpartition("/")[2]


def of_other_providers(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """Return the threads that show none of the requested providers."""
    providers = arr(site.params_of(frame).get("modelProviders"))
    return [
        thread
        for thread in unlisted_threads(site, frame)
        if providers and thread.get("modelProvider") not in providers
    ]


def without_the_term(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """Return the threads without the search term in any of their messages."""
    term = text(site.params_of(frame).get("searchTerm")).encode()
    return [
        thread
        for thread in unlisted_threads(site, frame)
        if term
        and not any(
            term in message.raw and thread["id"].encode() in message.raw for message in site.frames
        )
    ]


def named_so_before(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """Return the threads whose name had the search term, before it was replaced by another."""
    term = text(site.params_of(frame).get("searchTerm"))
    names: dict[str, list[str]] = {}
    for message in site.frames:
        params = obj(message.params)
        if message.method == "thread/name/set":
            names.setdefault(text(params.get("threadId")), []).append(text(params.get("name")))
    return [
        # Shown without a name, since it was last shown with the former one.
        {key: value for key, value in thread.items() if key != "name"}
        for thread in unlisted_threads(site, frame)
        if (given := names.get(thread["id"], [""]))
        if term and term not in given[-1] and any(term in name for name in given)
    ]


def in_another_case(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """Return the threads whose preview has the search term, but in another case."""
    term = text(site.params_of(frame).get("searchTerm")).lower()
    threads = without_the_term(site, frame)
    return [thread for thread in threads if term in text(thread.get("preview")).lower()]


def kinds(site: FaultSite, frame: Frame) -> set[str]:
    """Return the `sourceKinds` with which a list was requested."""
    return {text(kind) for kind in arr(site.params_of(frame).get("sourceKinds"))}


def lists_by_kinds(site: FaultSite, frame: Frame) -> list[Frame]:
    """Return the earlier whole lists by kinds with the same other params."""
    apart = ("sourceKinds", "limit", "sortKey")
    besides = {k: v for k, v in site.params_of(frame).items() if k not in apart and v is not None}
    if "cursor" in besides or dig(frame.result, "nextCursor") is not None:
        return []
    return [
        other
        for other in site.frames
        if other.seq < frame.seq
        and answer_to("thread/list").fits(site, other)
        and kinds(site, other)
        and dig(other.result, "nextCursor") is None
        and {k: v for k, v in site.params_of(other).items() if k not in apart and v is not None}
        == besides
    ]


def untouched_since(site: FaultSite, other: Frame, frame: Frame, thread_id: str) -> bool:
    """Return whether a thread was at rest at an earlier list, and only lists named it since."""
    request = site.request_of(other)
    between = [f for f in site.frames_after(other) if f.seq < frame.seq]
    messages = [message for message in between if not answer_to("thread/list").fits(site, message)]
    return (
        request is not None
        and is_resting(site, other, thread_id)
        and not any(thread_id.encode() in message.raw for message in messages)
    )


def of_another_kind(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """Return the threads that an earlier list by the other of the two named kinds showed."""
    own_kinds = kinds(site, frame)
    return [
        thread
        for other in lists_by_kinds(site, frame)
        for thread in page_threads(other)
        if own_kinds
        and own_kinds | kinds(site, other) <= NAMED_KINDS
        and not own_kinds & kinds(site, other)
        if untouched_since(site, other, frame, text(thread.get("id")))
    ]


def of_fewer_kinds(site: FaultSite, frame: Frame) -> list[str]:
    """Return the ids of the threads that an earlier list by fewer kinds showed too."""
    return [
        text(thread.get("id"))
        for other in lists_by_kinds(site, frame)
        for thread in page_threads(other)
        if kinds(site, other) < kinds(site, frame)
        if untouched_since(site, other, frame, text(thread.get("id")))
    ]


def without_those(site: FaultSite, frame: Frame) -> list[Any]:
    """Return the threads of a page without those that a list by fewer kinds showed."""
    dropped = of_fewer_kinds(site, frame)
    return [thread for thread in page_threads(frame) if thread.get("id") not in dropped]


def unloaded_threads(site: FaultSite, frame: Frame) -> list[str]:
    """Return the ids of this client's threads that became notLoaded and were only read since."""
    request = site.request_of(frame)
    thread_ids: list[str] = []
    for thread in site.conversation.threads.values() if request is not None else ():
        changes = [
            status for status in thread.statuses if request is not None and status.seq < request.seq
        ]
        if not changes or dig(changes[-1].params, "status", "type") != "notLoaded":
            continue
        later = [f for f in site.frames_after(changes[-1]) if thread.id.encode() in f.raw]
        used = [other for other in later if not is_harmless(site, other)]
        if site.is_our_thread(thread.id) and not used and not load_was_pending(site, changes[-1]):
            thread_ids.append(thread.id)
    return thread_ids


def load_was_pending(site: FaultSite, notification: Frame) -> bool:
    """Return whether a request that may load a thread was open at a notification."""
    sent = {frame for frame in site.frames if frame.kind is Kind.REQUEST and not frame.from_target}
    loading = [
        request
        for request in sent
        if request.method in ("thread/resume", "turn/start", "thread/fork")
    ]
    answers = [site.conversation.answer_of(request) for request in loading]
    return any(answer is None or answer.seq > notification.seq for answer in answers)


def is_harmless(site: FaultSite, frame: Frame) -> bool:
    """Return whether a message neither loads a thread nor shows one as loaded."""
    reading = ("thread/read", "thread/list", "thread/loaded/list", "thread/closed")
    request = site.request_of(frame)
    return frame.method in reading or (request is not None and request.method in reading)


def shown_unloaded(site: FaultSite, frame: Frame) -> int | None:
    """Return the index of the first thread on a page that is not loaded, None if all are."""
    unloaded = unloaded_threads(site, frame)
    places = [
        index for index, thread in enumerate(page_threads(frame)) if thread.get("id") in unloaded
    ]
    return places[0] if places else None


def with_it_idle(site: FaultSite, frame: Frame) -> list[Any]:
    """Return the threads of a page, the first one that is not loaded as idle."""
    place = shown_unloaded(site, frame)
    idle = {"status": {"type": "idle"}}
    return [
        {**thread, **idle} if index == place else thread
        for index, thread in enumerate(page_threads(frame))
    ]


def with_one_unloaded(site: FaultSite, frame: Frame) -> list[Any]:
    """Return the ids of the threads in memory, and of one that is not."""
    return [*arr(dig(frame.result, "data")), unloaded_threads(site, frame)[0]]


def add_thread(find: Threads) -> Operator:
    """Return an operator that adds the first thread of `find` to a page, in its order."""

    def with_one_more(site: FaultSite, frame: Frame) -> list[Any]:
        page, more = page_threads(frame), find(site, frame)[0]
        times = [created_at(thread) for thread in page]
        if times == sorted(times):
            return sorted([*page, more], key=created_at)
        return sorted([*page, more], key=created_at, reverse=True)

    return edit_by(*DATA, value=with_one_more)


def created_at(thread: dict[str, Any]) -> float:
    """Return the time when a thread was created, 0 if it shows none."""
    time = thread.get("createdAt")
    return time if isinstance(time, int | float) else 0


def can_have(find: Threads) -> Fits:
    """Return a test whether `find` finds a thread."""
    return lambda site, frame: bool(find(site, frame))


FAULTS: tuple[Fault, ...] = (
    Fault(
        "list-of-the-archive-with-another-thread",
        rule="list.archived-apart",
        on="listed",
        reason="archived true lists archived threads only.",
        change=first(
            asked_by("archived", can_have(outside_of_the_archive)),
            add_thread(outside_of_the_archive),
        ),
    ),
    Fault(
        "list-with-an-archived-thread",
        rule="list.archived-apart",
        on="listed",
        reason="Without archived, or with false or null, no archived thread is listed.",
        change=first(
            answer_to("thread/list").where(can_have(within_the_archive), "not of the archive"),
            add_thread(within_the_archive),
        ),
    ),
    Fault(
        "list-by-folder-with-one-below",
        rule="list.cwd-exact",
        on="listed",
        reason="cwd is an exact match of the working directory.",
        change=first(asked_by("cwd", can_have(of_other_folders)), add_thread(of_other_folders)),
    ),
    Fault(
        "list-by-provider-with-another",
        rule="list.providers-kept",
        on="listed",
        reason="modelProviders keeps the named providers.",
        change=first(
            asked_by("modelProviders", can_have(of_other_providers)), add_thread(of_other_providers)
        ),
    ),
    Fault(
        "list-by-term-with-another-thread",
        rule="list.title-holds-term",
        on="listed",
        reason="searchTerm is a substring of the title.",
        change=first(
            asked_by("searchTerm", can_have(without_the_term)), add_thread(without_the_term)
        ),
    ),
    Fault(
        "list-by-term-in-any-case",
        rule="list.title-holds-term",
        on="listed",
        reason="searchTerm tells upper and lower case apart.",
        change=first(
            asked_by("searchTerm", can_have(in_another_case)), add_thread(in_another_case)
        ),
    ),
    Fault(
        "list-by-a-replaced-name",
        rule="list.old-name-gone",
        on="renamed",
        reason="A name that was replaced is no title of the thread any more.",
        change=first(
            asked_by("searchTerm", can_have(named_so_before)), add_thread(named_so_before)
        ),
    ),
    Fault(
        "list-by-kind-with-one-of-another",
        rule="list.source-kinds",
        on="listed",
        reason="sourceKinds keeps threads of the named kinds.",
        change=first(
            asked_by("sourceKinds", can_have(of_another_kind)), add_thread(of_another_kind)
        ),
    ),
    Fault(
        "list-by-more-kinds-without-those-of-one",
        rule="list.source-kinds",
        on="listed",
        reason="sourceKinds keeps threads of each of the named kinds.",
        change=first(
            asked_by("sourceKinds", lambda site, f: bool(of_fewer_kinds(site, f))),
            edit_by(*DATA, value=without_those),
        ),
    ),
    Fault(
        "unloaded-thread-listed-as-idle",
        rule="status.unloaded-shown",
        on="unloaded",
        reason="A thread that is not loaded is shown as notLoaded.",
        change=first(
            answer_to("thread/list").where(
                lambda site, f: shown_unloaded(site, f) is not None, "with one that is not loaded"
            ),
            edit_by(*DATA, value=with_it_idle),
        ),
    ),
    Fault(
        "unloaded-thread-read-as-idle",
        rule="status.unloaded-shown",
        on="unloaded",
        reason="A thread that is not loaded is shown as notLoaded.",
        change=first(
            answer_to("thread/read").where(
                lambda site, f: dig(f.result, "thread", "id") in unloaded_threads(site, f),
                "of one that is not loaded",
            ),
            edit("result", "thread", "status", to={"type": "idle"}),
        ),
    ),
    Fault(
        "unloaded-thread-among-those-in-memory",
        rule="status.not-loaded-not-in-memory",
        on="unloaded",
        reason="notLoaded means that the thread is not in memory.",
        change=first(
            answer_to("thread/loaded/list").where(
                lambda site, f: bool(unloaded_threads(site, f)), "while one is not loaded"
            ),
            edit_by(*DATA, value=with_one_unloaded),
        ),
    ),
)
