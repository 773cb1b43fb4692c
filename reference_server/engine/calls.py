"""Tool calls of a model.

The shapes are the Responses API's: a function tool takes a JSON object as text, a custom tool takes
free text.
"""

import json
from typing import Any, NamedTuple, cast

from reference_server.limits import MAX_DEPTH, is_too_deep
from reference_server.model.events import without_lone_surrogates

Fields = dict[str, Any]
Output = str | list[Fields]
"""Output of a call for the model: a text, or content parts if it holds an image."""


class CallError(Exception):
    """The call cannot be carried out; str() is the output for the model."""


class ToolCall(NamedTuple):
    """One call of the model. `text` is the JSON of a function tool's arguments, or free text."""

    kind: str
    name: str
    id: str
    text: str

    @classmethod
    def read(cls, item: Fields) -> "ToolCall":
        """Parse a function_call or custom_tool_call item; missing members become ""."""
        kind = str(item["type"])
        text = item.get("input" if kind == "custom_tool_call" else "arguments")
        return cls(
            kind,
            str(item.get("name", "")),
            str(item.get("call_id", "")),
            text if isinstance(text, str) else "",
        )

    def arguments(self) -> Fields:
        """Return the arguments of a function tool. Raises CallError unless they are an object."""
        try:
            value: Any = json.loads(self.text or "{}")
            if "\\ud" in self.text or "\\uD" in self.text:
                # Arguments are JSON within JSON: reading the event did not decode their escapes.
                value = without_lone_surrogates(value)
        except (ValueError, RecursionError) as error:
            raise CallError(f"{self.name}: the arguments are not JSON: {error}") from None
        if not isinstance(value, dict):
            raise CallError(f"{self.name}: the arguments are not an object")
        if is_too_deep(value):
            raise CallError(f"{self.name}: the arguments have more than {MAX_DEPTH} levels")
        return cast("Fields", value)

    def output_item(self, output: Output) -> Fields:
        """Return the history item with this call's output."""
        return {"type": f"{self.kind}_output", "call_id": self.id, "output": output}
