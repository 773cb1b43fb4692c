"""`skills/list` and `skills/config/write`.

Source: session-protocol "skills/list", "skills/config/write".
"""

import os
from functools import partial

from anyio import to_thread

from harness.protocol.wire.rpc import Empty
from harness.protocol.wire.skills import (
    SkillsConfigWriteParams,
    SkillsExtraRoots,
    SkillsListParams,
    SkillsListResult,
)
from reference_server.brief import brief, brief_value
from reference_server.call import Call
from reference_server.handlers.registry import handles
from reference_server.limits import LimitExceeded, check_path
from reference_server.refusal import invalid_params, invalid_request
from reference_server.skills.library import Library

MAX_FOLDERS = 100
"""Maximum working directories of one request, and extra roots of each, with up to 500 skills."""


@handles("skills/list")
async def skills_list(call: Call, params: SkillsListParams) -> None:
    """List the skills of each working directory, in the order of the params."""
    library = call.services.tools.skills
    extra = _extra_roots(params.per_cwd_extra_user_roots or [], library)
    cwds = params.cwds or [library.folder("")]
    if len(cwds) > MAX_FOLDERS:
        raise invalid_params(f"cwds: has more than {MAX_FOLDERS} elements; ask for fewer at once")
    entries = await library.entries(cwds, extra, reload=bool(params.force_reload))
    call.answer(SkillsListResult(data=entries))


def _extra_roots(entries: list[SkillsExtraRoots], library: Library) -> dict[str, list[str]]:
    """Return the further roots by absolute working directory. Raises Refusal if any is wrong."""
    roots_by_cwd: dict[str, list[str]] = {}
    for index, entry in enumerate(entries):
        field = f"perCwdExtraUserRoots[{index}].extraUserRoots"
        roots = roots_by_cwd.setdefault(library.folder(entry.cwd), [])
        for root in entry.extra_user_roots:
            roots.append(_absolute_path(root, field))
        if len(roots) > MAX_FOLDERS or len(roots_by_cwd) > MAX_FOLDERS:
            raise invalid_params(f"{field}: there are more than {MAX_FOLDERS}; ask for fewer")
    return roots_by_cwd


def _absolute_path(path: str, field: str) -> str:
    """Return an absolute path without `..`. Raises Refusal for any other."""
    try:
        check_path(path)
    except LimitExceeded as error:
        raise invalid_params(f"{field}: {error}") from None
    if "\0" in path:
        raise invalid_params(f"{field}: holds a NUL character, which no path has")
    if not os.path.isabs(path):
        raise invalid_params(f"{field}: must be an absolute path, not {brief_value(path)}")
    return os.path.normpath(path)


@handles("skills/config/write")
async def skills_config_write(call: Call, params: SkillsConfigWriteParams) -> None:
    """Enable or disable a skill permanently, for every server of the home."""
    from reference_server.skills.skill import SkillError
    from reference_server.skills.switches import Unwritable

    path = _absolute_path(params.path, "path")
    library = call.services.tools.skills
    change = partial(library.switches.set, path, enabled=params.enabled)
    try:
        await to_thread.run_sync(change)
    except SkillError as error:
        raise invalid_params(f"path: {brief(path)} {error}") from None
    except Unwritable as error:
        raise invalid_request(str(error)) from None
    library.clear_cache()
    call.answer(Empty())
