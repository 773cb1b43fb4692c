"""The client of `harness example python-client`: which messages it takes for which."""

import importlib.util
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.processes import ROOT

FILE = ROOT / "examples" / "python-client" / "test_client.py"
APPROVAL = "item/commandExecution/requestApproval"


class Line:
    """A line to a server that sends these messages once the client has shaken hands."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.sent: list[dict[str, Any]] = []
        self._messages: Iterator[dict[str, Any]] = iter([{"id": 1, "result": {}}, *messages])

    def send(self, text: str) -> None:
        self.sent.append(json.loads(text))

    def receive(self) -> str:
        return json.dumps(next(self._messages))

    def client(self) -> Any:
        """The client of the example on this line."""
        spec = importlib.util.spec_from_file_location("python_client_example", FILE)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.Client(self.send, self.receive)


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (APPROVAL, {"result": {"decision": "accept"}}),
        ("tool/ask", {"error": {"code": -32601, "message": "not supported"}}),
    ],
)
def test_request_of_the_server_with_an_equal_id_is_answered_and_is_no_answer(
    method: str, answer: dict[str, Any]
) -> None:
    line = Line({"id": 2, "method": method, "params": {}}, {"id": 2, "result": {"data": []}})
    assert line.client().ask("thread/list") == {"data": []}
    assert line.sent[-1] == {"id": 2, **answer}


def test_error_of_the_server_is_raised_with_its_words() -> None:
    client = Line({"id": 2, "error": {"code": -1, "message": "no thread"}}).client()
    with pytest.raises(RuntimeError, match="thread/read: no thread"):
        client.ask("thread/read")
