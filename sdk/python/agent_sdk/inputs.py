"""Input of a turn: a string, or a list of texts and local images."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from agent_sdk.errors import ConfigError
from agent_sdk.guards import StrPath, brief, is_list, is_mapping, is_path


@dataclass(frozen=True, slots=True)
class TextInput:
    """A part of the prompt."""

    text: str
    type: Literal["text"] = field(default="text", init=False)


@dataclass(frozen=True, slots=True)
class LocalImageInput:
    """An image file; a relative path is relative to the working directory of this process."""

    path: StrPath
    type: Literal["local_image"] = field(default="local_image", init=False)


UserInput = TextInput | LocalImageInput | Mapping[str, Any]
"""One entry, also as `{"type": "text", "text": …}` or `{"type": "local_image", "path": …}`."""
Input = str | Sequence[UserInput]

SEPARATOR = "\n\n"
"""Separator between the texts of one prompt."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """Input as the agent takes it: text for its standard input, image paths for options."""

    text: bytes
    images: tuple[str, ...]


def build_prompt(value: Input) -> Prompt:
    """Return the prompt: the texts, joined, and the image paths in order. Raises ConfigError."""
    texts: list[str] = []
    images: list[str] = []
    for number, entry in enumerate(_entries(value)):
        members = entry if is_mapping(entry) else _members(entry)
        text = members.get("text")
        match members.get("type"):
            case "text" if isinstance(text, str):
                texts.append(text)
            case "local_image":
                images.append(path_word(members.get("path"), f"input[{number}].path"))
            case _:
                raise ConfigError(
                    f"input[{number}] is neither a text entry with a string nor a local_image "
                    f"entry with a path: {brief(entry)}"
                )
    try:
        return Prompt(SEPARATOR.join(texts).encode(), tuple(images))
    except UnicodeEncodeError as error:
        raise ConfigError(f"the input holds a lone surrogate, which is no text: {error}") from None


def _members(entry: object) -> Mapping[object, object]:
    match entry:
        case TextInput(text=text):
            return {"type": "text", "text": text}
        case LocalImageInput(path=path):
            return {"type": "local_image", "path": path}
        case _:
            return {}


def _entries(value: object) -> Sequence[object]:
    if isinstance(value, str):
        return [TextInput(value)]
    if is_list(value):
        return value
    raise ConfigError(f"the input is neither a string nor a list of entries: {brief(value)}")


def path_word(path: object, name: str) -> str:
    """Return a path as an argument: "-x" becomes "./-x". ConfigError names the option `name`."""
    if not is_path(path) or not os.fspath(path):
        raise ConfigError(f"{name} is no path: {brief(path)}")
    word = word_of(os.fsdecode(path), name)
    return f"./{word}" if word.startswith("-") else word


def word_of(value: object, name: str) -> str:
    """Return `value` if it can be an argument: a non-empty string without NUL. Else ConfigError."""
    if not isinstance(value, str) or not value:
        raise ConfigError(f"{name} is no non-empty string: {brief(value)}")
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        raise ConfigError(f"{name} holds a lone surrogate, which is no text") from None
    if "\0" in value:
        raise ConfigError(f"{name} holds a null character: {brief(value)}")
    return str(value)
