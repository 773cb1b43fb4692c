"""Messages checked against the schemas of a release."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import UsageError
from harness.report.drift.messages import Message
from harness.report.drift.release_schemas import Part, ReleaseSchemas
from harness.report.drift.samples import ABSOLUTE_PATH, smallest_value
from harness.report.drift.schema_check import SchemaCheck, check_messages
from tests.unit.drift.schemas import write_schemas


def _started(item: Any, **params: Any) -> Message:
    body = {"threadId": "t", "item": item, **params}
    return Message("item/started", "item/started", Part.NOTIFICATION, body, "a/b", "c1", True)


def _check(folder: Path, *messages: Message) -> SchemaCheck:
    return check_messages(ReleaseSchemas(write_schemas(folder)), messages)


def _found(check: SchemaCheck) -> list[tuple[str, str, str]]:
    return [(found.path, found.kind, found.detail) for found in check.sorted_findings]


def test_valid_message_has_no_finding(tmp_path: Path) -> None:
    check = _check(tmp_path, _started({"type": "plan"}, note=None))
    assert (check.checked, _found(check)) == (1, [])


def test_error_inside_a_variant_is_that_of_its_type(tmp_path: Path) -> None:
    check = _check(tmp_path, _started({"type": "commandExecution", "command": ["ls"]}))
    assert _found(check) == [("item.command", "wrong type", "array, not string")]


def test_missing_member_is_counted_once_for_each_message(tmp_path: Path) -> None:
    message = _started({"type": "commandExecution"})
    check = _check(tmp_path, message, message)
    assert _found(check) == [("item", "missing member", "command")]
    assert check.sorted_findings[0].count == 2


def test_unknown_type_is_an_unknown_word(tmp_path: Path) -> None:
    check = _check(tmp_path, _started({"type": "poem"}))
    assert _found(check) == [("item.type", "unknown word", '"poem"')]


def test_word_of_an_optional_enumeration_is_checked(tmp_path: Path) -> None:
    check = _check(tmp_path, _started({"type": "plan"}, note="later"))
    assert [found.kind for found in check.sorted_findings] == ["unknown word"]


def test_notification_without_a_schema_is_an_unknown_method(tmp_path: Path) -> None:
    message = Message("no/such", "no/such", Part.NOTIFICATION, {}, "a/b", "c1", True)
    assert _found(_check(tmp_path, message)) == [("", "unknown method", "no/such")]


def test_results_are_found_by_the_name_of_the_params_or_a_table(tmp_path: Path) -> None:
    schemas = ReleaseSchemas(write_schemas(tmp_path))
    assert schemas.schema(Part.RESULT, "model/list") is not None
    assert schemas.schema(Part.RESULT, "account/logout") == {"type": "object"}


def test_folder_without_schemas_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="generate-json-schema"):
        ReleaseSchemas(tmp_path)


def test_smallest_params_have_the_required_members_alone(tmp_path: Path) -> None:
    schema = ReleaseSchemas(write_schemas(tmp_path)).params_schema("model/list")
    assert smallest_value(schema, schema["definitions"]) == {"cwd": ABSOLUTE_PATH}
