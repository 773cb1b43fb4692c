"""tools.releases: ranges of releases, and what the schemas of a release say."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.report.drift.release_schemas import ReleaseSchemas
from tools.releases.members import read_members
from tools.releases.spans import spans

RELEASES = ("0.9.0", "0.10.0", "0.11.0", "0.12.0")


@pytest.mark.parametrize(
    ("present", "words"),
    [
        (RELEASES, "all"),
        ((), "none"),
        (("0.9.0",), "0.9.0"),
        (("0.9.0", "0.10.0"), "0.9.0 to 0.10.0"),
        (("0.11.0", "0.12.0"), "since 0.11.0"),
        (("0.12.0",), "0.12.0"),
        (("0.9.0", "0.11.0", "0.12.0"), "0.9.0, since 0.11.0"),
    ],
)
def test_ranges_of_releases_are_words(present: tuple[str, ...], words: str) -> None:
    assert spans(RELEASES, present) == words


def test_members_are_those_that_a_named_method_reaches(tmp_path: Path) -> None:
    schemas = ReleaseSchemas(_written(tmp_path))
    assert read_members(schemas, frozenset({"thread/start", "item/started"})) == {
        "StartParams": {"cwd", "policy"},
        "Policy": {'"never"', '"always"'},
        "StartResponse": {"thread"},
        "Thread": {"id"},
        "ItemStarted": {"item"},
        "Item.plan": {"type", "text"},
        "Item.message": {"type", "phase"},
        "Phase": {'"final"'},
    }


def _written(folder: Path) -> Path:
    """Write the schemas of a small release."""
    _write(
        folder / "ClientRequest.json",
        {
            "oneOf": [_message("thread/start", "StartParams"), _message("plugin/list", "Plugin")],
            "definitions": {
                "StartParams": _object(
                    cwd={"type": "string", "enum": ["a word of a member"]},
                    policy={"anyOf": [_reference("Policy"), {"type": "null"}]},
                ),
                "Policy": {"type": "string", "enum": ["never", "always"]},
                "Plugin": _object(name={"type": "string"}),
            },
        },
    )
    _write(
        folder / "v2" / "StartResponse.json",
        _object(thread={"allOf": [_reference("Thread")]})
        | {"title": "StartResponse", "definitions": {"Thread": _object(id={"type": "string"})}},
    )
    _write(
        folder / "ServerNotification.json",
        {
            "oneOf": [_message("item/started", "ItemStarted")],
            "definitions": {
                "ItemStarted": _object(item=_reference("Item")),
                "Item": {
                    "oneOf": [
                        _object(type={"enum": ["plan"]}, text={"type": "string"}),
                        _object(
                            type={"enum": ["message"]},
                            phase={"type": "array", "items": _reference("Phase")},
                        ),
                    ]
                },
                "Phase": {"oneOf": [{"type": "string", "enum": ["final"]}]},
            },
        },
    )
    _write(folder / "ServerRequest.json", {"oneOf": [_message("item/ask", "Ask")]})
    return folder


def _message(method: str, params: str) -> dict[str, Any]:
    return {"properties": {"method": {"enum": [method]}, "params": _reference(params)}}


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/definitions/{name}"}


def _object(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members}


def _write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value), "utf-8")
