"""UserInput: the elements of a turn's `input` and of a userMessage's `content`.

Source: session-protocol "UserInput".
"""

from typing import Annotated, Literal

from pydantic import Field

from harness.protocol.wire.base import WireModel


class TextInput(WireModel):
    """A text of the user."""

    type: Literal["text"] = "text"
    text: str


class ImageInput(WireModel):
    """An image by URL."""

    type: Literal["image"] = "image"
    url: str


class LocalImageInput(WireModel):
    """An image by path on the server's machine."""

    type: Literal["localImage"] = "localImage"
    path: str


class SkillInput(WireModel):
    """A skill to use; `path` is the absolute path of its SKILL.md."""

    type: Literal["skill"] = "skill"
    name: str
    path: str


class MentionInput(WireModel):
    """An app; `path` has the form `app://<connector-id>`."""

    type: Literal["mention"] = "mention"
    name: str
    path: str = Field(pattern=r"^app://.")


UserInput = Annotated[
    TextInput | ImageInput | LocalImageInput | SkillInput | MentionInput,
    Field(discriminator="type"),
]
