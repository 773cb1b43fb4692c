"""Clients that talk to the reference server: odd ones that are right, and broken ones.

They were written from the text alone: whatever a client may do that nobody expects is no finding,
and each broken one breaks exactly the duty that it was written for.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients.live_client import LiveClient, Message, live_client

pytestmark = pytest.mark.slow
COMMAND = "item/commandExecution/requestApproval"
FILE = "item/fileChange/requestApproval"


@pytest.fixture
def client(tmp_path: Path) -> Any:
    with live_client(tmp_path) as one:
        yield one


def decides(client: LiveClient, question: Message, decision: str) -> None:
    client.sends({"id": question["id"], "result": {"decision": decision}})


def test_a_client_that_pipelines_declines_and_answers_late_is_right(client: LiveClient) -> None:
    """All at once, ids of any number, answers after other requests, no reading in between."""
    client.asks("initialize", 0, clientInfo={"name": "odd", "version": "1"})
    client.sends({"jsonrpc": "2.0", "method": "initialized"})
    client.asks("thread/loaded/list", -7)
    client.asks("thread/list", 9007199254740991, cursor=None, limit=3, unheardOf=True)
    client.asks("thread/start", 2.5, cwd=str(client.folder), approvalPolicy="untrusted")
    thread = client.answer(2.5)["result"]["thread"]["id"]
    client.speaks(thread, 10**12)
    question = client.told(COMMAND)
    client.asks("thread/read", -1, threadId=thread, includeTurns=None)
    client.answer(-1)
    client.later(3600)
    decides(client, question, "decline")
    client.told("turn/completed")
    client.speaks(thread, 0)
    question = client.told(FILE)
    client.later(3600)
    decides(client, question, "decline")
    client.told("turn/completed")
    client.answer(client.asks("thread/unsubscribe", 0, threadId=thread))
    assert client.findings() == {}


def test_a_client_that_names_its_requests_is_recorded_and_not_failed(client: LiveClient) -> None:
    client.asks("initialize", "a", clientInfo={"name": "odd", "version": "1"})
    client.answer("a")
    client.sends({"method": "initialized"})
    client.asks("thread/start", "", cwd=str(client.folder), approvalPolicy="untrusted")
    thread = client.answer("")["result"]["thread"]["id"]
    client.speaks(thread, "a")
    decides(client, client.told(COMMAND), "cancel")
    client.told("turn/completed")
    assert client.findings() == {"duty.id-number": "INFO"}


def test_a_client_that_stops_a_turn_and_leaves_its_question_open_is_right(
    client: LiveClient,
) -> None:
    thread = client.starts()
    client.speaks(thread)
    turn = client.told(COMMAND)["params"]["turnId"]
    client.asks("turn/interrupt", threadId=thread, turnId=turn)
    client.told("turn/completed")
    client.later(60)
    assert client.findings() == {}


def test_a_client_without_a_handshake_that_hangs_up_is_only_recorded(client: LiveClient) -> None:
    client.asks("thread/start", cwd=str(client.folder), approvalPolicy="untrusted")
    client.speaks(client.told("thread/started")["params"]["thread"]["id"])
    client.told(COMMAND)
    assert client.findings() == {"duty.handshake-first": "INFO", "duty.answers": "INFO"}


def answers_nobody(client: LiveClient) -> None:
    client.greets().sends({"id": 41, "result": {"decision": "accept"}})


def answers_twice(client: LiveClient) -> None:
    client.speaks(client.starts())
    question = client.told(COMMAND)
    decides(client, question, "accept")
    decides(client, question, "accept")


def decides_by_a_word_of_its_own(client: LiveClient) -> None:
    client.speaks(client.starts())
    decides(client, client.told(COMMAND), "yes")


def answers_without_a_decision(client: LiveClient) -> None:
    client.speaks(client.starts())
    client.sends({"id": client.told(COMMAND)["id"], "result": {"approved": True}})


def cancels_a_patch(client: LiveClient) -> None:
    thread = client.starts()
    client.speaks(thread)
    decides(client, client.told(COMMAND), "accept")
    client.told("turn/completed")
    client.speaks(thread)
    decides(client, client.told(FILE), "cancel")


def ignores_a_question(client: LiveClient) -> None:
    client.speaks(client.starts())
    client.told(COMMAND)
    client.later(5)


def asks_before_it_greets(client: LiveClient) -> None:
    client.asks("thread/loaded/list")
    client.greets()


def never_greets(client: LiveClient) -> None:
    client.answer(client.asks("thread/loaded/list"))


def greets_by_half(client: LiveClient) -> None:
    client.answer(client.asks("initialize", clientInfo={"name": "odd", "version": "1"}))
    client.answer(client.asks("thread/loaded/list"))


def requests_initialized(client: LiveClient) -> None:
    client.answer(client.asks("initialize", clientInfo={"name": "odd", "version": "1"}))
    assert client.answer(client.asks("initialized"))["error"]["code"] == -32601


def asks_with_null_params(client: LiveClient) -> None:
    client.greets().sends({"method": "thread/loaded/list", "id": 99, "params": None}).answer(99)


def asks_without_params(client: LiveClient) -> None:
    client.greets().sends({"method": "thread/loaded/list", "id": 99}).answer(99)


def notifies_with_null_params(client: LiveClient) -> None:
    client.answer(client.asks("initialize", clientInfo={"name": "odd", "version": "1"}))
    client.sends({"method": "initialized", "params": None})


def answers_without_content(client: LiveClient) -> None:
    client.speaks(client.starts())
    client.sends({"id": client.told(COMMAND)["id"]}).later(5)


def forgets_the_input(client: LiveClient) -> None:
    client.answer(client.asks("turn/start", threadId=client.starts()))


def says_what_there_is_no_type_for(client: LiveClient) -> None:
    said = [{"type": "voice", "text": "hello"}]
    client.answer(client.asks("turn/start", threadId=client.starts(), input=said))


def sends_half_a_line(client: LiveClient) -> None:
    client.greets().sends(b'{"method": "thread/loaded/list", "id"')


def asks_twice_by_one_id(client: LiveClient) -> None:
    client.greets()
    client.asks("thread/loaded/list", 99)
    client.asks("thread/list", 99)


def steers_a_turn_of_its_own(client: LiveClient) -> None:
    thread = client.starts()
    client.speaks(thread)
    question = client.told(COMMAND)
    said = [{"type": "text", "text": "hurry"}]
    client.answer(client.asks("turn/steer", threadId=thread, input=said, expectedTurnId="my turn"))
    decides(client, question, "cancel")


def interrupts_by_the_id_of_the_thread(client: LiveClient) -> None:
    thread = client.starts()
    client.speaks(thread)
    question = client.told(COMMAND)
    client.answer(client.asks("turn/interrupt", threadId=thread, turnId=thread))
    decides(client, question, "cancel")


def makes_up_a_cursor(client: LiveClient) -> None:
    client.greets()
    client.answer(client.asks("thread/list"))
    client.answer(client.asks("thread/list", cursor="2"))


def tells_the_server(client: LiveClient) -> None:
    client.greets().sends({"method": "serverRequest/resolved", "params": {}})


BROKEN: dict[Callable[[LiveClient], None], str] = {
    answers_nobody: "duty.answer-known",
    answers_twice: "duty.answer-once",
    decides_by_a_word_of_its_own: "duty.decision-known",
    answers_without_a_decision: "duty.answer-form",
    cancels_a_patch: "duty.decision-known",
    ignores_a_question: "duty.answers",
    asks_before_it_greets: "duty.handshake-first",
    never_greets: "duty.handshake-first",
    greets_by_half: "duty.handshake-first",
    requests_initialized: "duty.handshake-first",
    asks_with_null_params: "duty.message-form",
    asks_without_params: "duty.message-form",
    notifies_with_null_params: "duty.message-form",
    answers_without_content: "duty.answer-form",
    forgets_the_input: "duty.params-complete",
    says_what_there_is_no_type_for: "duty.params-valid",
    sends_half_a_line: "duty.message-form",
    asks_twice_by_one_id: "duty.id-free",
    steers_a_turn_of_its_own: "duty.turn-known",
    interrupts_by_the_id_of_the_thread: "duty.turn-known",
    makes_up_a_cursor: "duty.cursor-given",
    tells_the_server: "duty.right-direction",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda one: one.__name__)
def test_a_broken_client_breaks_the_duty_that_it_was_written_for_and_no_other(
    broken: Callable[[LiveClient], None], client: LiveClient
) -> None:
    broken(client)
    assert list(client.findings()) == [BROKEN[broken]]
