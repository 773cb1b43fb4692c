"""Faults of what the filters of thread/list let through, and of threads that are not loaded."""

from collections.abc import Callable
from typing import Any, TypeAlias

from harness.faults.base import Fault
from harness.faults.changes import first
from harness.faults.list_selectors import data, others, rests
from harness.faults.operators import Operator, edit, edit_by
from harness.faults.selectors import Fits, Selector, answer_to
from harness.faults.site import FaultSite
from harness.protocol.values import arr, dig, text
from harness.trace.frame import Frame, Kind

DATA = ("result", "data")
NAMED_KINDS = {"cli", "vscode"}
# The threads that a page must not have, by what was asked for.
Threads: TypeAlias = Callable[[FaultSite, Frame], list[dict[str, Any]]]


def asked_by(name: str, value: Fits) -> Selector:
    """A page that was asked for with a filter, where its value is right for the fault."""
    return answer_to("thread/list").where(
        lambda site, f: site.asked(f).get(name) is not None and value(site, f), f"by {name}"
    )


def outside_of_the_archive(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """The threads that a list of the archive must not show."""
    return others(site, frame) if site.asked(frame).get("archived") is True else []


def within_the_archive(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """The archived threads, for a page without a limit of a list that must not show them."""
    asked = site.asked(frame)
    whole = asked.get("limit") is None and asked.get("archived") is not True
    return others(site, frame, archived=True) if whole else []


def of_other_folders(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """The threads that show another folder than the one that was asked for."""
    name = text(site.asked(frame).get("cwd")).rstrip("/")
    last = name.rpartition("/")[2]
    return [one for one in others(site, frame) if folder(one) not in ("", last)]


def folder(thread: dict[str, Any]) -> str:
    """The last name in the path of a thread's folder."""
    return text(thread.get("cwd")).rstrip("/").rpartition("/")[2]


def of_other_providers(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """The threads that show none of the providers that were asked for."""
    asked = arr(site.asked(frame).get("modelProviders"))
    return [one for one in others(site, frame) if asked and one.get("modelProvider") not in asked]


def without_the_term(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """The threads of which nothing that was said holds the term that was asked for."""
    term = text(site.asked(frame).get("searchTerm")).encode()
    return [
        one
        for one in others(site, frame)
        if term
        and not any(term in said.raw and one["id"].encode() in said.raw for said in site.frames)
    ]


def in_another_case(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """Those of which the preview holds it in upper and lower case as it was not asked for."""
    term = text(site.asked(frame).get("searchTerm")).lower()
    threads = without_the_term(site, frame)
    return [one for one in threads if term in text(one.get("preview")).lower()]


def kinds(site: FaultSite, frame: Frame) -> set[str]:
    """The kinds that a list was asked for by."""
    return {text(kind) for kind in arr(site.asked(frame).get("sourceKinds"))}


def lists_by_kinds(site: FaultSite, frame: Frame) -> list[Frame]:
    """The earlier lists by kinds, with the same other params, that are whole as this one is."""
    apart = ("sourceKinds", "limit", "sortKey")
    besides = {k: v for k, v in site.asked(frame).items() if k not in apart and v is not None}
    if "cursor" in besides or dig(frame.result, "nextCursor") is not None:
        return []
    return [
        other
        for other in site.frames
        if other.seq < frame.seq
        and answer_to("thread/list").fits(site, other)
        and kinds(site, other)
        and dig(other.result, "nextCursor") is None
        and {k: v for k, v in site.asked(other).items() if k not in apart and v is not None}
        == besides
    ]


def untouched_since(site: FaultSite, other: Frame, frame: Frame, thread_id: str) -> bool:
    """Return whether a thread rested at an earlier list, and no message has named it since but
    lists.
    """
    request = site.request_of(other)
    between = [one for one in site.later(other) if one.seq < frame.seq]
    said = [one for one in between if not answer_to("thread/list").fits(site, one)]
    return (
        request is not None
        and rests(site, other, thread_id)
        and not any(thread_id.encode() in one.raw for one in said)
    )


def of_another_kind(site: FaultSite, frame: Frame) -> list[dict[str, Any]]:
    """The threads that an earlier list by the other of the two named kinds showed."""
    here = kinds(site, frame)
    return [
        thread
        for other in lists_by_kinds(site, frame)
        for thread in data(other)
        if here and here | kinds(site, other) <= NAMED_KINDS and not here & kinds(site, other)
        if untouched_since(site, other, frame, text(thread.get("id")))
    ]


def of_fewer_kinds(site: FaultSite, frame: Frame) -> list[str]:
    """The ids of the threads that an earlier list by fewer kinds showed too."""
    return [
        text(thread.get("id"))
        for other in lists_by_kinds(site, frame)
        for thread in data(other)
        if kinds(site, other) < kinds(site, frame)
        if untouched_since(site, other, frame, text(thread.get("id")))
    ]


def without_those(site: FaultSite, frame: Frame) -> list[Any]:
    """The threads of a page but for these."""
    gone = of_fewer_kinds(site, frame)
    return [thread for thread in data(frame) if thread.get("id") not in gone]


def unloaded(site: FaultSite, frame: Frame) -> list[str]:
    """The threads of ours that were told to be notLoaded, and that nothing has named since."""
    request = site.request_of(frame)
    found: list[str] = []
    for thread in site.conversation.threads.values() if request is not None else ():
        told = [one for one in thread.statuses if request is not None and one.seq < request.seq]
        if not told or dig(told[-1].params, "status", "type") != "notLoaded":
            continue
        later = [one for one in site.later(told[-1]) if thread.id.encode() in one.raw]
        used = [one for one in later if not harmless(site, one)]
        if site.our_thread(thread.id) and not used and not unanswered(site, told[-1]):
            found.append(thread.id)
    return found


def unanswered(site: FaultSite, told: Frame) -> bool:
    """Return whether a request that may load a thread was under way when that was told."""
    sent = {one for one in site.frames if one.kind is Kind.REQUEST and not one.from_target}
    loading = [one for one in sent if one.method in ("thread/resume", "turn/start", "thread/fork")]
    answers = [site.conversation.answer_of(one) for one in loading]
    return any(one is None or one.seq > told.seq for one in answers)


def harmless(site: FaultSite, frame: Frame) -> bool:
    """Return whether a message loads no thread, and says of none that it is loaded."""
    looking = ("thread/read", "thread/list", "thread/loaded/list", "thread/closed")
    request = site.request_of(frame)
    return frame.method in looking or (request is not None and request.method in looking)


def shown_unloaded(site: FaultSite, frame: Frame) -> int | None:
    """The place of the first thread on a page that is not loaded."""
    gone = unloaded(site, frame)
    places = [at for at, thread in enumerate(data(frame)) if thread.get("id") in gone]
    return places[0] if places else None


def with_it_idle(site: FaultSite, frame: Frame) -> list[Any]:
    """The threads of a page, with one idle that is not loaded."""
    place = shown_unloaded(site, frame)
    idle = {"status": {"type": "idle"}}
    return [{**one, **idle} if at == place else one for at, one in enumerate(data(frame))]


def with_one_unloaded(site: FaultSite, frame: Frame) -> list[Any]:
    """The ids of the threads in memory, and of one that is not."""
    return [*arr(dig(frame.result, "data")), unloaded(site, frame)[0]]


def added(find: Threads) -> Operator:
    """The operator that adds the first of some threads to a page."""

    def with_one_more(site: FaultSite, frame: Frame) -> list[Any]:
        page, more = data(frame), find(site, frame)[0]
        times = [created(thread) for thread in page]
        if times == sorted(times):
            return sorted([*page, more], key=created)
        return sorted([*page, more], key=created, reverse=True)

    return edit_by(*DATA, value=with_one_more)


def created(thread: dict[str, Any]) -> float:
    """The time when a thread was created, 0 where it shows none."""
    time = thread.get("createdAt")
    return time if isinstance(time, int | float) else 0


def can_have(find: Threads) -> Fits:
    """Return whether there is a thread that a page must not have."""
    return lambda site, frame: bool(find(site, frame))


FAULTS: tuple[Fault, ...] = (
    Fault(
        "list-of-the-archive-with-another-thread",
        rule="list.archived-apart",
        on="listed",
        reason="archived true lists archived threads only.",
        change=first(
            asked_by("archived", can_have(outside_of_the_archive)),
            added(outside_of_the_archive),
        ),
    ),
    Fault(
        "list-with-an-archived-thread",
        rule="list.archived-apart",
        on="listed",
        reason="Without archived, or with false or null, no archived thread is listed.",
        change=first(
            answer_to("thread/list").where(can_have(within_the_archive), "not of the archive"),
            added(within_the_archive),
        ),
    ),
    Fault(
        "list-by-folder-with-one-below",
        rule="list.cwd-exact",
        on="listed",
        reason="cwd is an exact match of the working directory.",
        change=first(
            asked_by("cwd", can_have(of_other_folders)),
            added(of_other_folders),
        ),
    ),
    Fault(
        "list-by-provider-with-another",
        rule="list.providers-kept",
        on="listed",
        reason="modelProviders keeps the named providers.",
        change=first(
            asked_by("modelProviders", can_have(of_other_providers)),
            added(of_other_providers),
        ),
    ),
    Fault(
        "list-by-term-with-another-thread",
        rule="list.title-holds-term",
        on="listed",
        reason="searchTerm is a substring of the title.",
        change=first(
            asked_by("searchTerm", can_have(without_the_term)),
            added(without_the_term),
        ),
    ),
    Fault(
        "list-by-term-in-any-case",
        rule="list.title-holds-term",
        on="listed",
        reason="searchTerm tells upper and lower case apart.",
        change=first(
            asked_by("searchTerm", can_have(in_another_case)),
            added(in_another_case),
        ),
    ),
    Fault(
        "list-by-kind-with-one-of-another",
        rule="list.source-kinds",
        on="listed",
        reason="sourceKinds keeps threads of the named kinds.",
        change=first(
            asked_by("sourceKinds", can_have(of_another_kind)),
            added(of_another_kind),
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
                lambda site, f: dig(f.result, "thread", "id") in unloaded(site, f),
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
                lambda site, f: bool(unloaded(site, f)), "while one is not loaded"
            ),
            edit_by(*DATA, value=with_one_unloaded),
        ),
    ),
)
