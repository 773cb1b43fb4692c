"""The dialect of this process: `--dialect`, `AGENT_DIALECT`, or the name by which it was started.

A program named `codex` (a link to `agent`) serves the newest studied release. The dialect's names
of variables and of the folder of settings are taken over before any command reads them.
"""

from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from harness.protocol.dialects.table import FAMILY, Dialect, DialectError, load_dialect
from reference_server.extra_methods import ExtraMethod, FindExtraMethod, no_extra_method
from reference_server.transport.base import Edge, Transport, plain_edge

if TYPE_CHECKING:
    from reference_server.model.errors import ModelError, ReadFailure

__all__ = [
    "DialectError",
    "dialect_of",
    "edge_of",
    "extra_methods_of",
    "failures_of",
    "name_in",
    "take_over",
    "told_to_all_of",
    "without_option",
]

VARIABLE = "AGENT_DIALECT"
FOLDER_VARIABLE = "AGENT_FOLDER"
"""Name of the folder of settings in a home or project, in place of `.agent`."""


def name_in(program: str, environment: Mapping[str, str]) -> str:
    """Return the dialect's name for a program started as `program`; "" for none."""
    named = environment.get(VARIABLE, "")
    return named or (FAMILY if Path(program).name == FAMILY else "")


def take_over(name: str, environment: MutableMapping[str, str]) -> Dialect:
    """Return the dialect, and translate its variables into the server's. Raises DialectError."""
    dialect = load_dialect(name)
    environment[VARIABLE] = dialect.name
    environment[FOLDER_VARIABLE] = dialect.folder
    for own, theirs in dialect.environment.items():
        if environment.get(theirs):
            environment[own] = environment[theirs]
    return dialect


def dialect_of(environment: Mapping[str, str]) -> Dialect | None:
    """Return the dialect that `take_over` noted in the environment, None for none."""
    name = environment.get(VARIABLE)
    return load_dialect(name) if name else None


def edge_of(environment: Mapping[str, str], home: str) -> Edge:
    """Return the edge for the dialect noted in the environment; clients are told of `home`."""
    dialect = dialect_of(environment)
    if dialect is None:
        return plain_edge
    from reference_server.dialect.memory import Memory
    from reference_server.dialect.transport import DialectTransport

    memory = Memory(Path(home))

    def speak(transport: Transport) -> Transport:
        return DialectTransport(transport, dialect, home, memory)

    return speak


def extra_methods_of(environment: Mapping[str, str]) -> FindExtraMethod:
    """Return what finds the methods of the noted dialect that the server carries out itself."""
    dialect = dialect_of(environment)
    if dialect is None:
        return no_extra_method
    own = {name for name, row in dialect.methods.items() if row.own}

    def find(method: str) -> ExtraMethod | None:
        if method not in own:
            return None
        from reference_server.dialect.own_methods import METHODS

        return METHODS[method]

    return find


def failures_of(environment: Mapping[str, str]) -> "ReadFailure | None":
    """Return how the noted dialect sees failed calls of the model: which it retries; or None."""
    dialect = dialect_of(environment)
    if dialect is None or dialect.final_failures is None:
        return None
    final = dialect.final_failures

    def read(failure: "ModelError") -> "ModelError":
        is_answer = bool(failure.status or failure.code)
        if not is_answer:
            return failure
        is_final = failure.status in final.statuses or failure.code in final.codes
        # The release counts the retries of all calls together.
        return replace(failure, phase="stream", retryable=not is_final)

    return read


def told_to_all_of(environment: Mapping[str, str]) -> Collection[str]:
    """Return the notifications of a thread that the noted dialect sends every connection."""
    dialect = dialect_of(environment)
    return () if dialect is None else dialect.told_to_all


def without_option(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the value of `--dialect` before the command, "" for none, and the other words."""
    rest = list(words)
    for index, word in enumerate(rest):
        if word == "--dialect" and index + 1 < len(rest):
            return rest[index + 1], rest[:index] + rest[index + 2 :]
        if word.startswith("--dialect="):
            return word.partition("=")[2], rest[:index] + rest[index + 1 :]
        if word == "--":
            break
    return "", rest
