"""Random trees and edits: the patch for them, read, planned and made, gives the edited tree."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from patch_trees import (
    WHOLE,
    Edit,
    Tree,
    expected,
    files,
    patch_for,
    snapshot,
    trees_with_edits,
    write_tree,
)

from reference_server.patch.apply import apply_plan
from reference_server.patch.parse import parse_patch
from reference_server.patch.plan import make_plan

TreeAndEdits = tuple[Tree, dict[str, Edit], Tree]


def _check(given_tree: TreeAndEdits, context: int, ending: str = "\n") -> None:
    tree, edits, after = given_tree
    assume(edits)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        write_tree(root, tree)
        before = snapshot(root)
        plan = make_plan(parse_patch(patch_for(edits, context).replace("\n", ending)), root)
        assert snapshot(root) == before, "planning writes nothing"
        apply_plan(plan)
        assert files(root) == expected(after)


@pytest.mark.slow
@settings(deadline=None)
@given(trees_with_edits(apart=True))
def test_hunks_with_little_context_lead_to_the_edited_tree(case: TreeAndEdits) -> None:
    _check(case, 3)


@pytest.mark.slow
@settings(deadline=None)
@given(trees_with_edits(apart=False))
def test_whole_files_as_context_lead_to_the_edited_tree(case: TreeAndEdits) -> None:
    _check(case, WHOLE)


@pytest.mark.slow
@settings(deadline=None)
@given(trees_with_edits(apart=True))
def test_a_patch_with_windows_line_ends_means_the_same(case: TreeAndEdits) -> None:
    _check(case, 3, "\r\n")
