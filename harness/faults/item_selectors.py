"""Selectors of items' frames: start, end, deltas.

Only items of turns count that the client started and the server announced.
"""

from harness.faults.selectors import Selector, Verdict, notification
from harness.faults.site import FaultSite
from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.views import ItemView


def item_started(*types: str) -> Selector:
    """Select an item/started that is the first frame of its item, of these types if given."""

    def starts(site: FaultSite, frame: Frame) -> Verdict:
        item = item_in(site, frame)
        if site.notifications_of(item)[:1] != [frame] or (types and item.type not in types):
            return False
        return site.is_our_turn(item.turn)

    return _of_an_item("item/started").where(starts, " or ".join(types))


def item_completed(*types: str) -> Selector:
    """Select the first item/completed of an item that started once, of these types if given."""

    def completes(site: FaultSite, frame: Frame) -> Verdict:
        item = item_in(site, frame)
        if len(item.starts) != 1 or item.completions[:1] != [frame]:
            return False
        return (not types or item.type in types) and site.is_our_turn(item.turn)

    return _of_an_item("item/completed").where(completes, " or ".join(types))


def delta(*types: str, method: str = "") -> Selector:
    """Select a delta that is not empty, between the only item/started and the item/completed."""

    def streams(site: FaultSite, frame: Frame) -> Verdict:
        item = site.item_of(frame)
        if item is None or not text(obj(frame.params).get("delta")) or len(item.starts) != 1:
            return False
        if item.starts[0].seq > frame.seq or any(end.seq < frame.seq for end in item.completions):
            return False
        if method not in ("", frame.method) or (types and item.type not in types):
            return False
        return site.is_our_turn(item.turn)

    return Selector(f"{method or 'delta'} of {' or '.join(types) or 'an item'}", streams)


def delta_before_another(*types: str, method: str = "") -> Selector:
    """Select a delta that another delta of its item follows; decided when that or the end comes."""

    def has_next_delta(site: FaultSite, frame: Frame) -> Verdict:
        item = item_in(site, frame)
        return True if _next_delta(site, frame, method) else False if item.completions else None

    return delta(*types, method=method).where(has_next_delta, "before another one")


def last_delta(*types: str, method: str = "") -> Selector:
    """Select the last delta of its item; decided when the next one or the item's end comes."""

    def ends(site: FaultSite, frame: Frame) -> Verdict:
        item = item_in(site, frame)
        return False if _next_delta(site, frame, method) else True if item.completions else None

    return delta(*types, method=method).where(ends, "and no more")


def begun_and_streamed(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether a started item gets a delta before a server request about it or its end.

    Return None while that is unknown.
    """
    item = item_in(site, frame)
    if site.deltas(item):
        return True
    following = site.next_frame_of_item(frame)
    return False if item.completions or (following and following.kind is Kind.REQUEST) else None


def item_in(site: FaultSite, frame: Frame) -> ItemView:
    """Return the item of a frame. Raises `ValueError` if it has none."""
    item = site.item_of(frame)
    if item is None:
        raise ValueError(f"frame {frame.seq} is about no item")
    return item


def _next_delta(site: FaultSite, frame: Frame, method: str) -> Frame | None:
    later = [delta for delta in site.deltas(item_in(site, frame), method) if delta.seq > frame.seq]
    return later[0] if later else None


def _of_an_item(method: str) -> Selector:
    return notification(method).where(lambda site, f: site.item_of(f) is not None)
