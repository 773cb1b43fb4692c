"""Wording of docstrings and names of tests."""

import ast
import re
from collections.abc import Iterator

from source_tree import OURS, ROOT, parsed, python_files, relative

PYTHON = (*OURS, "sdk", "tools", "tests", "fixtures")
RELATIVE = re.compile(
    r"(What(ever)?|Which(ever)?|Where(ver)?|Whether|How(ever)?|When(ever)?|Who(ever)?|Whom|Whose|Why"
    r"|That|Those|As)\b"
)


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield each docstring of the project with its place, those below constants and fields too."""
    for path in (ROOT / "conftest.py", *python_files(*PYTHON)):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                yield f"{relative(path)}:{node.lineno}", str(node.value.value).lstrip()


def test_no_docstring_begins_with_a_relative_clause() -> None:
    """A function's begins with a verb, that of a class, module or constant with a noun."""
    places = [place for place, docstring in docstrings() if RELATIVE.match(docstring)]
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
