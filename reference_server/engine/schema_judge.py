"""A program of its own: judges one text by one JSON Schema, and is killed by its own limits.

Here lives what may take for ever: a few kilobytes of schema can ask for more steps than there is
time, and nothing can stop them from within. It reads one JSON object from standard input, `schema`
and perhaps `text`, `seconds` and `bytes` that it may take, and writes one: `{"bad": why}` for what
is no schema, `{"objection": why}` for a text that does not fit, `{}` where nothing is wrong. It
imports nothing of this project, so that it starts fast; who starts it is `output_schema`.
"""

import contextlib
import json
import resource
import sys
from typing import Any

Fields = dict[str, Any]
OBJECTION_LIMIT = 500
"""Characters of what is said to be wrong."""


def main() -> None:
    """Judge what comes on standard input."""
    asked: Fields = json.loads(sys.stdin.buffer.read())
    _bound(asked["seconds"], asked["bytes"])
    sys.stdout.write(json.dumps(judged(asked["schema"], asked.get("text"))))


def _bound(seconds: int, size: int) -> None:
    """Take limits that hold also when nobody is left to kill this process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The kernel's own end: this program has no chance to run a handler within a long call.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    # Not every system has this one.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def judged(schema: Fields, text: str | None) -> Fields:
    """Compile a schema, and judge a text by it if there is one."""
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(schema, offline=True)
    except ValueError as error:
        return {"bad": (str(error).splitlines() or ["it is no JSON Schema"])[0][:OBJECTION_LIMIT]}
    if text is None:
        return {}
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        return _objection(f"it is not JSON: {error}")
    try:
        error = next(iter(validator.iter_errors(value)), None)
    except ValueError as failure:
        # Too deep to be looked through, or text that has no UTF-8 form.
        return _objection(f"it cannot be judged by the schema: {failure}")
    if error is None:
        return {}
    where = "/".join(map(str, error.instance_path))
    return _objection(f"at /{where}: {error.message}")


def _objection(words: str) -> Fields:
    return {"objection": words[:OBJECTION_LIMIT]}


if __name__ == "__main__":
    main()
