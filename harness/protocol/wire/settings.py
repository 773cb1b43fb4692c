"""The settings a thread or a turn runs under: approval policy, sandbox, personality, effort.

What a policy *does* is not here. Source: session-protocol "Enumerations", "SandboxPolicy (object)".
The table of policies names the members of each type and does not call them required: in what is
read, a member that is missing or null has the value that allows least. Composed policies have all.
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
    """The one `access` of a readOnly policy that the document gives."""

    type: Literal["fullAccess"]


class DangerFullAccess(WireModel):
    """No sandbox."""

    type: Literal["dangerFullAccess"] = "dangerFullAccess"


class ReadOnly(NullIsMissing):
    """Reading as `access` says, writing nowhere."""

    type: Literal["readOnly"] = "readOnly"
    access: FullAccess = FullAccess(type="fullAccess")


class WorkspaceWrite(NullIsMissing):
    """Writing in the working directory and the given roots (absolute paths)."""

    type: Literal["workspaceWrite"] = "workspaceWrite"
    writable_roots: list[str] = Field(default_factory=list[str])
    network_access: bool = False


class ExternalSandbox(NullIsMissing):
    """The caller provides the sandbox. `networkAccess`: `enabled` is given, the list is open.

    `restricted` is the shipping server's word for none.
    """

    type: Literal["externalSandbox"] = "externalSandbox"
    network_access: str = "restricted"


SandboxPolicy = Annotated[
    DangerFullAccess | ReadOnly | WorkspaceWrite | ExternalSandbox, Field(discriminator="type")
]
