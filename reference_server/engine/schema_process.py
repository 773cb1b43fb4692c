"""Program, started by `output_schema`, that checks one text against one JSON Schema.

A few kilobytes of schema can take for ever to compile or check, and only the system can stop that,
so this process limits itself. It reads a JSON object from standard input: `schema`, `text` or null,
and the limits `seconds` and `bytes`. It writes another: `{"bad": why}` for an invalid schema,
`{"objection": why}` for a text that does not fit, else `{}`. It imports nothing of this project, so
that it starts fast.
"""

import contextlib
import json
import resource
import sys
from typing import Any

Fields = dict[str, Any]
OBJECTION_LIMIT = 500
"""Maximum characters of a reason."""


def main() -> None:
    """Carry out the check that standard input describes, and write its result."""
    request: Fields = json.loads(sys.stdin.buffer.read())
    _limit_process(request["seconds"], request["bytes"])
    sys.stdout.write(json.dumps(check(request["schema"], request.get("text"))))


def _limit_process(seconds: int, size: int) -> None:
    """Limit this process from inside: the server, which also limits it, may be killed first."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # The kernel kills it: Python runs no signal handler during a long call of the library.
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    # Not every system has this limit.
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (size, size))


def check(schema: Fields, text: str | None) -> Fields:
    """Compile a schema and check a text, unless None; return the result as the module says."""
    import jsonschema_rs

    try:
        validator = jsonschema_rs.validator_for(schema, offline=True)
    except ValueError as error:
        return {"bad": _explain(error) or "it is not a JSON Schema"}
    if text is None:
        return {}
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        return _objection(f"it is not JSON: {error}")
    try:
        error = next(iter(validator.iter_errors(value)), None)
    except ValueError as failure:
        # Nested too deeply, or text that has no UTF-8 form.
        return _objection(f"it cannot be checked against the schema: {failure}")
    if error is None:
        return {}
    return _objection(_explain(error))


def _explain(error: ValueError) -> str:
    """Return the reason, with the place in the value if the library names one."""
    # Only some errors of the library have a message and a path.
    message = str(getattr(error, "message", error))
    path: list[object] | None = getattr(error, "instance_path", None)
    words = " ".join(message.split("\n"))
    return _shorten(words if path is None else f"at /{'/'.join(map(str, path))}: {words}")


def _objection(words: str) -> Fields:
    return {"objection": _shorten(words)}


def _shorten(words: str) -> str:
    """Return a reason, if long without its middle: a quoted value comes first, the cause last."""
    if len(words) <= OBJECTION_LIMIT:
        return words
    half = OBJECTION_LIMIT // 2
    return f"{words[:half]} …{len(words) - 2 * half:,} more… {words[-half:]}"


if __name__ == "__main__":
    main()
