"""Many stored threads, as years of use would leave them in a home of the reference server.

The files have the reference server's own format.
"""

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

PER_DAY = 40
FIRST_DAY = datetime(2016, 1, 1, 8, tzinfo=UTC)
FOLDERS = 50
"""Number of working directories, each with the same number of threads."""
RARE = 1000
"""One in this many threads has a provider, a source and a word that the others lack."""

Json = dict[str, Any]


def store(home: Path, count: int) -> None:
    """Write the rollout files of threads 1 to `count`, and the file of counters."""
    for number in range(1, count + 1):
        began = _began(number)
        folder = f"{home}/sessions/{began:%Y/%m/%d}"
        name = f"{folder}/rollout-{began:%Y-%m-%dT%H-%M-%S}-thr_{number}.jsonl"
        lines = b"".join(
            json.dumps(record, separators=(",", ":")).encode() + b"\n"
            for record in _records(number, began.timestamp())
        )
        try:
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600)
        except FileNotFoundError:
            os.makedirs(folder, mode=0o700)
            descriptor = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600)
        os.write(descriptor, lines)
        os.close(descriptor)
    home.joinpath("counters").write_text(f"threads {count} turns {count}\n")


def _began(number: int) -> datetime:
    day, of_day = divmod(number - 1, PER_DAY)
    return FIRST_DAY + timedelta(days=day, minutes=10 * of_day)


def _records(number: int, timestamp: float) -> Iterator[Json]:
    rare = number % RARE == 0
    turn = f"turn_{number}"
    settings: Json = {
        "model": "mock-model",
        "modelProvider": "rare" if rare else "mock",
        "cwd": f"/projects/part-{number % FOLDERS}",
        "approvalPolicy": "on-request",
        "sandbox": {"type": "readOnly", "access": {"type": "fullAccess"}},
    }
    words = f"Please look at part {number} of the project and {'Zebra' if rare else 'mend'} it."
    text_part = {"type": "text", "text": words}
    yield {
        "type": "thread",
        "at": timestamp,
        "version": 1,
        "id": f"thr_{number}",
        "source": "rare" if rare else "vscode",
        "settings": settings,
    }
    yield {"type": "turn-started", "at": timestamp, "turnId": turn, "settings": settings}
    user_item = {"type": "userMessage", "id": "item_1", "content": [text_part]}
    yield {"type": "item", "at": timestamp, "turnId": turn, "item": user_item}
    history_items = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": words}]}
    ]
    yield {"type": "history", "at": timestamp, "turnId": turn, "items": history_items}
    answer = {"type": "agentMessage", "id": "item_2", "text": "It is done. " * 20}
    # Shuffled, so that the order by update differs from that by creation.
    later = timestamp + number * 7919 % 86_400
    yield {"type": "item", "at": later, "turnId": turn, "item": answer}
    end = {"turnId": turn, "status": "completed", "error": None}
    yield {"type": "turn-completed", "at": later, **end}
