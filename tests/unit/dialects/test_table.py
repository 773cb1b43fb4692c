"""The table of dialects: rows are complete, and select by release."""

from typing import Any, cast

import pytest

from harness.protocol.dialects.table import (
    DialectError,
    dialect_names,
    load_dialect,
    load_table,
    version_of,
)
from harness.protocol.wire import methods
from harness.protocol.wire.base import WireModel
from reference_server.dialect.mappers import FORMS

KINDS = (
    *("member", "rename", "word", "shape", "drop", "method", "order", "error_code", "client_word"),
    *("notification", "hold", "refuse", "final_failure", "told_to_all", "unknown_note"),
    "login",
)


def rows() -> list[tuple[str, dict[str, Any]]]:
    table = load_table()
    return [
        (kind, row) for kind in KINDS for row in cast("list[dict[str, Any]]", table.get(kind, []))
    ]


def wire_types() -> dict[str, type[WireModel]]:
    """Return the wire models by name; two of one name would make a row ambiguous."""
    for spec in methods.METHODS:  # imports each module of the wire
        assert issubclass(spec.params, WireModel)
    found: dict[str, type[WireModel]] = {}

    def visit(model: type[WireModel]) -> None:
        for sub in model.__subclasses__():
            if sub.__module__.startswith("harness.protocol.wire"):
                assert found.setdefault(sub.__name__, sub) is sub
            visit(sub)

    visit(WireModel)
    return found


def test_each_row_has_evidence_and_a_range_of_studied_releases() -> None:
    releases = load_table()["releases"]
    for kind, row in rows():
        assert row.get("evidence"), (kind, row)
        for bound in ("since", "until"):
            assert row.get(bound) is None or version_of(row[bound]), (kind, row)
        assert row.get("until") != releases[0], f"holds for no release: {row}"


def test_each_row_names_types_members_and_methods_of_the_wire() -> None:
    types = wire_types()
    for kind, row in rows():
        names = row.get("types") or ([row["type"]] if row.get("type") else [])
        assert set(names) <= {*types, "Notification", "ExecUsage"}, (kind, row)
        if kind in ("word", "shape"):
            type_name, _, member = row["at"].partition(".")
            aliases = {field.alias for field in types[type_name].model_fields.values()}
            assert member in aliases, row
        if kind == "rename":
            aliases = {field.alias for field in types[row["type"]].model_fields.values()}
            assert row["name"] in aliases, row
        if kind == "shape":
            assert row["form"] in FORMS
        if kind == "told_to_all":
            assert row["method"] in methods.BY_METHOD
        if row.get("via"):
            assert row["via"] in methods.BY_METHOD


def test_a_release_has_the_rows_of_its_number() -> None:
    first, last = map(load_dialect, dialect_names())
    assert (first.release, last.release) == ("0.107.0", "0.169.0")
    names = [{row.name for row in one.members} for one in (first, last)]
    assert "codexHome" not in names[0]
    assert "codexHome" in names[1]
    between = load_dialect("codex-0.140")
    assert between.release == "0.140.0"
    assert load_dialect("codex") == last


@pytest.mark.parametrize(
    "name", ["", "codex-", "codex-0.106", "codex-0.170", "codex-1", "codex-x.y", "0.169", "other"]
)
def test_an_unknown_dialect_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(DialectError, match=r"known: codex-0\.107, codex-0\.169"):
        load_dialect(name)
