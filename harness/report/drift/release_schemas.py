"""The JSON Schemas that a release of the shipping server writes about its own messages.

`codex app-server generate-json-schema --out DIR` writes one file for each type and three that list
all requests of a client, all notifications and all requests of the server. They are read from a
folder and are never part of this project.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import jsonschema_rs

from harness.errors import UsageError
from harness.protocol.values import arr, obj, text

# Where the name of a result does not follow from that of the params: `XParams`, `XResponse`.
_RESULTS: Final[Mapping[str, str]] = {
    "account/gatewayOAuth/cancel": "GatewayOAuthCancelResponse",
    "account/gatewayOAuth/login": "GatewayOAuthLoginResponse",
    "account/gatewayOAuth/read": "GatewayOAuthReadResponse",
    "account/logout": "LogoutAccountResponse",
    "account/securitySetup/read": "GetAccountSecuritySetupResponse",
    "account/usage/read": "GetAccountTokenUsageResponse",
    "account/rateLimits/read": "GetAccountRateLimitsResponse",
    "account/workspaceMessages/read": "GetWorkspaceMessagesResponse",
    "config/batchWrite": "ConfigWriteResponse",
    "config/mcpServer/reload": "McpServerRefreshResponse",
    "config/value/write": "ConfigWriteResponse",
    "configRequirements/read": "ConfigRequirementsReadResponse",
    "externalAgentConfig/import/readHistories": "ExternalAgentConfigImportHistoriesReadResponse",
    "windowsSandbox/readiness": "WindowsSandboxReadinessResponse",
}
_FOLDERS: Final = ("v2", "v1", "")


class Part(StrEnum):
    """The messages of a server that have a schema, by the file that lists them."""

    NOTIFICATION = "ServerNotification"
    SERVER_REQUEST = "ServerRequest"
    RESULT = "ClientRequest"


@dataclass(slots=True)
class ReleaseSchemas:
    """The schemas of one release. Raises `UsageError` if the folder does not hold them."""

    folder: Path
    _lists: dict[Part, dict[str, Any]] = field(init=False)
    _variants: dict[Part, dict[str, dict[str, Any]]] = field(init=False)
    _validators: dict[tuple[Part, str], jsonschema_rs.Validator | None] = field(init=False)

    def __post_init__(self) -> None:
        self._lists = {part: self._read(self.folder / f"{part}.json") for part in Part}
        self._variants = {part: _by_method(document) for part, document in self._lists.items()}
        self._validators = {}

    def methods(self, part: Part) -> list[str]:
        """Return the methods of one kind of message, in the schema's order."""
        return list(self._variants[part])

    def validator(self, part: Part, method: str) -> jsonschema_rs.Validator | None:
        """Return the validator of the params or of the result, None if there is no schema."""
        if (part, method) not in self._validators:
            schema = self.schema(part, method)
            self._validators[part, method] = (
                None if schema is None else jsonschema_rs.validator_for(schema)
            )
        return self._validators[part, method]

    def schema(self, part: Part, method: str) -> dict[str, Any] | None:
        """Return the schema of the params or of the result of a method, None if unknown."""
        variant = self._variants[part].get(method)
        if variant is None:
            return None
        if part is Part.RESULT:
            return self._result_schema(method, variant)
        definitions = self._lists[part].get("definitions", {})
        return {**obj(obj(variant["properties"]).get("params")), "definitions": definitions}

    def params_schema(self, method: str) -> dict[str, Any]:
        """Return the schema of the params of a client's request."""
        properties = obj(self._variants[Part.RESULT][method]["properties"])
        definitions = self._lists[Part.RESULT].get("definitions", {})
        return {**obj(properties.get("params")), "definitions": definitions}

    def _result_schema(self, method: str, variant: dict[str, Any]) -> dict[str, Any] | None:
        params = text(obj(obj(variant["properties"]).get("params")).get("$ref"))
        name = params.rpartition("/")[2].removeprefix("Nullable").replace("Params", "Response")
        name = _RESULTS.get(method, name)
        for folder in _FOLDERS:
            path = self.folder / folder / f"{name}.json"
            if name and path.is_file():
                return self._read(path)
        return None

    @staticmethod
    def _read(path: Path) -> dict[str, Any]:
        try:
            return obj(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as problem:
            raise UsageError(
                f"{path} is missing or not JSON ({problem}); write the schemas with "
                "codex app-server generate-json-schema --out DIR"
            ) from problem


def _by_method(document: dict[str, Any]) -> dict[str, dict[str, Any]]:
    variants = [obj(variant) for variant in arr(document.get("oneOf"))]
    return {
        text(arr(obj(obj(variant.get("properties")).get("method")).get("enum"))[0]): variant
        for variant in variants
    }
