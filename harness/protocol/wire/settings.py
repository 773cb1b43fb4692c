"""The settings a thread or a turn runs under: approval policy, sandbox, personality, effort.

The effects of a policy are not here. Source: session-protocol "Enumerations", "SandboxPolicy
(object)". The table of policies names the members of each type and does not call them required: a
member that is missing or null has the value that allows least. Composed policies have all members.
"""

from typing import Annotated, Literal

from pydantic import Field

from harness.protocol.wire.base import NullIsMissing, WireModel

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
    """The only `access` of a readOnly policy in the document."""

    type: Literal["fullAccess"]


class DangerFullAccess(WireModel):
    """No sandbox."""

    type: Literal["dangerFullAccess"] = "dangerFullAccess"


class ReadOnly(NullIsMissing):
    """Permission to read according to `access`, and to write nowhere."""

    type: Literal["readOnly"] = "readOnly"
    access: FullAccess = FullAccess(type="fullAccess")


class WorkspaceWrite(NullIsMissing):
    """Permission to write in the working directory and in `writableRoots` (absolute paths)."""

    type: Literal["workspaceWrite"] = "workspaceWrite"
    writable_roots: list[str] = Field(default_factory=list[str])
    network_access: bool = False


class ExternalSandbox(NullIsMissing):
    """A sandbox that the caller provides.

    Of `networkAccess` the document gives only `enabled`; `restricted` is the shipping server's word
    for no access.
    """

    type: Literal["externalSandbox"] = "externalSandbox"
    network_access: str = "restricted"


SandboxPolicy = Annotated[
    DangerFullAccess | ReadOnly | WorkspaceWrite | ExternalSandbox, Field(discriminator="type")
]
