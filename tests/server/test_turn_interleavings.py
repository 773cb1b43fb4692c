"""Requests about a running turn in any order, at any moment: nothing is lost or duplicated.

What hypothesis chooses: what the model does (it speaks, calls tools, fails, breaks off, fills its
context), and when the client adds input, interrupts, starts another turn, a compaction or a review,
answers a question. What must hold is asked twice: here, of what the model was sent
and what is stored, and of the rules, by the whole conversation.
"""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from model_side import (
    CREATED,
    CUT,
    Reply,
    calls,
    completed,
    delta,
    done,
    function_call,
    http_error,
    message_item,
    opened,
    says,
)
from session_peer import Message, Peer, config, session

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.trace import End
from reference_server.engine.compaction import PREFIX

BOOK = load_book()
REPLIES = st.lists(
    st.sampled_from(["speak", "ask", "ask two", "fill", "fail", "break off"]), max_size=6
)
TALK = ["steer", "steer", "misdirect", "interrupt", "start", "look"]
ACTIONS = st.lists(
    st.sampled_from([*TALK, "open", "open", "decline", "cancel", "compact", "review"]),
    max_size=16,
)
FULL = {"input_tokens": 100, "output_tokens": 50, "total_tokens": 150}
SETTINGS = replace(
    config(stream_max_retries=1, retry_delay_ms=0), model_auto_compact_token_limit=100
)


class Client:
    """A client that may send many requests before it reads what came."""

    def __init__(self, peer: Peer, thread: str, gates: list[anyio.Event]) -> None:
        self.peer = peer
        self.thread = thread
        self.gates = gates
        self.steers: dict[int, str] = {}
        self.starts: dict[int, str] = {}
        self.works: list[int] = []
        self.answered: set[Any] = set()

    async def start(self) -> None:
        """Ask for a turn."""
        words = f"start {len(self.starts)}."
        sent = await self.peer.send("turn/start", {"threadId": self.thread, "input": said(words)})
        self.starts[sent] = words

    async def act(self, action: str) -> None:
        """Do one thing, and wait for nothing but with `look`."""
        where = {"threadId": self.thread}
        match action:
            case "steer" | "misdirect":
                words = f"steer {len(self.steers)}."
                turn = self.latest if action == "steer" else "turn_404"
                given_ = {**where, "expectedTurnId": turn, "input": said(words)}
                self.steers[await self.peer.send("turn/steer", given_)] = words
            case "interrupt":
                await self.peer.send("turn/interrupt", {**where, "turnId": self.latest})
            case "compact":
                self.works.append(await self.peer.send("thread/compact/start", where))
            case "review":
                target = {"type": "custom", "instructions": "Look."}
                self.works.append(await self.peer.send("review/start", {**where, "target": target}))
            case "start":
                await self.start()
            case "open":
                self.gates[max(len(self.peer.side.bodies) - 1, 0)].set()
            case "decline" | "cancel":
                await self.answer(action)
            case _:
                await self.peer.request("thread/read", where)

    async def answer(self, decision: str) -> None:
        """Answer all open questions."""
        for message in self.peer.seen:
            if (
                "requestApproval" in message.get("method", "")
                and message["id"] not in self.answered
            ):
                self.answered.add(message["id"])
                await self.peer.decide(message, decision)

    @property
    def latest(self) -> str:
        """The turn that was begun last, as far as the client knows."""
        return (self.begun or self.turns)[-1]

    @property
    def begun(self) -> list[str]:
        """The turns that were announced, compactions and reviews too."""
        return [params["turn"]["id"] for params in self.peer.params_of("turn/started")]

    @property
    def turns(self) -> list[str]:
        """The turns of the user that were granted."""
        return [answer["turn"]["id"] for answer in self._results(self.starts)]

    def _results(self, sent: Sequence[int] | dict[int, str]) -> list[Message]:
        answers = [m for m in self.peer.seen if m.get("id") in sent and "method" not in m]
        return [answer["result"] for answer in answers if "result" in answer]

    async def end(self) -> None:
        """Let everything come to its end."""
        for gate in self.gates:
            gate.set()
        for sent in (*self.starts, *self.steers, *self.works):
            await self.peer.answer(sent)
        while self.ended < len(self.turns) + len(self._results(self.works)):
            await self.answer("decline")
            await self.peer.receive()

    @property
    def ended(self) -> int:
        """Return the number of turn/completed messages."""
        return len(self.peer.params_of("turn/completed"))

    def granted(self) -> list[str]:
        """The inputs that were taken, in the order in which they were sent."""
        wanted = {**self.starts, **self.steers}
        taken = {
            m["id"]
            for m in self.peer.seen
            if m.get("id") in wanted and "method" not in m and "result" in m
        }
        return [wanted[sent] for sent in sorted(taken)]


def said(words: str) -> list[Message]:
    return [{"type": "text", "text": words}]


def reply(kind: str, gate: anyio.Event) -> Reply:
    match kind:
        case "ask":
            return Reply([gate, *calls("exec_command", cmd="echo a; touch made").parts])
        case "ask two":
            two = [function_call("exec_command", f"c{n}", cmd=f"touch made{n}") for n in (1, 2)]
            return Reply([CREATED, gate, *map(done, two, (0, 1)), completed()])
        case "fail":
            return http_error(500)
        case "break off":
            return Reply([CREATED, opened(), delta("I "), gate, CUT])
        case "fill":
            said = message_item("So much.")
            return Reply([CREATED, gate, done(said), completed(FULL)])
        case _:
            pass
    return Reply([CREATED, opened(), delta("I "), gate, done(message_item("I say.")), completed()])


def recorded(peer: Peer) -> Recorder:
    """Record the messages that the peer sends and reads, in that order."""
    recorder = Recorder()
    send_line, receive = peer.send_line, peer.receive

    async def sending(line: Any) -> None:
        recorder.record(line, Direction.TO_TARGET)
        await send_line(line)

    async def receiving() -> Message:
        message = await receive()
        recorder.record(json.dumps(message).encode(), Direction.FROM_TARGET)
        return message

    peer.send_line, peer.receive = sending, receiving  # pyright: ignore[reportAttributeAccessIssue]
    return recorder


async def converse(home: Path, kinds: Sequence[str], actions: Sequence[str]) -> None:
    gates = [anyio.Event() for _ in range(40)]
    replies = [reply(kind, gate) for kind, gate in zip(kinds, gates, strict=False)]
    replies += [reply("speak", gate) for gate in gates[len(kinds) :]]
    async with session(home, replies, settings=SETTINGS) as peer:
        recorder = recorded(peer)
        thread = await peer.start_thread(approvalPolicy="untrusted", cwd=str(home))
        client = Client(peer, thread, gates)
        await client.start()
        await peer.answer(next(iter(client.starts)))
        for action in actions:
            await client.act(action)
        await client.end()
        # A context that is full is compacted first.
        peer.side.replies[:] = [says("The end."), says("The end.")]
        await client.start()
        await client.end()
        read = await peer.request("thread/read", {"threadId": thread, "includeTurns": True})
        granted = client.granted()
        assert heard(peer.side.bodies[-1]) == granted
        assert shown(peer.completed_items("userMessage")) == granted
        turns = read["result"]["thread"]["turns"]
        assert shown([item for turn in turns for item in turn["items"]]) == granted
        assert [turn["id"] for turn in turns] == client.begun
        assert set(client.turns) <= set(client.begun)
        assert "inProgress" not in {turn["status"] for turn in turns}
        rows = judge(BOOK, trace_of(recorder), all_rules().values())
        bad = (Verdict.FAIL, Verdict.ERROR)
        assert [row for row in rows if row.verdict in bad and row.level is not Level.INFO] == []


def trace_of(recorder: Recorder) -> Any:
    recorder.trace.end = End.QUIESCENT
    return recorder.trace


def heard(body: Message) -> list[str]:
    return [
        part["text"]
        for item in body["input"]
        if item.get("role") == "user"
        for part in item["content"]
        if not part["text"].startswith(PREFIX)
    ]


def shown(items: Sequence[Message]) -> list[str]:
    return [item["content"][0]["text"] for item in items if item["type"] == "userMessage"]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(kinds=REPLIES, actions=ACTIONS)
@example(kinds=[], actions=["look", "steer", "interrupt", "steer", "start"])
@example(kinds=["ask"], actions=["open", "look", "steer", "decline", "interrupt", "look", "steer"])
@example(kinds=["ask two"], actions=["open", "look", "cancel", "look", "start"])
@example(kinds=["fill", "speak"], actions=["open", "look", "start", "steer", "open", "steer"])
@example(kinds=["speak", "speak"], actions=["open", "look", "compact", "look", "steer", "start"])
def test_whatever_is_granted_is_heard_shown_and_stored_once(
    kinds: list[str], actions: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as home:
        anyio.run(converse, Path(home), kinds, actions)
