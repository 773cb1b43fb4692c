"""The models read what a shipping server (0.107.0) and its client said, as far as it is legal.

What a server of the wild writes beside the document must not break a reader; where it contradicts
the document, the refusal is listed here with the clause that settles it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.methods import BY_METHOD

FOLDER = Path(__file__).parents[3] / "fixtures" / "traces" / "real-0.107.0"

# Each contradicts the text: an array of strings (approval.command-array), the three words of
# item.web-search-action.
REFUSED = {
    ("item/commandExecution/requestApproval", "command"),
    ("item/started", "item.webSearch.action"),
    ("item/completed", "item.webSearch.action"),
}


class Said(NamedTuple):
    """One message that has a model: by whom, of what method, what it carries."""

    side: str
    method: str
    model: type[WireModel]
    value: Any


def said(recording: Path) -> Iterator[Said]:
    """The params and results of one recording, in its order."""
    asked: dict[tuple[str, Any], str] = {}
    for line in recording.read_text("utf-8").splitlines():
        entry = json.loads(line)
        message, side = entry.get("msg"), entry["dir"]
        if not isinstance(message, dict):
            continue
        if "method" in message:
            asked[side, message.get("id")] = message["method"]
            spec = BY_METHOD.get(message["method"])
            if spec and "params" in message:
                yield Said(side, spec.method, spec.params, message["params"])
        elif "result" in message:
            other = {"C>S": "S>C", "S>C": "C>S"}[side]
            spec = BY_METHOD.get(asked.get((other, message.get("id")), ""))
            if spec and spec.result:
                yield Said(side, spec.method, spec.result, message["result"])


def test_recordings_are_read_except_where_they_contradict_the_text() -> None:
    refused: set[tuple[str, str]] = set()
    read: set[type[WireModel]] = set()
    for recording in FOLDER.glob("*.jsonl"):
        for one in said(recording):
            if one.side == "S>C":
                try:
                    one.model.parse(one.value)
                    read.add(one.model)
                except ValidationError as error:
                    where = {".".join(map(str, part["loc"])) for part in error.errors()}
                    refused |= {(one.method, place) for place in where}
    assert refused == REFUSED
    assert len(read) > 35


def test_recordings_are_written_back_except_for_unknown_members() -> None:
    for recording in FOLDER.glob("*.jsonl"):
        for one in said(recording):
            try:
                written = one.model.parse(one.value).plain()
            except ValidationError:
                continue
            assert within(written, one.value, one.method), (recording.name, one.method)


def within(written: Any, original: Any, place: str) -> bool:
    """Return True if all written members equal the original's; an added `turns` must be empty."""
    if isinstance(written, dict) and isinstance(original, dict):
        return all(
            within(value, original[name], f"{place}.{name}")
            if name in original
            else (name, value) == ("turns", [])
            for name, value in written.items()
        )
    if isinstance(written, list) and isinstance(original, list):
        pairs = zip(written, original, strict=True)
        return all(within(one, other, place) for one, other in pairs)
    return type(written) is type(original) and written == original
