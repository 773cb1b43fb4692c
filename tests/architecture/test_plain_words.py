"""How docstrings and tests are worded."""

import ast
import re
from collections.abc import Iterator

from source_tree import OURS, parsed, python_files, relative

RELATIVE = re.compile(r"(What|Which|Where|Whether|How|When|Who|Whose|Why)\b")


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


def test_tests_are_called_by_the_behaviour_that_they_show() -> None:
    names = [
        f"{relative(path)}:{node.lineno}: {node.name}"
        for path in python_files("tests")
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test_what_")
    ]
    assert names == []
