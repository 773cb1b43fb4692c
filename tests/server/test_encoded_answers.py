"""Compressed model answers that were not requested: decoded if possible, within bounds."""

import gzip
import json
import tracemalloc
import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from model_side import CREATED, CUT, Reply, completed, delta, message, opened
from session_peer import session

from reference_server.model.encoding import PIECE, decode

ANSWER = b"".join([CREATED, *message("Hello", " there"), completed()])
BODY = json.dumps({"error": {"message": "words of the provider"}}).encode()


def bare(data: bytes) -> bytes:
    return zlib.compress(data, wbits=-zlib.MAX_WBITS)


ENCODINGS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "GZip ": gzip.compress,
    "deflate": zlib.compress,
    "deflate ": bare,
    "identity": bytes,
}


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


async def failure(tmp_path, reply: Reply) -> dict[str, Any]:
    async with session(tmp_path, [reply]) as peer:
        end = await peer.run_turn(await peer.start_thread())
    assert end["status"] == "failed"
    return end["error"]


@pytest.mark.parametrize("size", [3, 1 << 20])
@pytest.mark.parametrize("name", ENCODINGS)
async def test_an_encoded_stream_is_read(tmp_path, name: str, size: int) -> None:
    reply = Reply(pieces(ENCODINGS[name](ANSWER), size), headers={"content-encoding": name})
    async with session(tmp_path, [reply]) as peer:
        assert (await peer.run_turn(await peer.start_thread()))["status"] == "completed"
    assert [item["text"] for item in peer.completed_items("agentMessage")] == ["Hello there"]


async def test_events_of_an_encoded_stream_are_told_as_they_come(tmp_path) -> None:
    encoder = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    begun = encoder.compress(CREATED + opened() + delta("early")) + encoder.flush(zlib.Z_SYNC_FLUSH)
    reply = Reply([begun, CUT], headers={"content-encoding": "gzip"})
    async with session(tmp_path, [reply]) as peer:
        await peer.run_turn(await peer.start_thread())
    assert [p["delta"] for p in peer.params_of("item/agentMessage/delta")] == ["early"]


async def test_several_gzip_members_are_one_stream(tmp_path) -> None:
    reply = Reply(
        [gzip.compress(part) for part in pieces(ANSWER, 40)], headers={"content-encoding": "gzip"}
    )
    async with session(tmp_path, [reply]) as peer:
        assert (await peer.run_turn(await peer.start_thread()))["status"] == "completed"


@pytest.mark.parametrize("name", [name for name in ENCODINGS if name != "identity"])
async def test_an_encoded_failure_is_read(tmp_path, name: str) -> None:
    reply = Reply([ENCODINGS[name](BODY)], 400, {"content-encoding": name})
    error = await failure(tmp_path, reply)
    assert error["agentErrorInfo"] == "BadRequest"
    assert error["additionalDetails"] == "words of the provider"


@pytest.mark.parametrize("name", ["br", "zstd", "gzip, gzip", "odd"])
@pytest.mark.parametrize("status", [200, 400])
async def test_an_encoding_that_is_not_read_is_named(tmp_path, name: str, status: int) -> None:
    reply = Reply([b"\x1b\x02\x00"], status, {"content-encoding": name})
    error = await failure(tmp_path, reply)
    info = "BadRequest" if status == 400 else "ResponseStreamDisconnected"
    assert error["agentErrorInfo"] == info
    assert f"encoded as {name}" in error["additionalDetails"]
    assert "identity" in error["additionalDetails"]


@pytest.mark.parametrize("status", [200, 500])
async def test_bytes_that_are_not_in_their_encoding_are_said_so(tmp_path, status: int) -> None:
    error = await failure(tmp_path, Reply([ANSWER], status, {"content-encoding": "gzip"}))
    assert "is not the gzip that its header names" in error["additionalDetails"]


async def test_a_failure_that_swells_is_read_as_far_as_any_other(tmp_path) -> None:
    bomb = gzip.compress(b"first words " + bytes(1 << 26))
    tracemalloc.start()
    try:
        error = await failure(tmp_path, Reply([bomb], 400, {"content-encoding": "gzip"}))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert error["additionalDetails"].startswith("first words ")
    assert peak < 1 << 24


async def test_a_large_decoded_answer_comes_in_pieces() -> None:
    async def source() -> AsyncIterator[bytes]:
        yield gzip.compress(bytes(1 << 22))

    sizes = [len(piece) async for piece in decode(source(), "gzip")]
    assert max(sizes) <= PIECE
    assert sum(sizes) == 1 << 22
