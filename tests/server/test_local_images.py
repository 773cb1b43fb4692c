"""Reading of local images: formats, size limits, and a disk that hangs."""

import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from model_side import PIXEL, calls, says
from session_peer import config, session

from harness.protocol.wire.input import LocalImageInput
from harness.protocol.wire.settings import DangerFullAccess
from harness.protocol.wire.thread import ThreadStartParams
from reference_server.engine import images
from reference_server.engine.images import IMAGE_LIMIT, READERS, LocalImages, media_type
from reference_server.sandbox.sandbox import Sandbox
from reference_server.settings import ThreadSettings, settings_of_new_thread

pytestmark = pytest.mark.anyio
BOUND = 10.0


@pytest.mark.parametrize(
    ("beginning", "kind"),
    [
        (PIXEL, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\x10\0\0\0WAVEfmt ", None),
        (b"\x89PNG", None),
        (b"<svg xmlns='x'/>", None),
        (b"", None),
    ],
)
def test_an_image_is_known_by_its_first_bytes(beginning: bytes, kind: str | None) -> None:
    assert media_type(beginning) == kind


def settings_in(folder: Path) -> ThreadSettings:
    params = ThreadStartParams.parse({"cwd": str(folder)})
    return settings_of_new_thread(config(), params).model_copy(
        update={"sandbox": DangerFullAccess()}
    )


async def test_the_images_of_an_input_have_a_bound_together(tmp_path: Path) -> None:
    with (tmp_path / "a.png").open("wb") as file:
        file.write(PIXEL)
        file.truncate(IMAGE_LIMIT)
    given = [LocalImageInput(path="a.png") for _ in range(4)]
    parts = await LocalImages(Sandbox(tmp_path)).image_parts([*given], settings_in(tmp_path))
    assert [part["type"] for part in parts] == ["input_image"] * 2 + ["input_text"] * 2
    assert "larger than" in parts[2]["text"]


@pytest.fixture
def silent_disk(monkeypatch: pytest.MonkeyPatch):
    """Let no file be read until the test is over; gives what waits for a number of readers."""
    came, over = threading.Semaphore(0), threading.Event()

    def content(_self: object) -> bytes:
        came.release()
        over.wait(BOUND * 2)
        return PIXEL

    monkeypatch.setattr(images._Reading, "content", content)

    def reading(count: int) -> None:
        for _ in range(count):
            assert came.acquire(timeout=BOUND)

    yield reading
    over.set()


async def test_a_turn_is_interrupted_while_the_disk_does_not_answer(
    tmp_path: Path, silent_disk: Callable[[int], None]
) -> None:
    async with session(tmp_path, [calls("view_image", path="a.png"), says("b")]) as peer:
        thread = await peer.start_thread(cwd=str(tmp_path))
        picture = [{"type": "localImage", "path": "a.png"}]
        for given in ({}, {"input": picture}):
            turn = await peer.start_turn(thread, "hi", **given)
            await anyio.to_thread.run_sync(silent_disk, 1)
            await peer.request("turn/interrupt", {"threadId": thread, "turnId": turn})
            assert (await peer.turn_end(turn))["status"] == "interrupted"
        assert (await peer.run_turn(thread, "go on"))["status"] == "completed"
        words = str(peer.side.bodies[-1]["input"])
    assert "could not be read: the turn was interrupted" in words


async def test_disks_that_never_answer_hold_up_no_other_image_for_long(
    tmp_path: Path, silent_disk: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(images, "READING_TIME", 0.05)
    local = LocalImages(Sandbox(tmp_path))
    given = [LocalImageInput(path="a.png") for _ in range(READERS + 2)]
    with anyio.fail_after(BOUND):
        parts = await local.image_parts([*given], settings_in(tmp_path))
    assert all("was not read within" in part["text"] for part in parts)
