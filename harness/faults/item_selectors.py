"""Selectors of items' frames: start, end, deltas.

Items are those of turns that we started and that were announced, as in `selectors`.
"""

from harness.faults.selectors import Selector, Verdict, notification
from harness.faults.site import FaultSite
from harness.protocol.values import obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.views import ItemView


def item_started(*types: str) -> Selector:
    """The start of an item, of which nothing was told before; of one of these types if given."""

    def starts(site: FaultSite, frame: Frame) -> Verdict:
        item = item_in(site, frame)
        if site.about(item)[:1] != [frame] or (types and item.type not in types):
            return False
        return site.ours(item.turn)

    return _of_an_item("item/started").where(starts, " or ".join(types))


def item_completed(*types: str) -> Selector:
    """The first item/completed of an item of such a turn, begun once before."""

    def completes(site: FaultSite, frame: Frame) -> Verdict:
        item = item_in(site, frame)
        if len(item.started) != 1 or item.completed[:1] != [frame]:
            return False
        return (not types or item.type in types) and site.ours(item.turn)

    return _of_an_item("item/completed").where(completes, " or ".join(types))


def delta(*types: str, method: str = "") -> Selector:
    """A delta with a text, of an item that was begun once and has not ended before."""

    def streams(site: FaultSite, frame: Frame) -> Verdict:
        item = site.item_of(frame)
        if item is None or not text(obj(frame.params).get("delta")) or len(item.started) != 1:
            return False
        if item.started[0].seq > frame.seq or any(one.seq < frame.seq for one in item.completed):
            return False
        if method not in ("", frame.method) or (types and item.type not in types):
            return False
        return site.ours(item.turn)

    return Selector(f"{method or 'delta'} of {' or '.join(types) or 'an item'}", streams)


def delta_before_another(*types: str, method: str = "") -> Selector:
    """A delta that is followed by another one of its item; known when that or the end comes."""

    def followed(site: FaultSite, frame: Frame) -> Verdict:
        item = item_in(site, frame)
        return True if _next_delta(site, frame, method) else False if item.completed else None

    return delta(*types, method=method).where(followed, "before another one")


def last_delta(*types: str, method: str = "") -> Selector:
    """The last delta of its item; known when the next one or the item's end comes."""

    def ends(site: FaultSite, frame: Frame) -> Verdict:
        item = item_in(site, frame)
        return False if _next_delta(site, frame, method) else True if item.completed else None

    return delta(*types, method=method).where(ends, "and no more")


def begun_and_streamed(site: FaultSite, frame: Frame) -> Verdict:
    """Return whether the item that a frame starts gets a delta.

    No longer, once it is asked about or ends.
    """
    item = item_in(site, frame)
    if site.deltas(item):
        return True
    asked = site.next_about_its_item(frame)
    return False if item.completed or (asked and asked.kind is Kind.REQUEST) else None


def item_in(site: FaultSite, frame: Frame) -> ItemView:
    """The item of a frame that was picked as one of an item."""
    item = site.item_of(frame)
    if item is None:
        raise ValueError(f"frame {frame.seq} is about no item")
    return item


def _next_delta(site: FaultSite, frame: Frame, method: str) -> Frame | None:
    later = [one for one in site.deltas(item_in(site, frame), method) if one.seq > frame.seq]
    return later[0] if later else None


def _of_an_item(method: str) -> Selector:
    return notification(method).where(lambda site, f: site.item_of(f) is not None)
