"""Approval policies of `agent exec`, which cannot ask a user (docs/exec.md)."""

import pytest
from turns import play

pytestmark = pytest.mark.anyio

DONE = "[{message: done}]"
MAKES = "touch made"
READS = "ls"


@pytest.mark.parametrize(
    ("policy", "command", "status"),
    [
        ("never", MAKES, "completed"),
        ("on-failure", MAKES, "completed"),
        ("on-request", MAKES, "declined"),
        ("untrusted", MAKES, "declined"),
        ("untrusted", READS, "completed"),
        ("reject", MAKES, "declined"),
        ("reject", READS, "completed"),
    ],
)
async def test_a_command_that_must_be_asked_about_is_declined(
    tmp_path, policy: str, command: str, status: str
) -> None:
    played = await play(tmp_path, f"[{{run: '{command}'}}]", DONE, approval_policy=policy)
    (_, _), (_, item) = played.of_type("command_execution")
    assert item["status"] == status
    assert (item["exit_code"] is None) == (status == "declined")
    assert (tmp_path / "work/made").exists() == (status == "completed" and command == MAKES)
    assert (played.types[-1], played.status) == ("turn.completed", 0)


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        ("never", "completed"),
        ("on-failure", "completed"),
        ("on-request", "declined"),
        ("untrusted", "declined"),
        ("reject", "declined"),
    ],
)
async def test_a_file_change_that_must_be_asked_about_is_declined(
    tmp_path, policy: str, status: str
) -> None:
    played = await play(tmp_path, "[{patch: {add: {a: x}}}]", DONE, approval_policy=policy)
    (_, _), (_, item) = played.of_type("file_change")
    assert item["status"] == status
    assert (tmp_path / "work/a").exists() == (status == "completed")
    assert (played.types[-1], played.status) == ("turn.completed", 0)


async def test_a_command_outside_the_sandbox_is_declined_where_it_is_asked_about(tmp_path) -> None:
    run = "[{run: {command: 'touch made', escalate: true, reason: please}}]"
    played = await play(tmp_path, run, DONE, approval_policy="on-request")
    (_, _), (_, item) = played.of_type("command_execution")
    assert item["status"] == "declined"


@pytest.mark.usefixtures("bubblewrap")
@pytest.mark.parametrize(
    ("policy", "status"), [("never", "failed"), ("on-failure", "declined"), ("reject", "declined")]
)
async def test_a_command_that_the_sandbox_stops_is_not_run_again_outside(
    tmp_path, policy: str, status: str
) -> None:
    played = await play(
        tmp_path,
        f"[{{run: '{MAKES}'}}]",
        DONE,
        approval_policy=policy,
        sandbox_mode="read-only",
    )
    (_, _), (_, item) = played.of_type("command_execution")
    assert item["status"] == status
    assert not (tmp_path / "work/made").exists()


@pytest.mark.parametrize(("policy", "status"), [("never", "failed"), ("on-failure", "declined")])
async def test_a_file_change_that_the_sandbox_forbids(tmp_path, policy: str, status: str) -> None:
    played = await play(
        tmp_path,
        "[{patch: {add: {a: x}}}]",
        DONE,
        approval_policy=policy,
        sandbox_mode="read-only",
    )
    (_, _), (_, item) = played.of_type("file_change")
    assert item["status"] == status
    assert not (tmp_path / "work/a").exists()
