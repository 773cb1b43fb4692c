"""Rows about the progress of a turn: the model is asked, answers, is steered, uses a tool."""

from typing import Any

import pytest

from harness.protocol.dialects.table import DropRow, HoldRow, NotificationRow, load_dialect
from reference_server.dialect.progress import MAX_TURNS, Progress
from reference_server.dialect.transport import DialectTransport
from tests.unit.dialects.test_dialect_transport import Wire
from tests.unit.dialects.test_sequence import COMPLETED, STARTED, USAGE, methods, note

pytestmark = pytest.mark.anyio

ASKED = NotificationRow(
    "asked", {}, before="item/started agentMessage", needs=("{progress.asked}",)
)


def item(event: str, kind: str, status: str = "", identifier: str = "item_1") -> dict[str, Any]:
    body: dict[str, Any] = {"type": kind, "id": identifier, "content": [], "text": ""}
    if kind == "commandExecution":
        body |= {"command": ["true"], "commandActions": [], "cwd": "/"}
    if status:
        body["status"] = status
    return note(f"item/{event}", turnId="turn_1", item=body)


def steps(written: list[Any]) -> list[str]:
    """Return the methods, without the common beginnings, and the types of items."""
    return [
        " ".join(filter(None, (one["method"], one["params"].get("item", {}).get("type"))))
        for one in written
    ]


def rows_of(release: str, kind: str, *names: str) -> tuple[Any, ...]:
    rows = getattr(load_dialect(release), kind)
    return tuple(row for row in rows if row.method in names)


USER = (item("started", "userMessage"), item("completed", "userMessage"))
ANSWER = item("started", "agentMessage", identifier="item_2")


async def test_the_model_is_asked_after_a_message_a_tool_and_a_used_answer() -> None:
    wire = Wire(notifications=(ASKED,), holds=(), drops=())
    written = await wire.written(STARTED, *USER, ANSWER, ANSWER, USAGE, ANSWER)
    assert methods(written).count("asked") == 2
    tool = item("completed", "commandExecution", "completed")
    assert "asked" in methods(await wire.written(tool, ANSWER))


async def test_each_client_has_its_own_progress() -> None:
    first = Wire(notifications=(ASKED,), holds=(), drops=())
    second = Wire(notifications=(ASKED,), holds=(), drops=())
    dialect = first.edge._dialect  # pyright: ignore[reportPrivateUsage]
    second.edge = DialectTransport(second.lines, dialect, "/home", first.edge.memory)
    for wire in (first, second):
        assert "asked" in methods(await wire.written(STARTED, *USER, ANSWER))


async def test_a_steering_message_waits_for_the_end_of_the_answer_in_the_older_release() -> None:
    holds = rows_of("codex-0.107", "holds", "item/started", "item/started userMessage")
    wire = Wire(notifications=(), holds=holds, drops=())
    assert "item/started userMessage" in steps(await wire.written(STARTED, *USER, ANSWER))
    assert await wire.written(USER[0]) == []
    written = await wire.written(USAGE)
    assert steps(written) == ["thread/tokenUsage/updated", "item/started userMessage"]


async def test_a_steered_answer_is_cut_in_the_newer_release() -> None:
    names = ("item/agentMessage/delta", "item/completed agentMessage", "thread/tokenUsage/updated")
    wire = Wire(notifications=(), holds=(), drops=rows_of("codex-0.169", "drops", *names))
    await wire.written(STARTED, *USER, ANSWER, *USER)
    delta = note("item/agentMessage/delta", turnId="turn_1", itemId="item_2", delta="cut")
    completed = item("completed", "agentMessage", identifier="item_2")
    assert await wire.written(delta, completed, USAGE) == []
    assert len(await wire.written(delta, completed, USAGE)) == 3


async def test_a_message_during_a_tool_waits_for_its_end() -> None:
    holds = rows_of("codex-0.169", "holds", "item/started userMessage")
    wire = Wire(notifications=(), holds=holds, drops=())
    await wire.written(STARTED, *USER, item("started", "commandExecution", "inProgress"))
    assert await wire.written(USER[0]) == []
    written = await wire.written(item("completed", "commandExecution", "completed"))
    assert steps(written) == ["item/completed commandExecution", "item/started userMessage"]


async def test_a_held_step_ends_other_held_steps_when_it_is_written() -> None:
    rows = (
        HoldRow("thread/tokenUsage/updated", ("item/started userMessage",)),
        HoldRow("item/started userMessage", ("turn/completed",), after=True),
    )
    wire = Wire(notifications=(), holds=rows, drops=())
    assert steps(await wire.written(STARTED, USAGE, USER[0])) == ["turn/started"]
    assert steps(await wire.written(COMPLETED)) == [
        "turn/completed",
        "thread/tokenUsage/updated",
        "item/started userMessage",
    ]


async def test_a_dropped_step_takes_the_held_ones_with_it_that_it_loses() -> None:
    failed = "item/completed fileChange failed"
    hold = HoldRow("item/started fileChange", ("item/completed fileChange",), lost=(failed,))
    wire = Wire(notifications=(), holds=(hold,), drops=(DropRow("", "", failed),))
    start = item("started", "fileChange", "inProgress")
    assert await wire.written(start, item("completed", "fileChange", "failed")) == []
    written = await wire.written(start, item("completed", "fileChange", "completed"))
    assert steps(written) == ["item/started fileChange", "item/completed fileChange"]


@pytest.mark.parametrize(
    ("following", "is_written"),
    [("error", False), ("item/started", False), ("thread/archived", True)],
)
async def test_an_addition_can_wait_for_the_message_that_decides_on_it(
    following: str, is_written: bool
) -> None:
    row = NotificationRow("begun", {}, after="turn/started", lost=("error", "item/started"))
    wire = Wire(notifications=(row,), holds=(), drops=())
    assert methods(await wire.written(STARTED)) == ["turn/started"]
    error = {"message": "no", "agentErrorInfo": "Other", "additionalDetails": None}
    message = note(following, turnId="turn_1", error=error, willRetry=False)
    assert methods(await wire.written(message)) == ["begun"] * is_written + [following]


async def test_a_notification_can_be_written_for_each_element_of_a_list() -> None:
    row = NotificationRow("seen", {"n": "{each}"}, after="turn/started", each="{.turn.names}")
    wire = Wire(notifications=(row,), holds=(), drops=())
    turn = {"id": "turn_1", "items": [], "status": "inProgress", "error": None, "names": ["a", "b"]}
    written = await wire.written(note("turn/started", turn=turn))
    assert [one["params"] for one in written if one["method"] == "seen"] == [{"n": "a"}, {"n": "b"}]


def test_only_the_newest_turns_are_remembered() -> None:
    progress = Progress()
    first = progress.of({"turnId": "turn_0"})
    for number in range(1, MAX_TURNS + 1):
        progress.of({"turnId": f"turn_{number}"})
    assert progress.of({"turnId": "turn_0"}) is not first
