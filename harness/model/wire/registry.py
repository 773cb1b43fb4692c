"""The model APIs that the scripted model speaks, by the paths of their calls."""

from functools import cache

from harness.model.encoder import Encoder

PATHS = ("/responses", "/chat/completions", "/messages")
"""Ends of the paths of calls."""


def wire_of(path: str) -> Encoder | None:
    """Return the API of a call, None if the path is none of a call."""
    end = next((end for end in PATHS if path.rstrip("/").endswith(end)), "")
    return _encoder(end) if end else None


@cache
def _encoder(end: str) -> Encoder:
    # A run loads the APIs that its server calls.
    match end:
        case "/chat/completions":
            from harness.model.wire.chat import ChatEncoder

            return ChatEncoder()
        case "/messages":
            from harness.model.wire.messages import MessagesEncoder

            return MessagesEncoder()
        case _:
            from harness.model.wire.responses import ResponsesEncoder

            return ResponsesEncoder()
