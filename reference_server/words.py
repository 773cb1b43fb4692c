"""Messages of the user and the model, as Responses API items."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from harness.protocol.wire.input import (
    ImageInput,
    LocalImageInput,
    MentionInput,
    SkillInput,
    TextInput,
    UserInput,
)
from reference_server.brief import brief

Fields = dict[str, Any]


class SkillTexts(NamedTuple):
    """Texts for the model about the skills that an input names.

    `blocks`: one text per skill; `refusals`: the reason for each unused `skill` item, by name and
    path; `notes`: further remarks.
    """

    blocks: Sequence[str] = ()
    refusals: Mapping[tuple[str, str], str] = MappingProxyType({})
    notes: Sequence[str] = ()


def user_message(
    content: list[UserInput], images: Iterable[Fields] = (), skills: SkillTexts | None = None
) -> Fields:
    """Return the user's input as a Responses API item; `images`: the parts of its local images.

    The texts of skills come first. A skill or an app that the input names twice is sent once.
    """
    local = iter(images)
    skills = skills or SkillTexts()
    parts = [_text_part(one) for one in skills.blocks]
    named_items: set[tuple[str, str, str]] = set()
    for item in content:
        if isinstance(item, SkillInput | MentionInput):
            if (key := (item.type, item.name, item.path)) in named_items:
                continue
            named_items.add(key)
        parts.append(_content_part(item, local, skills))
    parts += [_text_part(one) for one in skills.notes]
    return {"type": "message", "role": "user", "content": parts}


def without_known_skills(message: Fields, history: Iterable[Fields]) -> Fields:
    """Return a user's message without the texts of skills that `history` already holds."""
    parts: list[Fields] = message["content"]
    blocks = [text for part in parts if is_skill_text(text := part.get("text", ""))]
    if not blocks:
        return message
    earlier_texts = [
        part["text"]
        for item in history
        if item.get("role") == "user"
        for part in item["content"]
        if "text" in part
    ]
    known_blocks = {block for block in blocks if any(block in text for text in earlier_texts)}
    new_parts = [part for part in parts if part.get("text") not in known_blocks]
    # Never empty: a user may write a text that looks like that of a skill.
    return {**message, "content": new_parts} if new_parts else message


def is_skill_text(text: str) -> bool:
    """Return whether a text of a user's message is a skill's, added by the server."""
    return text.startswith("<skill>\n")


def local_images(content: list[UserInput]) -> list[str]:
    """Return the paths of the local images of an input, as they were given."""
    return [one.path for one in content if isinstance(one, LocalImageInput)]


def unread_image(path: str, reason: str) -> Fields:
    """Return the text that is sent in place of an image that cannot be read."""
    return _text_part(f"The image {brief(path)} could not be read: {reason}")


def assistant_message(text: str) -> Fields:
    """Return a message of the model as it is sent back to the model."""
    return {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
    }


def _content_part(item: UserInput, local: Iterator[Fields], skills: SkillTexts) -> Fields:
    match item:
        case TextInput(text=text):
            return _text_part(text)
        case ImageInput(url=url):
            return {"type": "input_image", "image_url": url}
        case LocalImageInput():
            return next(local)
        case SkillInput(name=name, path=path):
            if reason := skills.refusals.get((name, path)):
                return _text_part(f"The skill ${name}, described in {path}, is not used: {reason}.")
            return _text_part(f"Use the skill ${name}, described in {path}.")
        case MentionInput(name=name, path=path):
            return _text_part(f"Use the app ${name} ({path}).")


def _text_part(text: str) -> Fields:
    return {"type": "input_text", "text": text}
