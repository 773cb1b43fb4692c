"""What the user and the model said, as Responses API items."""

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

Fields = dict[str, Any]


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


def assistant_message(text: str) -> Fields:
    """Give a message of the model as it is sent back to the model."""
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }


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
