"""Traits of item types that rules use, read from the schema; an unknown trait is an error."""

import pytest

from harness.protocol.spec.item_types import (
    TRAITS,
    delta_types,
    members_about,
    read_definitions,
    types_with,
)
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.yamlfile import BookError, load_schemas

DOCUMENT = load_schemas(["item.json"])["item.json"]
TYPES = DOCUMENT["$defs"]["ThreadItem"]["properties"]["type"]["enum"]


@pytest.mark.parametrize("trait", TRAITS)
def test_every_trait_is_one_that_some_type_of_the_text_has(trait: str):
    assert types_with(trait)
    assert set(types_with(trait)) <= set(TYPES)


def test_two_types_with_one_schema_have_the_same_traits():
    assert {"enteredReviewMode", "exitedReviewMode", "imageView"} == set(types_with("at-once"))


def test_subjects_of_an_item_are_required_texts_and_objects():
    schemas = load_book().schemas
    for item_type, members in members_about().items():
        name = f"{item_type[0].upper()}{item_type[1:]}Item"
        schema, _ = schemas.place(f"item.json#/$defs/{name}")
        assert members
        for member in members:
            assert member in schema["required"]
            assert schema["properties"][member]["type"] in ("string", "object")


def test_a_word_that_is_no_trait_is_refused():
    with pytest.raises(KeyError):
        types_with("colour")
    branch = {"if": {"properties": {"type": {"const": "a"}}}, "then": {"$ref": "#/$defs/A"}}
    defs = {"ThreadItem": {"allOf": [branch]}, "A": {"traits": ["round"]}}
    with pytest.raises(BookError, match="A: 'round' is none of at-once, models-words"):
        read_definitions({"$defs": defs})


def test_notifications_that_add_to_an_item_name_it_and_a_type_of_the_text():
    assert set(delta_types().values()) <= set(TYPES)
    assert delta_types()["item/reasoning/summaryPartAdded"] == "reasoning"
    assert "item/started" not in delta_types()
    assert "item/mcpToolCall/progress" not in delta_types()
    for method in delta_types():
        schema, _ = load_book().schemas.place(str(load_book().reference(method, "params")))
        assert "itemId" in schema["required"]
