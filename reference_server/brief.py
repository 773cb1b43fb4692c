"""Short quotations of a client's or a model's text, for error messages and the log."""

QUOTE_LIMIT = 120
"""Characters of a quotation; the middle of a longer text is left out."""


def brief(text: str, limit: int = QUOTE_LIMIT) -> str:
    """Return the text; of a longer one its ends, `limit` characters, and the count left out."""
    if len(text) <= limit:
        return text
    tail = limit // 3
    left_out = f"{len(text) - limit:,}"
    return f"{text[: limit - tail]} …{left_out} more… {text[-tail:]}"


def brief_value(value: object) -> str:
    """Return the repr of a value, which is one line, shortened like `brief`."""
    return brief(repr(value))
