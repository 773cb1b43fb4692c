"""Skills: their metadata, listing and switching them.

Source: session-protocol "Skill (SkillMetadata)", "skills/list", "skills/config/write",
"skills/remote/list and skills/remote/export". The two remote methods are under development there;
their parts that are not shown are the shipping server's.
"""

from typing import Annotated

from pydantic import Field

from harness.protocol.wire.base import OpenObject, WireModel


class SkillInterface(WireModel):
    """The presentation of a skill; icons are file names, the colour is `#RRGGBB`."""

    display_name: str | None = None
    short_description: str | None = None
    icon_small: str | None = None
    icon_large: str | None = None
    brand_color: Annotated[str, Field(pattern=r"^#[0-9A-Fa-f]{6}$")] | None = None
    default_prompt: str | None = None


class SkillMetadata(WireModel):
    """One skill.

    Not in the document: `path`, the absolute path of its SKILL.md, which a client needs to switch
    it; `scope`: repo (of the project), user or system (built in), the shipping server's words.
    """

    name: str
    description: str
    enabled: bool
    interface: SkillInterface | None = None
    path: str | None = None
    scope: str | None = None


class SkillErrorInfo(WireModel):
    """A skill that could not be loaded; not shown in the document, the shipping server's."""

    path: str
    message: str


class SkillsListEntry(WireModel):
    """The skills of one working directory."""

    cwd: str
    skills: list[SkillMetadata]
    errors: list[Annotated[SkillErrorInfo | OpenObject, Field(union_mode="left_to_right")]]


class SkillsExtraRoots(WireModel):
    """Absolute paths that count as user scope for one working directory."""

    cwd: str
    extra_user_roots: list[str]


class SkillsListParams(WireModel):
    """Params of `skills/list`, all optional; empty `cwds` means the session's own."""

    cwds: list[str] | None = None
    force_reload: bool | None = None
    per_cwd_extra_user_roots: list[SkillsExtraRoots] | None = None


class SkillsListResult(WireModel):
    """Result of `skills/list`."""

    data: list[SkillsListEntry]


class SkillsConfigWriteParams(WireModel):
    """Params of `skills/config/write`; `path` is the absolute path of the SKILL.md."""

    path: str
    enabled: bool


class RemoteSkill(WireModel):
    """A skill of the remote directory."""

    id: str
    name: str
    description: str


class SkillsRemoteListResult(WireModel):
    """Result of `skills/remote/list`."""

    data: list[RemoteSkill]


class SkillsRemoteExportParams(WireModel):
    """Params of `skills/remote/export`."""

    hazelnut_id: str


class SkillsRemoteExportResult(WireModel):
    """Result of `skills/remote/export`: the path to which the skill was written."""

    id: str
    path: str
