"""The settings of a thread, and how overrides change them.

Every override of a turn stays in force for later turns, except outputSchema, which is not a setting
(session-protocol "turn/start" says so of cwd and model; for the others it is our decision).
"""

import os

from pydantic import ConfigDict

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.settings import (
    ApprovalPolicy,
    DangerFullAccess,
    FullAccess,
    Personality,
    ReadOnly,
    SandboxMode,
    SandboxPolicy,
    Summary,
    WorkspaceWrite,
)
from harness.protocol.wire.thread import ThreadStartParams
from harness.protocol.wire.turn import TurnStartParams
from reference_server.config.model import Config, ReasoningEffort
from reference_server.limits import LimitExceeded, check_path
from reference_server.refusal import invalid_params, invalid_request

MAX_ROOTS = 100
"""Writable roots of one policy: each is checked and mounted for every command."""


class ThreadSettings(WireModel):
    """The settings in force, as rollouts store them too; `cwd` is absolute."""

    model_config = ConfigDict(frozen=True)

    model: str
    model_provider: str
    cwd: str
    approval_policy: ApprovalPolicy
    sandbox: SandboxPolicy
    personality: Personality | None = None
    effort: ReasoningEffort | None = None
    summary: Summary | None = None
    service_name: str | None = None


def sandbox_policy(mode: SandboxMode, config: Config | None = None) -> SandboxPolicy:
    """Return the policy of a sandbox mode; workspace-write takes roots and network of `config`."""
    match mode:
        case "danger-full-access" | "dangerFullAccess":
            return DangerFullAccess()
        case "workspace-write" | "workspaceWrite":
            if config is None:
                return WorkspaceWrite(writable_roots=[], network_access=False)
            return WorkspaceWrite(
                writable_roots=list(config.writable_roots), network_access=config.network_access
            )
        case "read-only" | "readOnly":
            return ReadOnly(access=FullAccess(type="fullAccess"))


def settings_of_new_thread(config: Config, params: ThreadStartParams) -> ThreadSettings:
    """Merge configuration and `thread/start`, null as left out. Raises Refusal for a bad `cwd`."""
    return ThreadSettings(
        model=params.model or config.model,
        model_provider=params.model_provider or config.model_provider,
        cwd=absolute_folder(params.cwd, config.folder),
        approval_policy=params.approval_policy or config.approval_policy,
        sandbox=sandbox_policy(params.sandbox or config.sandbox_mode, config),
        personality=params.personality,
        effort=config.model_reasoning_effort,
        service_name=params.service_name,
    )


def settings_of_turn(settings: ThreadSettings, params: TurnStartParams) -> ThreadSettings:
    """Merge the thread's settings with the overrides of `turn/start`; null counts as left out.

    Raises Refusal for an unusable `cwd` or too many writable roots.
    """
    policy = params.sandbox_policy
    if isinstance(policy, WorkspaceWrite):
        _check_roots(policy.writable_roots)
    return settings.model_copy(
        update={
            "model": params.model or settings.model,
            "cwd": absolute_folder(params.cwd, settings.cwd),
            "approval_policy": params.approval_policy or settings.approval_policy,
            "sandbox": params.sandbox_policy or settings.sandbox,
            "effort": params.effort or settings.effort,
            "summary": params.summary or settings.summary,
        }
    )


def _check_roots(roots: list[str]) -> None:
    if len(roots) > MAX_ROOTS:
        raise invalid_params(f"sandboxPolicy.writableRoots: has more than {MAX_ROOTS} roots")
    for root in roots:
        try:
            check_path(root)
        except LimitExceeded as error:
            raise invalid_params(f"sandboxPolicy.writableRoots: {error}") from None


def absolute_folder(path: str | None, base: str | None) -> str:
    """Return a working directory as an absolute path, relative to `base` or to the server's own.

    An empty path, or None, gives that folder itself. Raises Refusal for an unusable path.
    """
    if path and "\0" in path:
        raise invalid_params("cwd: holds a NUL character, which no path has")
    try:
        check_path(path or "")
    except LimitExceeded as error:
        raise invalid_params(f"cwd: {error}") from None
    if path and os.path.isabs(path):
        return os.path.normpath(path)
    base = _own_folder() if base is None else base
    return os.path.normpath(os.path.join(base, path)) if path else base


def _own_folder() -> str:
    try:
        folder = os.getcwd()
    except OSError as error:
        raise invalid_request(
            f"cwd: the server's own working directory cannot be found ({error.strerror}); name an "
            "absolute one"
        ) from None
    try:
        folder.encode()
    except UnicodeError:
        name = folder.encode("utf-8", "backslashreplace").decode()
        raise invalid_request(
            f"cwd: the server's own working directory, {name}, has a name that is not UTF-8, "
            "which no message can hold; name another one"
        ) from None
    return folder
