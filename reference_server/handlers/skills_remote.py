"""`skills/remote/list` and `skills/remote/export`: under development, so off by default.

Source: session-protocol "skills/remote/list and skills/remote/export"; the shapes are the shipping
server's.
"""

from typing import TYPE_CHECKING

from anyio import to_thread

from harness.protocol.wire.rpc import Empty, ErrorCode
from harness.protocol.wire.skills import (
    RemoteSkill,
    SkillsRemoteExportParams,
    SkillsRemoteExportResult,
    SkillsRemoteListResult,
)
from reference_server.brief import brief_value
from reference_server.call import Call
from reference_server.handlers.registry import handles
from reference_server.refusal import Refusal, invalid_params, invalid_request

if TYPE_CHECKING:
    from reference_server.skills.catalogue import Catalogue


@handles("skills/remote/list")
async def skills_remote_list(call: Call, params: Empty) -> None:
    """List the skills of the catalogue."""
    from reference_server.skills.skill import SkillError

    catalogue = _catalogue(call)
    try:
        skills = await to_thread.run_sync(catalogue.skills, abandon_on_cancel=True)
    except SkillError as error:
        raise invalid_request(str(error)) from None
    data = [
        RemoteSkill(id=skill_id, name=skill.name, description=skill.description)
        for skill_id, skill in skills
    ]
    call.answer(SkillsRemoteListResult(data=data))


@handles("skills/remote/export")
async def skills_remote_export(call: Call, params: SkillsRemoteExportParams) -> None:
    """Copy a skill of the catalogue into the user's skills."""
    from reference_server.skills.skill import SkillError

    catalogue = _catalogue(call)
    library = call.services.tools.skills
    try:
        path = await to_thread.run_sync(
            catalogue.export, params.hazelnut_id, library.users_folder, abandon_on_cancel=True
        )
    except SkillError as error:
        raise invalid_params(f"hazelnutId: {brief_value(params.hazelnut_id)} {error}") from None
    library.clear_cache()
    call.answer(SkillsRemoteExportResult(id=params.hazelnut_id, path=str(path)))


def _catalogue(call: Call) -> "Catalogue":
    """Return the catalogue. Raises Refusal if the methods are off or no catalogue is set."""
    from reference_server.skills.catalogue import Catalogue

    config = call.services.tools.skills.config
    if not config.remote_skills:
        # The same code as for an unknown method: a client need not know this one.
        raise Refusal(
            ErrorCode.METHOD_NOT_FOUND,
            f"{call.method} is under development; to switch it on, set `remote_skills = true` in "
            "[features] of config.toml, and `catalogue` in [skills] to a folder of skills",
        )
    if config.skill_catalogue is None:
        raise invalid_request(
            'no catalogue: name a folder of skills with `catalogue = "/…"` below [skills] in '
            "config.toml"
        )
    return Catalogue(config.skill_catalogue)
