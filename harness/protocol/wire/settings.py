"""The settings a thread or a turn runs under: approval policy, sandbox, personality, effort.

What a policy *does* is not here. Source: session-protocol "Enumerations", "SandboxPolicy (object)".
"""

from typing import Annotated, Literal

from pydantic import Field

from harness.protocol.wire.base import WireModel

ApprovalPolicy = Literal["never", "untrusted", "on-request", "on-failure", "reject"]
SandboxMode = Literal[
    "read-only",
    "workspace-write",
    "danger-full-access",
    # An example of the document passes the object's spelling to the string parameter.
    "readOnly",
    "workspaceWrite",
    "dangerFullAccess",
]
Personality = Literal["friendly", "pragmatic", "none"]
Effort = Literal["low", "medium", "high"]
Summary = Literal["concise", "verbose"]


class FullAccess(WireModel):
    """The one `access` of a readOnly policy that the document gives."""

    type: Literal["fullAccess"]


class DangerFullAccess(WireModel):
    """No sandbox."""

    type: Literal["dangerFullAccess"] = "dangerFullAccess"


class ReadOnly(WireModel):
    """Reading as `access` says, writing nowhere."""

    type: Literal["readOnly"] = "readOnly"
    access: FullAccess


class WorkspaceWrite(WireModel):
    """Writing in the working directory and the given roots (absolute paths)."""

    type: Literal["workspaceWrite"] = "workspaceWrite"
    writable_roots: list[str]
    network_access: bool


class ExternalSandbox(WireModel):
    """The caller provides the sandbox. `networkAccess`: `enabled` is given, the list is open."""

    type: Literal["externalSandbox"] = "externalSandbox"
    network_access: str


SandboxPolicy = Annotated[
    DangerFullAccess | ReadOnly | WorkspaceWrite | ExternalSandbox, Field(discriminator="type")
]
"""Nothing in it may be left out: what is allowed is said, never guessed."""
