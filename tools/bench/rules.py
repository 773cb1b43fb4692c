"""Benchmark of all rules on a delta-heavy trace.

`python -m tools.bench.rules` prints frames a CPU second, bytes kept a frame and broken rules as
JSON. It runs as a process of its own, so that its memory can be measured.
"""

import gc
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import psutil

from harness.judge.judge import Judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.frame import Direction, Frame, Origin, classify, parse
from harness.trace.trace import End, Trace

FRAMES = 100_000
DELTAS_PER_TURN = 1_000
THREAD = "thr_1"
SETTLED = 0.25
"""Share of the trace after which memory is first measured: by then everything is loaded."""

Json = dict[str, Any]


class Talk:
    """Builder of the frames of a conversation that obeys the specification."""

    def __init__(self) -> None:
        self._seq = 0
        self._last_id = 0

    def start_thread(self) -> list[Frame]:
        """Return the frames that start a thread."""
        thread: Json = {
            "id": THREAD,
            "preview": "",
            "ephemeral": False,
            "modelProvider": "mock",
            "createdAt": 1_700_000_000,
            "updatedAt": 1_700_000_000,
            "status": {"type": "idle"},
            "path": "/home/sessions/rollout.jsonl",
            "cwd": "/work",
            "turns": [],
        }
        result: Json = {
            "thread": thread,
            "model": "mock-model",
            "modelProvider": "mock",
            "cwd": "/work",
            "approvalPolicy": "never",
            "sandbox": {"type": "dangerFullAccess"},
        }
        return [
            self._asks("thread/start", {}),
            self._answers(result),
            self._tells("thread/started", {"thread": thread}),
        ]

    def turn(self, number: int) -> list[Frame]:
        """Return the frames of one turn with one message of many deltas."""
        turn_id, item_id = f"turn_{number}", f"item_{number}"
        pieces = [f"word {piece} " for piece in range(DELTAS_PER_TURN)]
        text_part = {"type": "text", "text": f"go {number}"}
        ids: Json = {"threadId": THREAD, "turnId": turn_id}
        user: Json = {"type": "userMessage", "id": f"user_{number}", "content": [text_part]}
        empty: Json = {"type": "agentMessage", "id": item_id, "text": ""}
        running: Json = {"id": turn_id, "items": [], "status": "inProgress", "error": None}
        ended: Json = {**running, "status": "completed"}
        active: Json = {"type": "active", "activeFlags": []}
        delta: Json = {**ids, "itemId": item_id}
        return [
            self._asks("turn/start", {"threadId": THREAD, "input": [text_part]}),
            self._answers({"turn": running}),
            self._tells("turn/started", {"threadId": THREAD, "turn": running}),
            self._tells("thread/status/changed", {"threadId": THREAD, "status": active}),
            self._tells("item/started", {**ids, "item": user}),
            self._tells("item/completed", {**ids, "item": user}),
            self._tells("item/started", {**ids, "item": empty}),
            *(self._tells("item/agentMessage/delta", {**delta, "delta": one}) for one in pieces),
            self._tells("item/completed", {**ids, "item": {**empty, "text": "".join(pieces)}}),
            self._tells("thread/status/changed", {"threadId": THREAD, "status": {"type": "idle"}}),
            self._tells("turn/completed", {"threadId": THREAD, "turn": ended}),
        ]

    def _asks(self, method: str, params: Json) -> Frame:
        self._last_id += 1
        message = {"method": method, "id": self._last_id, "params": params}
        return self._frame(message, Direction.TO_TARGET)

    def _answers(self, result: Json) -> Frame:
        return self._frame({"id": self._last_id, "result": result}, Direction.FROM_TARGET)

    def _tells(self, method: str, params: Json) -> Frame:
        return self._frame({"method": method, "params": params}, Direction.FROM_TARGET)

    def _frame(self, message: Json, direction: Direction) -> Frame:
        raw = json.dumps(message, separators=(",", ":")).encode()
        value = parse(raw)
        origin = Origin.HARNESS if direction is Direction.TO_TARGET else Origin.TARGET
        self._seq += 1
        return Frame(
            seq=self._seq - 1,
            at=self._seq / 10_000,
            connection="c1",
            direction=direction,
            origin=origin,
            raw=raw,
            json=value,
            kind=classify(value),
        )


def turns(talk: Talk, frames: int) -> Iterator[list[Frame]]:
    """Yield whole turns, until they have at least `frames` frames together."""
    count, number = 0, 0
    while count < frames:
        number += 1
        turn = talk.turn(number)
        count += len(turn)
        yield turn


def measure(frames: int = FRAMES) -> Json:
    """Judge `frames` frames; return frames per CPU second, bytes kept per frame, and findings."""
    judge, talk = Judge(load_book(), Trace(), all_rules().values()), Talk()
    for frame in talk.start_thread():
        judge.feed(frame)
    judged, seconds = 0, 0.0
    settled: tuple[int, int] | None = None
    for turn in turns(talk, frames):
        began = time.process_time()
        for frame in turn:
            judge.feed(frame)
        seconds += time.process_time() - began
        judged += len(turn)
        if settled is None and judged >= SETTLED * frames:
            settled = judged, _memory()
    judged_before, before = settled or (0, 0)
    bytes_kept = (_memory() - before) / max(1, judged - judged_before)
    rows = judge.finish(End.QUIESCENT)
    bad = sorted({row.rule for row in rows if row.verdict in (Verdict.FAIL, Verdict.ERROR)})
    return {
        "frames_per_second": judged / seconds,
        "bytes_per_frame": bytes_kept,
        "frames": judged,
        "rules": len(all_rules()),
        "broken": bad,
    }


def _memory() -> int:
    gc.collect()
    return psutil.Process().memory_info().rss


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measure()) + "\n")
