"""The schema files themselves: valid, cross-referenced, citing, and open to extra members."""

import json
from typing import Any

import jsonschema_rs
import pytest

from harness.protocol.spec import yamlfile
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.schemas import FILES, SchemaBook, cited_ids
from harness.protocol.spec.yamlfile import BookError, load_schemas

SCHEMAS = load_schemas(FILES)


def subschemas(node: Any) -> list[dict[str, Any]]:
    """Every object below a node, schemas or not."""
    if isinstance(node, dict):
        return [node, *(inner for child in node.values() for inner in subschemas(child))]
    if isinstance(node, list):
        return [inner for child in node for inner in subschemas(child)]
    return []


@pytest.mark.parametrize("file", FILES)
def test_file_is_a_valid_2020_12_schema(file: str):
    assert SCHEMAS[file]["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema_rs.meta.validate(SCHEMAS[file])


@pytest.mark.parametrize("file", FILES)
def test_every_reference_resolves(file: str):
    book = SchemaBook(SCHEMAS)
    for node in subschemas(SCHEMAS[file]["$defs"]):
        if isinstance(node.get("$ref"), str):
            schema, _ = book.place(node["$ref"], file)
            assert isinstance(schema, dict)


@pytest.mark.parametrize("file", FILES)
def test_extra_members_are_legal_and_no_union_is_a_one_of(file: str):
    for node in subschemas(SCHEMAS[file]["$defs"]):
        assert "additionalProperties" not in node
        assert "unevaluatedProperties" not in node
        assert "oneOf" not in node


def test_every_property_cites_a_clause_or_an_open_point():
    for file, node in load_book().schemas.nodes():
        for name, member in node.get("properties", {}).items():
            assert cited_ids(member), f"{file}: {name}"


def test_every_message_schema_is_used_by_a_table():
    book = load_book()
    used = {row.params for row in (*book.methods, *book.events)}
    used |= {row.result for row in book.methods}
    names = {reference.rpartition("/")[2] for reference in used if reference}
    messages = {name for name in book.schemas.type_names if name.endswith(("Params", "Result"))}
    assert messages == names


def test_a_reference_that_leads_nowhere_is_an_error():
    with pytest.raises(BookError, match="leads nowhere"):
        SchemaBook(SCHEMAS).errors(r"turn.json#/$defs/Tern", {})


def test_a_member_given_twice_is_an_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(yamlfile, "read_text", lambda _: '{"$defs": {"A": {}, "A": {}}}')
    with pytest.raises(BookError, match=r"schema/a\.json: key 'A' is given twice"):
        load_schemas(["a.json"])


def test_one_name_in_two_files_is_an_error():
    twice = {**SCHEMAS, "turn.json": json.loads(json.dumps(SCHEMAS["turn.json"]))}
    twice["turn.json"]["$defs"]["Thread"] = {}
    with pytest.raises(BookError, match="Thread is also in"):
        SchemaBook(twice)


def test_a_file_under_a_wrong_id_is_an_error():
    with pytest.raises(BookError, match=r"turn\.json: expected the \$id book:/turn\.json"):
        SchemaBook({"turn.json": {"$id": "book:/tern.json", "$defs": {}}})
