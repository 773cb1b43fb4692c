"""Kinds of generated cases, and the ids of failures.

A case is a scenario document: the plain value of a `*.scenario.yaml` file.
"""

import json
import re
import zlib
from typing import Literal, get_args

from harness.errors import UsageError
from harness.search.fuzz.sessions.turns import Json
from harness.trace.nearest import unknown_name

Kind = Literal["inputs", "frames", "sessions", "sequences"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# The kinds of a search that names none. Sequences are a plan with an end, not a search in a time.
RANDOM_KINDS: tuple[Kind, ...] = ("inputs", "frames", "sessions")
# Share of the time for each kind: a session takes as long as several cases of the others.
SHARES: dict[Kind, int] = {"inputs": 2, "frames": 1, "sessions": 7, "sequences": 10}


def failure_id(kind: Kind, cause: str, document: Json) -> str:
    """Return an id such as `frames-scenario-crash-1f2e3d4c`, made from cause and document."""
    words = re.sub(r"[^a-z0-9]+", "-", cause.lower()).strip("-")[:50].rstrip("-")
    contents = {name: value for name, value in document.items() if name != "title"}
    mark = zlib.crc32(json.dumps([cause, contents], sort_keys=True).encode())
    return f"{kind}-{words}-{mark:08x}"


def kinds_of(words: str) -> list[Kind]:
    """Return the kinds in a list such as `inputs,frames`; the random ones for "".

    Raises `UsageError` for an unknown kind.
    """
    names = dict.fromkeys(name.strip() for name in words.split(",") if name.strip())
    odd = [name for name in names if name not in KINDS]
    if odd:
        raise UsageError(f"--what: {unknown_name('kind of case', odd[0], KINDS)}")
    return [kind for kind in KINDS if kind in (names or RANDOM_KINDS)]
