"""Imports of the SDK: the standard library, its own modules without a cycle, and pydantic late."""

import ast
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import agent_sdk

FOLDER = Path(agent_sdk.__file__).parent
FILES = sorted(FOLDER.glob("*.py"))
MAX_LINES = 300


def _imported(path: Path) -> Iterator[str]:
    """Modules that a file imports, also inside functions and for types alone."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            base = node.module or ""
            inside = [f"{base}.{alias.name}" for alias in node.names]
            yield from (
                one if (FOLDER / f"{alias}.py").exists() else base
                for one, alias in zip(inside, (a.name for a in node.names), strict=True)
            )


def test_it_needs_the_standard_library_and_for_types_pydantic() -> None:
    others = {
        (path.name, name)
        for path in FILES
        for name in _imported(path)
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "agent_sdk"}
    }
    assert others == {("schema.py", "pydantic")}


def test_modules_form_no_cycle() -> None:
    graph = {
        f"agent_sdk.{path.stem}".removesuffix(".__init__"): {
            name for name in _imported(path) if name.startswith("agent_sdk")
        }
        for path in FILES
    }
    assert len(graph) > 15
    assert list(TopologicalSorter(graph).static_order())[-1] == "agent_sdk"


def test_every_module_says_what_lives_in_it_and_is_short() -> None:
    for path in FILES:
        text = path.read_text("utf-8")
        assert ast.get_docstring(ast.parse(text)), path.name
        assert len(text.splitlines()) <= MAX_LINES, path.name
