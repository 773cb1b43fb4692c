"""The choice of a server that gets bytes that are no message: an error, nothing, or a close."""

import pytest

from harness.judge.ledger.record import record_trace
from harness.protocol.spec.loading import load_book
from harness.trace.frame import Damage, DamageKind, Direction
from tests.rules.traces import Talk

BOOK = load_book()
NONSENSE, NOT_UTF8 = b"{nonsense", b'{"method": "x\xff"}'
ERROR = {"id": None, "error": {"code": -32700, "message": "not JSON"}}
CLOSED = Damage(DamageKind.CLOSED, "the server closed the connection: 1007 (invalid) not UTF-8")


class ClosingTalk(Talk):
    """A conversation whose server may close the connection."""

    def closes(self) -> "ClosingTalk":
        """The server closes a WebSocket with a code."""
        return self._write(b"", Direction.FROM_TARGET, damage=CLOSED)


def choices(talk: Talk) -> list[tuple[str, str]]:
    record = record_trace(BOOK, talk.trace())
    assert record.crashes == []
    return [
        (one.situation, one.value) for one in record.choices if one.point == "rpc.malformed-lines"
    ]


def sent(raw: bytes, connection: str = "c1") -> ClosingTalk:
    talk = ClosingTalk().start_thread()
    talk.on(connection).sends(raw, deliberate=True)
    return talk


@pytest.mark.parametrize(
    ("raw", "situation"), [(NONSENSE, ""), (NOT_UTF8, "not UTF-8")], ids=["nonsense", "not-utf8"]
)
def test_answer_names_whether_the_bytes_were_text(raw: bytes, situation: str) -> None:
    assert choices(sent(raw).says(ERROR)) == [(situation, "an error with a null id, -32700")]
    assert choices(sent(raw).closes()) == [(situation, "the connection is closed, 1007")]
    ignored = choices(sent(raw).plain_turn())
    assert ignored == [(situation, "no answer, and the connection lives on")]


def test_close_of_another_connection_answers_nothing() -> None:
    talk = sent(NOT_UTF8, "c2")
    talk.on("c1").closes()
    assert choices(talk) == [("not UTF-8", "not answered")]
