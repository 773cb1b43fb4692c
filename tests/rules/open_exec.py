"""Other choices at open points of the events of `agent exec`."""

from tests.rules.open_point import Otherwise
from tests.rules.streams import THREAD, USAGE, StreamTalk, command, message

DONE = {"exit_code": 0, "aggregated_output": "a\n", "status": "completed"}


def usage_of_the_thread() -> StreamTalk:
    """The usage of the second turn counts the first one too."""
    talk = StreamTalk().turn()
    talk.process("more", thread=THREAD).opens().completed(message("Yes."))
    return talk.done(**{name: 2 * count for name, count in USAGE.items()})


def without_ids() -> StreamTalk:
    """No item has an id."""
    bare = {name: value for name, value in command().items() if name != "id"}
    talk = StreamTalk().process().opens().started(bare).completed({**bare, **DONE})
    return talk.completed(message("Yes.")).done()


def ids_again() -> StreamTalk:
    """Ids are numbers that begin anew in each turn."""
    talk = StreamTalk()
    for thread in ("", THREAD):
        talk.process(thread=thread).opens().completed(message("Yes.", id=0)).done()
    return talk


def other_words() -> StreamTalk:
    """The program has words of its own for the status of an item, and for the kind of a change."""
    talk = StreamTalk().process().opens().started(command(status="running"))
    talk.completed(command(**{**DONE, "status": "ok"}))
    change = {"path": "/a", "kind": "created"}
    return talk.completed({"type": "file_change", "changes": [change], "status": "ok"}).done()


def leaves_out() -> StreamTalk:
    """Leaves out what has no value yet."""
    begun = command()
    del begun["exit_code"], begun["aggregated_output"]
    return StreamTalk().process().opens().started(begun).completed(command(**DONE)).done()


def updates_all() -> StreamTalk:
    """The program starts and updates every item, messages too."""
    talk = StreamTalk().process().opens().started(message("", id="i-1"))
    talk.updated(message("Ye", id="i-1")).completed(message("Yes.", id="i-1"))
    talk.started(command(id="i-2")).updated(command(id="i-2", aggregated_output="a"))
    return talk.completed(command(id="i-2", **DONE)).done()


def only_completed() -> StreamTalk:
    """The program reports each item only when it is completed."""
    return StreamTalk().process().opens().completed(command(**DONE)).done()


def always_one() -> StreamTalk:
    """The program exits with the same status after success and failure."""
    talk = StreamTalk().process().opens().completed(message("Yes."))
    talk.says("turn.completed", usage=USAGE).exits(3)
    return talk.process("again").opens().says("turn.failed", error={"message": "no"}).exits(3)


OTHERWISE = [
    Otherwise("sdk-usage.meaning", "tells that of the whole thread", usage_of_the_thread),
    Otherwise("sdk-item.ids", "gives items none", without_ids),
    Otherwise("sdk-item.ids", "has numbers that come again", ids_again),
    Otherwise("sdk-item.status-words", "has words of its own", other_words),
    Otherwise("sdk-item.kinds", "has words of its own", other_words),
    Otherwise("sdk-item.absent", "leaves the member out", leaves_out),
    Otherwise("sdk-item.updated-which", "updates every item", updates_all),
    Otherwise("sdk-item.started-which", "starts none", only_completed),
    Otherwise("sdk-child.exit-status", "always ends with 3", always_one),
]
