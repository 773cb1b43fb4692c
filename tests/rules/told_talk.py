"""Builder of conversations whose turns call the model with the history of their thread."""

from typing import Any, Self

from tests.rules.history_talk import FORK, Past
from tests.rules.traces import THREAD, TROUBLE, agent_message, turn_object, user_message


class Told(Past):
    """A talk whose turns have one model call each; `history` is what a sound server sends."""

    def __init__(self, scenario: str = "") -> None:
        super().__init__(scenario)
        self._numbers = 0
        self._stored: dict[str, list[dict[str, Any]]] = {}

    def history(self, thread: str = THREAD) -> tuple[str, ...]:
        """Return the inputs and answers of a thread."""
        items = [item for turn in self._stored.get(thread, []) for item in turn["items"]]
        return tuple(item.get("text") or item["content"][0]["text"] for item in items)

    def turn(
        self,
        text: str,
        earlier: tuple[str, ...] | None = None,
        *,
        thread: str = THREAD,
        status: str = "completed",
        compacts: bool = False,
    ) -> Self:
        """Add a turn whose call has earlier texts, by default the whole history."""
        recalled = self.history(thread) if earlier is None else earlier
        self._numbers += 1
        number, turn = self._numbers, f"turn_{self._numbers}"
        self.start_turn(turn, thread, text)
        if compacts:
            self.item({"type": "contextCompaction", "id": f"{turn}-c"}, turn, thread)
        self.calls(text, call=number, recalled=recalled)
        items = [user_message(f"{turn}-user", text)]
        if status == "completed":
            self.message(f"{turn}-msg", answer(text), turn=turn, thread=thread)
            self.ends(number, texts=[{"text": answer(text)}])
            items.append(agent_message(f"{turn}-msg", answer(text)))
        elif status == "failed":
            self.ends(number, outcome="failed server_error")
        error = TROUBLE if status == "failed" else None
        self.end_turn(turn, thread, status, error)
        ended = turn_object(turn, status, items=items, error=error)
        self._stored.setdefault(thread, []).append(ended)
        return self

    def drops(self, number: int = 1, left: int | None = None) -> Self:
        """Add a rollback by `number` turns after which `left` remain."""
        turns = self._stored[THREAD]
        self._stored[THREAD] = turns[: len(turns) - number if left is None else left]
        return self.rolls_back(*self._stored[THREAD], number=number)

    def copies(self) -> Self:
        """Add a fork with its announcement."""
        self._stored[FORK] = list(self._stored[THREAD])
        return self.forks(*self._stored[FORK]).announced()

    def reopens(self) -> Self:
        """Add a resume of the thread on the second connection."""
        return self.on("c2").resumes(*self._stored[THREAD])


def answer(text: str) -> str:
    """Return the model's answer to a text."""
    return f"an answer {text}"
