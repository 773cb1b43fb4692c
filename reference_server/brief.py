"""Quoting what somebody else wrote, however long it is.

Here lives how much of it an error, or a line of the log, repeats: enough to know it again. What a
message says of it is not known here.
"""

QUOTE_LIMIT = 120
"""Characters of a quotation; one that has more loses its middle."""


def brief(text: str, limit: int = QUOTE_LIMIT) -> str:
    """Give a text that is at most `limit` characters long, and a few that say what is left out."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    left_out = f"{len(text) - limit:,}"
    return f"{text[: limit - tail]} …{left_out} more… {text[-tail:]}"


def brief_value(value: object) -> str:
    """Give any value in one line, its own line ends escaped."""
    return brief(repr(value))
