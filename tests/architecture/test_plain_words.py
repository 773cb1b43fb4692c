"""How docstrings and tests are worded: counts of what is to go, which only fall."""

import ast
import re
from collections.abc import Iterator

from source_tree import OURS, parsed, python_files, relative

RELATIVE = re.compile(r"(What|Which|Where|Whether|How|When|Who|Whose|Why)\b")
MAX_TESTS_OF_WHAT = 173
"""Tests called `test_what_...`, which name no behaviour."""


def docstrings(package: str) -> Iterator[tuple[str, str]]:
    """Give each docstring of a package, with its place."""
    for path in python_files(package):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                place = f"{relative(path)}:{getattr(node, 'lineno', 1)}"
                yield place, ast.get_docstring(node) or ""


def test_no_docstring_begins_with_a_relative_clause() -> None:
    """A function's begins with a verb, that of a class or module with a noun."""
    places = [
        place
        for package in (*OURS, "sdk", "tools")
        for place, docstring in docstrings(package)
        if RELATIVE.match(docstring)
    ]
    assert places == []


def test_ever_fewer_tests_are_called_by_a_relative_clause() -> None:
    names = [
        f"{relative(path)}:{node.lineno}: {node.name}"
        for path in python_files("tests")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_what_")
    ]
    assert len(names) <= MAX_TESTS_OF_WHAT, names
    assert len(names) > MAX_TESTS_OF_WHAT - 20, f"lower the count to {len(names)}"
