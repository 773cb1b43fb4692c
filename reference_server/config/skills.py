"""Schema of `[skills]` and `[features]` of config.toml; the latter enables methods.

`skills.switches` writes `[[skills.config]]`. The specification does not show where a switch is
stored; the keys are the shipping server's.
"""

from pydantic import Field

from reference_server.config.values import Flag, Table, Text


class SkillSwitch(Table):
    """A skill's switch. The server writes these tables (`skills/config/write`)."""

    path: Text = ""
    """The absolute path of the skill's SKILL.md."""
    enabled: Flag = True
    """Enables the skill."""


class SkillsTable(Table):
    """Skills of every thread."""

    catalogue: Text | None = None
    """The absolute path of the folder with the remote skills."""
    config: list[SkillSwitch] = Field(default_factory=list[SkillSwitch])
    """The skills to enable or disable; see below."""


class FeaturesTable(Table):
    """Features under development, which are off unless enabled here."""

    remote_skills: Flag = False
    """Enables `skills/remote/list` and `skills/remote/export`."""
