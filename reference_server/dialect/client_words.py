"""Words of clients that are right in a dialect, though the text does not list them.

The judge of clients knows the text alone. What it finds against such a word is no fault of a client
of that release.
"""

from collections.abc import Mapping
from typing import NamedTuple

from reference_server.refusal import HIDDEN_METHOD

_METHOD_DUTY = "duty.method-known"


class ClientWords(NamedTuple):
    """Findings as pairs of a rule and a text in what it found, and the methods of the dialect."""

    findings: tuple[tuple[str, str], ...] = ()
    methods: frozenset[str] = frozenset()


def client_words_of(environment: Mapping[str, str]) -> ClientWords:
    """Return the words of clients of the dialect in the environment, none without one."""
    if not environment.get("AGENT_DIALECT"):
        return ClientWords()
    from reference_server.dialect.choice import dialect_of

    dialect = dialect_of(environment)
    if dialect is None:
        return ClientWords()
    methods = [*(f'"{name}"' for name in dialect.methods), f'"{HIDDEN_METHOD}']
    findings = (*dialect.client_words, *((_METHOD_DUTY, method) for method in methods))
    return ClientWords(findings, frozenset(dialect.methods))
