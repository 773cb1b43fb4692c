"""The time to resume and to fork a long thread, which is stored as a file beforehand.

The file has the reference server's own format, so no other server can be measured.
"""

from collections.abc import Iterator
from pathlib import Path

from harness.protocol.wire.input import TextInput
from harness.protocol.wire.item import (
    AgentMessageItem,
    CommandExecutionItem,
    FileChangeItem,
    FileUpdateChange,
    ListFilesAction,
    ReasoningItem,
    ThreadItem,
    UpdateKind,
    UserMessageItem,
)
from harness.protocol.wire.settings import DangerFullAccess
from harness.protocol.wire.thread import TokenCounts
from reference_server.rollout.records import (
    HistoryRecord,
    ItemRecord,
    Record,
    ThreadRecord,
    TurnCompletedRecord,
    TurnStartedRecord,
)
from reference_server.settings import ThreadSettings
from tools.bench.client import Client, monotonic
from tools.bench.measures import Cells, Json
from tools.bench.stats import median
from tools.bench.targets import Target

TURNS = 1000
SAMPLES = 7
_THREAD = "thr_1"
_BEGAN = 1_700_000_000.0
_TOKENS = TokenCounts(
    total_tokens=900,
    input_tokens=800,
    cached_input_tokens=0,
    output_tokens=100,
    reasoning_output_tokens=50,
)


def resume(target: Target, model_url: str) -> Cells:
    """Measure resuming a thread of 1,000 turns of five items, unsubscribed after each time."""
    seconds: list[float] = []
    with target.start(model_url, _write) as (client, _):
        client.request("initialize", target.greeting())
        for _ in range(SAMPLES):
            seconds.append(_time_request(client, "thread/resume", {"threadId": _THREAD}))
            client.request("thread/unsubscribe", {"threadId": _THREAD})
    return {"resume": median(seconds, scale=1000)}


def fork(target: Target, model_url: str) -> Cells:
    """Measure forking a thread of 1,000 turns that is not loaded."""
    with target.start(model_url, _write) as (client, _):
        client.request("initialize", target.greeting())
        seconds = [
            _time_request(client, "thread/fork", {"threadId": _THREAD}) for _ in range(SAMPLES)
        ]
    return {"fork": median(seconds, scale=1000)}


def _time_request(client: Client, method: str, params: Json) -> float:
    began = monotonic()
    client.read_until(b'"id":%d,"result"' % client.send(method, params))
    return monotonic() - began


def _write(home: Path) -> None:
    folder = home / "sessions" / "2023" / "11" / "14"
    folder.mkdir(parents=True)
    lines = b"".join(record.encode() + b"\n" for record in _records(str(home)))
    (folder / f"rollout-2023-11-14T22-13-20-{_THREAD}.jsonl").write_bytes(lines)


def _records(cwd: str) -> Iterator[Record]:
    settings = ThreadSettings(
        model="m",
        model_provider="mock",
        cwd=cwd,
        approval_policy="never",
        sandbox=DangerFullAccess(),
    )
    yield ThreadRecord(at=_BEGAN, id=_THREAD, settings=settings)
    for number in range(1, TURNS + 1):
        timestamp, turn = _BEGAN + number, f"turn_{number}"
        yield TurnStartedRecord(at=timestamp, turn_id=turn, settings=settings)
        for item in _items(number, cwd):
            yield ItemRecord(at=timestamp, turn_id=turn, item=item)
        for part in _conversation(number):
            yield HistoryRecord(at=timestamp, turn_id=turn, items=[part], tokens=_TOKENS)
        yield TurnCompletedRecord(at=timestamp, turn_id=turn, status="completed", error=None)


def _items(turn: int, cwd: str) -> list[ThreadItem]:
    def new_id(place: int) -> str:
        return f"item_{turn}_{place}"

    change = FileUpdateChange(
        path="notes.txt", kind=UpdateKind(move_path=None), diff="+line\n" * 20
    )
    return [
        UserMessageItem(id=new_id(1), content=[TextInput(text="Please do the next step. " * 8)]),
        ReasoningItem(
            id=new_id(2), summary=["What is there has to be read first. " * 5], content=[]
        ),
        CommandExecutionItem(
            id=new_id(3),
            command="bash -c ls",
            cwd=cwd,
            status="completed",
            command_actions=[ListFilesAction(command="ls", path=None)],
            aggregated_output="some-file.txt\n" * 40,
            exit_code=0,
            duration_ms=12,
        ),
        FileChangeItem(id=new_id(4), changes=[change], status="completed"),
        AgentMessageItem(id=new_id(5), text="The step is done, and the notes say so. " * 8),
    ]


def _conversation(turn: int) -> list[Json]:
    call = {"call_id": f"call_{turn}"}
    return [
        _message("user", "input_text", "Please do the next step. " * 8),
        {"type": "function_call", "name": "exec_command", "arguments": '{"cmd":"ls"}', **call},
        {"type": "function_call_output", "output": "some-file.txt\n" * 40, **call},
        _message("assistant", "output_text", "The step is done, and the notes say so. " * 8),
    ]


def _message(role: str, kind: str, text: str) -> Json:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
