"""Bodies of model calls.

`reference_server.model` sends them; `reference_server.words` makes the messages in them.
"""

from typing import Any

from reference_server.settings import ThreadSettings

Fields = dict[str, Any]

INSTRUCTIONS = (
    "You are a coding agent. You work together with the user in their working directory "
    "until what they asked for is done. Be exact, be brief, and say what you did. If they want a "
    "plan to decide upon before anything is done, give it between a line <proposed_plan> and a "
    "line </proposed_plan>."
)
_PERSONALITIES = {
    "friendly": " Be warm and encouraging.",
    "pragmatic": " Be matter-of-fact.",
    "none": "",
}
_SUMMARIES = {"concise": "concise", "verbose": "detailed"}
"""The Responses API's value by the protocol's value of `summary`."""


def request_body(
    settings: ThreadSettings,
    history: list[Fields],
    tools: list[Fields],
    output_schema: Fields | None = None,
    instructions: str = INSTRUCTIONS,
) -> Fields:
    """Return the body of a call; it holds the whole history, since the provider stores nothing."""
    body: Fields = {
        "model": settings.model,
        "instructions": instructions + _PERSONALITIES[settings.personality or "none"],
        "input": history,
        "tools": tools,
        "stream": True,
        "store": False,
    }
    if settings.service_name is not None:
        body["metadata"] = {"service_name": settings.service_name}
    reasoning = _reasoning(settings)
    if reasoning:
        body["reasoning"] = reasoning
        body["include"] = ["reasoning.encrypted_content"]
    if output_schema is not None:
        body["text"] = {
            "format": {
                "type": "json_schema",
                "name": "output",
                "schema": output_schema,
                "strict": True,
            }
        }
    return body


def _reasoning(settings: ThreadSettings) -> Fields:
    reasoning: Fields = {}
    if settings.effort is not None:
        reasoning["effort"] = settings.effort
    if settings.summary is not None:
        reasoning["summary"] = _SUMMARIES[settings.summary]
    return reasoning
