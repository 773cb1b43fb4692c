"""Items of the model that the client does not see: a summary of the history, a reviewer's answer.

Here lives the keeping of what such an item says; it has no life on the wire.
"""


class UnshownMessage:
    """A message that is only kept."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        """What it says."""
        return "".join(self._parts)

    def add(self, delta: str) -> None:
        """Take a piece."""
        self._parts.append(delta)

    def finish(self, whole: str, _phase: str | None) -> None:
        """Take the model's own whole text, if it gives one."""
        self._parts = [whole] if whole else self._parts

    def complete(self) -> None:
        """It is told to nobody."""


class UnshownReasoning:
    """Reasoning that is passed over."""

    def begin_summary_part(self, index: int) -> None:
        """A section of a summary begins."""

    def add_summary(self, index: int, delta: str) -> None:
        """A piece of a summary."""

    def add_content(self, index: int, delta: str) -> None:
        """A piece of a raw block."""

    def finish(self, summary: list[str], content: list[str]) -> None:
        """It is whole."""

    def complete(self) -> None:
        """It is told to nobody."""
