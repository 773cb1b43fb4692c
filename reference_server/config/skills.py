"""Skills in config.toml: `[skills]`, and `[features]`, which switches methods on.

`[[skills.config]]` is also written by the server (`skills.switches`). The document does not show
where that is kept; the keys are the shipping server's.
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
    """The absolute path of the folder that remote skills come from."""
    config: list[SkillSwitch] = Field(default_factory=list[SkillSwitch])
    """The skills to enable or disable; see below."""


class FeaturesTable(Table):
    """Features under development, which are offered only where this says so."""

    remote_skills: Flag = False
    """Answers `skills/remote/list` and `skills/remote/export`."""
