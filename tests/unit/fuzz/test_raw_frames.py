"""Documents of raw frames: they are valid scenario files, and never change a thread."""

import json

import pytest

from harness.scenario.client_steps import SendRaw
from harness.scenario.loader import load_text
from harness.scenario.scenario_text import scenario_text
from harness.search.fuzz.frames import frame_document
from harness.search.fuzz.sessions.chooser import seeded_chooser

SEEDS = range(40)


def _sent(seed: int) -> list[bytes]:
    steps = frame_document(seeded_chooser(seed))["client"]
    return [SendRaw(**step["send_raw"]).raw for step in steps if "send_raw" in step]


@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_a_document_is_a_scenario_file_with_the_same_bytes(seed: int) -> None:
    document = frame_document(seeded_chooser(seed))
    loaded = load_text(scenario_text(document, "made"))
    assert loaded.document.value == document


def test_the_same_seed_sends_the_same_bytes_and_another_seed_others() -> None:
    assert _sent(5) == _sent(5)
    assert _sent(5) != _sent(6)


def test_each_raw_frame_ends_its_line_so_that_no_right_request_is_damaged() -> None:
    assert all(raw.endswith(b"\n") for seed in SEEDS for raw in _sent(seed))


def test_no_raw_frame_asks_for_anything_that_changes_a_thread() -> None:
    asked: set[str] = set()
    for raw in (raw for seed in SEEDS for raw in _sent(seed)):
        for line in raw.split(b"\n"):
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue
            method = value.get("method") if isinstance(value, dict) else None
            asked |= {method[:20]} if isinstance(method, str) else set()
    assert asked >= {"thread/loaded/list", "nobody/knowsThis"}
    assert asked <= {"thread/loaded/list", "nobody/knowsThis", "", "m" * 20, "2.0"}


def test_every_kind_of_bad_bytes_comes_up() -> None:
    everything = b"".join(raw for seed in SEEDS for raw in _sent(seed))
    for part in (
        b"\xff",
        b"\x00",
        b"\xed\xa0\x80",
        b"[" * 128,
        b'{"a":' * 30,
        b"\r\n",
        b"a" * 70_000,
    ):
        assert part in everything


def test_over_a_websocket_bytes_that_are_not_text_have_a_connection_of_their_own() -> None:
    """They must end the connection (RFC 6455, section 8.1); so may a message without an end."""
    documents = [frame_document(seeded_chooser(seed), by_websocket=True) for seed in range(60)]
    on_main, on_others = list[bytes](), dict[str, list[bytes]]()
    for number, document in enumerate(documents):
        opened: set[str] = set()
        for step in document["client"]:
            opened |= {step["connect"]} if "connect" in step else set()
            if "send_raw" not in step:
                continue
            body = SendRaw(**step["send_raw"])
            assert body.on in {"main", *opened}
            if body.on == "main":
                on_main.append(body.raw)
            else:
                on_others.setdefault(f"{number} {body.on}", []).append(body.raw)
    assert all(_is_text(raw) and raw.endswith(b"\n") for raw in on_main)
    messages = [b"".join(pieces) for pieces in on_others.values()]
    assert sum(not _is_text(message) for message in messages) > 10
    assert sum(not message.endswith(b"\n") for message in messages) > 5
    assert sum(len(pieces) > 1 for pieces in on_others.values()) > 5


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_document_for_a_websocket_is_a_scenario_file(seed: int) -> None:
    document = frame_document(seeded_chooser(seed), by_websocket=True)
    assert load_text(scenario_text(document, "made")).document.value == document


@pytest.mark.parametrize("length", [2, 4000, 4001, 60_000])
def test_bytes_whose_hex_digits_look_like_a_number_stay_a_text(length: int) -> None:
    step = {"send_raw": {"hex": "61" * (length // 2)}}
    document = {"title": "Digits", "model": {}, "client": [{"start_thread": {"as": "t"}}, step]}
    assert load_text(scenario_text(document, "made")).document.value == document


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
