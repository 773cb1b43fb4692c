"""Schemas of the book in words: members, variants, and the open points that they cite."""

import pytest

from harness.protocol.spec.loading import load_book
from harness.protocol.spec.members import Member, Shape, Variant, all_shapes, shape_of, type_words
from harness.protocol.spec.yamlfile import BookError

SCHEMAS = load_book().schemas


def test_members_come_in_the_order_of_the_schema_with_their_types_in_words():
    assert shape_of(SCHEMAS, "turn.json#/$defs/Turn") == Shape(
        name="Turn",
        clauses=("turn.fields",),
        values=(),
        members=(
            Member("id", "string", True),
            Member("items", "array of ThreadItem", True),
            Member("status", "`inProgress`, `completed`, `interrupted`, `failed`", True),
            Member("error", "TurnError or null", True),
        ),
        variants=(),
    )


def test_a_list_of_words_has_values_and_no_members():
    shape = shape_of(SCHEMAS, "enums.json#/$defs/ReasoningEffort")
    assert shape.values == ("low", "medium", "high")
    assert shape.members == ()


def test_variants_written_in_place_and_variants_by_name_are_the_same_thing():
    inline = shape_of(SCHEMAS, "input.json#/$defs/UserInput").variants
    assert inline[0] == Variant("text", "input.text", (Member("text", "string", True),), ())
    named = {one.value: one for one in shape_of(SCHEMAS, "item.json#/$defs/ThreadItem").variants}
    assert named["imageView"].members == (Member("path", "string", True),)
    assert named["imageView"].clause == "item.image-view"


def test_two_values_of_one_variant_have_a_clause_each():
    named = {one.value: one for one in shape_of(SCHEMAS, "item.json#/$defs/ThreadItem").variants}
    assert named["enteredReviewMode"].clause == "item.entered-review"
    assert named["exitedReviewMode"].clause == "item.exited-review"


def test_a_condition_on_another_member_is_no_variant():
    assert shape_of(SCHEMAS, "thread.json#/$defs/Thread").variants == ()


def test_open_points_are_those_of_the_variant_and_of_the_types_within_it():
    named = {one.value: one for one in shape_of(SCHEMAS, "item.json#/$defs/ThreadItem").variants}
    assert named["agentMessage"].open == ("item.message-phase",)
    assert named["commandExecution"].open == ("item.command-action-fields",)
    assert named["fileChange"].open == ("item.file-change-kind", "item.file-change-diff")
    assert named["imageView"].open == ()


def test_types_are_said_in_words():
    def words(node: dict[str, object]) -> str:
        return type_words(SCHEMAS, node, "turn.json")

    assert words({}) == "anything"
    assert words({"type": ["array", "null"], "items": {"type": "object"}}) == (
        "array of object or null"
    )
    assert words({"$ref": "item.json#/$defs/ToolStatus"}) == "`inProgress`, `completed`, `failed`"
    assert words({"$ref": "#/$defs/Turn"}) == "Turn"


def test_every_type_of_the_book_has_a_shape():
    shapes = dict(all_shapes(SCHEMAS))
    assert {reference.rpartition("/")[2] for reference in shapes} == SCHEMAS.type_names
    assert all(shape.name in reference for reference, shape in shapes.items())


def test_a_reference_that_leads_nowhere_is_refused():
    with pytest.raises(BookError, match="leads nowhere"):
        shape_of(SCHEMAS, "turn.json#/$defs/Nothing")
