"""Tests of a client, against a server that plays a script: no model, no network.

`agent_server` is a fixture of the harness. At the end of a test it fails it where the client broke
a duty of the protocol, or the script was not played as it is written. Put your client in the place
of `Client`.
"""

import json
import subprocess

from websockets.sync.client import connect

SECONDS = 30


class Client:
    """The smallest client: one request after the other, over what sends and receives lines.

    It accepts whatever the server asks about.
    """

    def __init__(self, send, receive):
        self._send, self._receive, self._ids = send, receive, 0
        self.ask("initialize", clientInfo={"name": "my-client", "version": "1"})
        self._send(json.dumps({"method": "initialized"}))

    def ask(self, method, **params):
        self._ids += 1
        self._send(json.dumps({"id": self._ids, "method": method, "params": params}))
        # A request of the server may have an equal id: an answer has no method.
        answers = (one for one in self._messages() if "method" not in one)
        answer = next(one for one in answers if one["id"] == self._ids)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def say(self, text):
        """Play one turn; give the agent's words."""
        thread = self.ask("thread/start")["thread"]["id"]
        self.ask("turn/start", threadId=thread, input=[{"type": "text", "text": text}])
        words = []
        for one in self._messages():
            if one.get("method") == "item/completed":
                words.append(one["params"]["item"].get("text", ""))
            if one.get("method") == "turn/completed":
                return "".join(words)
        raise AssertionError("the server went away within the turn")

    def _messages(self):
        """Yield answers and notifications; answer the requests of the server."""
        while line := self._receive():
            one = json.loads(line)
            if "method" in one and "id" in one:
                answer = {"error": {"code": -32601, "message": "not supported"}}
                if one["method"].endswith("/requestApproval"):
                    answer = {"result": {"decision": "accept"}}
                self._send(json.dumps({"id": one["id"], **answer}))
            else:
                yield one


def test_a_turn_over_a_websocket(agent_server):
    with connect(agent_server("turns/plain-turn").url, proxy=None) as line:
        client = Client(line.send, lambda: line.recv(timeout=SECONDS))
        assert client.say("hello") == "Hello there."


def test_a_turn_of_an_agent_that_the_client_starts(agent_server):
    server = agent_server("turns/plain-turn")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [server.program, "app-server"]
    with subprocess.Popen(command, env=server.env, **pipes) as process:

        def send(line):
            process.stdin.write(line + "\n")
            process.stdin.flush()

        assert Client(send, process.stdout.readline).say("hello") == "Hello there."
        process.stdin.close()
        process.wait(SECONDS)
