"""Every request that a release knows, sent once to a double and checked against the schemas.

An answer is a result that the schema allows, or an error that does not say that the method is
unknown.
"""

import json
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from harness.protocol.values import obj, text
from harness.report.drift.release_schemas import Part, ReleaseSchemas
from harness.report.drift.samples import smallest_value
from harness.report.drift.schema_check import schema_errors

ANSWER_SECONDS: Final = 20.0
_METHOD_NOT_FOUND: Final = -32601
_HANDSHAKE: Final = {
    "clientInfo": {"name": "harness", "version": "1"},
    "capabilities": {"experimentalApi": True},
}


@dataclass(slots=True)
class RequestCheck:
    """Answers of a server to each request."""

    sent: int = 0
    answered: int = 0
    problems: list[str] = field(default_factory=list[str])


def check_requests(
    schemas: ReleaseSchemas, command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> RequestCheck:
    """Start a server, send it every request with the smallest params, and check the answers."""
    methods = [name for name in schemas.methods(Part.RESULT) if name != "initialize"]
    lines = [_request(0, "initialize", _HANDSHAKE), json.dumps({"method": "initialized"})]
    for number, method in enumerate(methods, 1):
        schema = schemas.params_schema(method)
        lines.append(_request(number, method, smallest_value(schema, schema["definitions"])))
    answers = _exchange(lines, len(methods) + 1, command, folder, environment)
    check = RequestCheck(sent=len(methods))
    for number, method in enumerate(methods, 1):
        answer = answers.get(number)
        if answer is None:
            check.problems.append(f"{method}: not answered")
            continue
        check.answered += 1
        check.problems += [f"{method}: {words}" for words in _problems(schemas, method, answer)]
    return check


def _request(number: int, method: str, params: Any) -> str:
    return json.dumps({"id": number, "method": method, "params": params})


def _problems(schemas: ReleaseSchemas, method: str, answer: dict[str, Any]) -> list[str]:
    error = answer.get("error")
    if error is not None:
        code, message = obj(error).get("code"), text(obj(error).get("message"))
        is_unknown = code == _METHOD_NOT_FOUND or "no method" in message
        return [f"unknown method: {message}"] if is_unknown else []
    validator = schemas.validator(Part.RESULT, method)
    if validator is None:
        return []
    return [
        f"{found.kind} {found.path} {found.detail}"
        for found in schema_errors(validator, answer.get("result"))
    ]


def _exchange(
    lines: Sequence[str],
    count: int,
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
) -> dict[Any, dict[str, Any]]:
    """Return the answers by id, as many as came before the bound or the end of the server."""
    answers: dict[Any, dict[str, Any]] = {}
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=folder,
        env={**os.environ, **environment},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        process.stdin.flush()
        os.set_blocking(process.stdout.fileno(), False)
        rest = b""
        end = time.monotonic() + ANSWER_SECONDS
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while len(answers) < count and (left := end - time.monotonic()) > 0:
                if not selector.select(left):
                    break
                data = process.stdout.read()
                if not data:
                    break
                *whole, rest = (rest + data).split(b"\n")
                for line in whole:
                    message = obj(json.loads(line))
                    if "method" not in message and "id" in message:
                        answers[message["id"]] = message
        process.stdin.close()
        process.terminate()
    return answers
