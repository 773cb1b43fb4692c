"""Answering the calls a model makes.

Here lives the way from a call to its output item. No tool is offered to the model, so every call
is one it made up; it is told so and goes on.
"""

from typing import Any

Fields = dict[str, Any]


def answer_call(call: Fields) -> Fields:
    """Give the output item of a function_call or custom_tool_call."""
    return {
        "type": f"{call['type']}_output",
        "call_id": call.get("call_id", ""),
        "output": f"unsupported call: {call.get('name')}",
    }
