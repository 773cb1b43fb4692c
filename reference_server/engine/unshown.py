"""Model output that is hidden from clients: a summary of the history, a reviewer's answer.

The classes have the methods of the items that clients see, and send nothing.
"""


class HiddenMessage:
    """A message whose text is kept and not sent."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._parts)

    def add(self, delta: str) -> None:
        """Take a piece."""
        self._parts.append(delta)

    def finish(self, final_text: str, _phase: str | None) -> None:
        """Take the model's final text, if it gives one."""
        self._parts = [final_text] if final_text else self._parts

    def complete(self) -> None:
        """Do nothing: no client sees it."""


class HiddenReasoning:
    """Reasoning that is neither kept nor sent."""

    def begin_summary_part(self, index: int) -> None:
        """Ignore the beginning of a section."""

    def add_summary(self, index: int, delta: str) -> None:
        """Ignore a delta of a summary."""

    def add_content(self, index: int, delta: str) -> None:
        """Ignore a delta of a raw block."""

    def finish(self, summary: list[str], content: list[str]) -> None:
        """Ignore the final parts."""

    def complete(self) -> None:
        """Do nothing: no client sees it."""
