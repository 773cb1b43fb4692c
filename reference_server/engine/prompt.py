"""What is sent to the model.

Here live the body of a model call, and the user's input as Responses API items. Sending lives in
`reference_server.model`.
"""

from collections.abc import Iterable, Iterator
from typing import Any

from harness.wire.input import (
    ImageInput,
    LocalImageInput,
    MentionInput,
    SkillInput,
    TextInput,
    UserInput,
)
from reference_server.brief import brief
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
"""The protocol's word -> the Responses API's word."""


def user_message(content: list[UserInput], images: Iterable[Fields] = ()) -> Fields:
    """Give the user's input as a Responses API item; `images`: the parts of its local images."""
    local = iter(images)
    return {"type": "message", "role": "user", "content": [_part(one, local) for one in content]}


def local_images(content: list[UserInput]) -> list[str]:
    """Give the paths of the local images of an input, as they were given."""
    return [one.path for one in content if isinstance(one, LocalImageInput)]


def unread_image(path: str, why: str) -> Fields:
    """Give the text that is sent in place of an image that cannot be read."""
    return _text(f"The image {brief(path)} could not be read: {why}")


def request_body(
    settings: ThreadSettings,
    history: list[Fields],
    tools: list[Fields],
    output_schema: Fields | None = None,
    instructions: str = INSTRUCTIONS,
) -> Fields:
    """Give the body of a call: with the whole history, since the provider is to store nothing."""
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


def _part(one: UserInput, local: Iterator[Fields]) -> Fields:
    match one:
        case TextInput(text=text):
            return _text(text)
        case ImageInput(url=url):
            return {"type": "input_image", "image_url": url}
        case LocalImageInput():
            return next(local)
        case SkillInput(name=name, path=path):
            return _text(f"Use the skill ${name}, described in {path}.")
        case MentionInput(name=name, path=path):
            return _text(f"Use the app ${name} ({path}).")


def _text(text: str) -> Fields:
    return {"type": "input_text", "text": text}
