"""The project's own source files, modules and imports."""

import ast
import gc
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = ("harness", "reference_server")


@dataclass(frozen=True, slots=True)
class Import:
    """One import of a module; `lazy` if inside a function or under TYPE_CHECKING."""

    importer: str
    imported: str
    place: str
    lazy: bool


def python_files(*folders: str) -> list[Path]:
    """Return the Python files in folders of the project, sorted."""
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


def relative(path: Path) -> str:
    """Return a path relative to the project's root."""
    return path.relative_to(ROOT).as_posix()


def module_name(path: Path) -> str:
    """Return the module of a file: `harness.judge.base`; for an `__init__.py` the package."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file.

    The garbage collector passes it by, as it is kept to the end: collections while all files are
    parsed take three times as long as the parser.
    """
    gc.disable()
    try:
        return ast.parse(path.read_text("utf-8"), str(path))
    finally:
        gc.freeze()
        gc.enable()


@cache
def modules() -> frozenset[str]:
    """Return the names of our own modules and packages."""
    return frozenset(module_name(path) for path in python_files(*OURS))


@cache
def imports(*folders: str) -> tuple[Import, ...]:
    """Return every import in the folders, including those inside functions.

    `from harness.judge.rules import judge` imports the module `harness.judge.judge`.
    """
    return tuple(one for path in python_files(*folders) for one in _imports_of(path))


@cache
def _imports_of(path: Path) -> tuple[Import, ...]:
    nodes = list(ast.walk(parsed(path)))
    lazy = _lazy_lines(nodes)
    return tuple(
        Import(module_name(path), name, f"{relative(path)}:{line}", line in lazy)
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Call)
        for line in [node.lineno]
        for name in _imported(node, path)
    )


def _imported(node: ast.AST, path: Path) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = _absolute(node, path)
        for alias in node.names:
            whole = f"{base}.{alias.name}"
            yield whole if whole in modules() else base
    elif isinstance(node, ast.Call) and _callee(node) in ("import_module", "__import__"):
        first = node.args[0] if node.args else None
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            yield first.value


def _absolute(node: ast.ImportFrom, path: Path) -> str:
    if not node.level:
        return node.module or ""
    package = module_name(path).split(".")
    package = package if path.name == "__init__.py" else package[:-1]
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def _callee(node: ast.Call) -> str:
    function = node.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _lazy_lines(nodes: Sequence[ast.AST]) -> set[int]:
    """Return the lines that do not run when the module is imported."""
    lines: set[int] = set()
    for node in nodes:
        function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if function or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
            lines |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def package_of(module: str) -> str:
    """Return the room of a module: `harness.judge` for `harness.judge.base`."""
    return ".".join(module.split(".")[:2])


def within(module: str, *packages: str) -> bool:
    """Return whether a module is one of the packages or inside one."""
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def reached_from(start: str, *, but: tuple[str, ...] = ()) -> set[str]:
    """Return our modules that `start` imports, directly or not, including lazy imports.

    Modules in `but` are left out, with the imports that only they make.
    """
    reached, waiting = set[str](), [start]
    while waiting:
        module = waiting.pop()
        if module not in reached and module not in but:
            reached.add(module)
            waiting += _graph().get(module, ())
    return reached


@cache
def _graph() -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {}
    for one in imports(*OURS):
        if one.imported in modules():
            graph.setdefault(one.importer, set()).add(one.imported)
    return graph
