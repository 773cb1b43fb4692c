"""House rules that a machine can check: sizes, docstrings, no sleeping, no paths of one machine."""

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from source_tree import OURS, ROOT, parsed, python_files, relative

SUPERLATIVE = re.compile(
    r"_?(MOST|LEAST|LONGEST|LARGEST|SHORTEST|FEWEST|DEEPEST|ENOUGH|MANY)(_[A-Z_]+)?|\w+_AT_(MOST|LEAST)"
)
MAP = re.compile(r"\bHere:|\bHere lives?\b|\bNot here\b")

MAX_LINES = 500
LONG = 300
SUFFIXES = (".py", ".toml", ".yaml", ".json", ".jsonl", ".md", ".sh")

SLEEPERS = ("anyio", "time", "asyncio", "trio")
# The end of a trace is the one thing that silence decides.
# The second is a server that is slow to start, to be judged as such.
MAY_SLEEP = ("harness/scenario/ending.py", "fixtures/servers/foreign.py")


def test_no_file_has_more_lines_than_a_reader_can_hold() -> None:
    lines = {
        relative(path): len(path.read_text("utf-8").splitlines())
        for path in python_files(*OURS, "tests", "fixtures", "tools")
    }
    long = [f"{count} {name}" for name, count in lines.items() if count > LONG]
    too_long = [f"{count} {name}" for name, count in lines.items() if count > MAX_LINES]
    assert not too_long, f"over {MAX_LINES}: {too_long}; look at those over {LONG} too: {long}"


def _sleeps(path: Path) -> Iterator[str]:
    for node in ast.walk(parsed(path)):
        match node:
            case ast.Attribute(value=ast.Name(id=module), attr="sleep") if module in SLEEPERS:
                yield f"{relative(path)}:{node.lineno}: {module}.sleep"
            case ast.ImportFrom(module=module, names=names) if module in SLEEPERS:
                if any(alias.name == "sleep" for alias in names):
                    yield f"{relative(path)}:{node.lineno}: sleep of {module}"
            case _:
                pass


def test_only_the_end_of_a_trace_waits_by_the_clock() -> None:
    found = [
        place
        for path in python_files(*OURS, "tests", "fixtures", "tools")
        # To parse all tests takes seconds.
        if relative(path) not in MAY_SLEEP and "sleep" in path.read_text("utf-8")
        for place in _sleeps(path)
    ]
    assert not found, "wait for an event or a predicate with a bound instead:\n" + "\n".join(found)


def _raises_in_except_star(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.TryStar):
            for handler in node.handlers:
                yield from (
                    each.lineno for each in ast.walk(handler) if isinstance(each, ast.Raise)
                )


def test_no_error_is_raised_in_except_star() -> None:
    assert [*_raises_in_except_star(ast.parse("try: f()\nexcept* OSError: raise ValueError"))]
    found = [
        f"{relative(path)}:{line}"
        for path in python_files(*OURS, "tools")
        if "except*" in path.read_text("utf-8")
        for line in _raises_in_except_star(parsed(path))
    ]
    assert not found, f"before Python 3.11.4 a group is raised instead: {found}"


def _wakes_from_signal(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of handlers set with `signal.signal` that call into an event loop."""
    set_names = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "signal.signal"
        for argument in node.args[1:]
        for name in ast.walk(argument)
        if isinstance(name, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name in set_names:
            yield from [node.lineno] if "call_soon" in ast.unparse(node) else []


def test_no_loop_is_woken_by_a_handler_that_it_does_not_know() -> None:
    bad = "def stop(n, f): loop.call_soon_threadsafe(end)\nsignal.signal(15, stop)"
    assert [*_wakes_from_signal(ast.parse(bad))]
    found = [
        f"{relative(path)}:{line}"
        for path in python_files(*OURS, "fixtures", "tools")
        if "signal.signal" in path.read_text("utf-8")
        for line in _wakes_from_signal(parsed(path))
    ]
    assert not found, f"a signal just before the loop waits is lost; use the loop's own: {found}"


def _compares_order(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Yield the uses of sequence numbers, except as the place of a finding."""
    places = {
        argument
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "Place"
        for argument in node.args[:1]
    }
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node in places:
            continue
        # `Mark.after` is a sequence number; `Machine.after(…)` is a call.
        if node.attr == "seq" or (node.attr == "after" and node not in called):
            yield node


def test_rules_ask_for_order_and_compare_no_sequence_numbers() -> None:
    rules = python_files("harness/judge/rules")
    assert len(rules) > 40
    found = [
        f"{relative(path)}:{node.lineno}: .{node.attr}"
        for path in rules
        for node in _compares_order(parsed(path))
    ]
    assert not found, "ask Trace.before, or harness.trace.order:\n" + "\n".join(found)


def test_a_compared_sequence_number_is_seen() -> None:
    text = "a.seq < b.seq; mark.after; machine.after(1); Place(frame.seq, name); Place(1, b.seq)"
    assert [node.attr for node in _compares_order(ast.parse(text))] == [
        "after",
        "seq",
        "seq",
        "seq",
    ]


def _roots(tree: ast.AST) -> Iterator[ast.ClassDef]:
    """Public classes that derive from an exception of the language."""
    known = vars(builtins)
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
            continue
        bases = [known.get(base.id) for base in node.bases if isinstance(base, ast.Name)]
        if any(isinstance(base, type) and issubclass(base, BaseException) for base in bases):
            yield node


def test_errors_of_the_harness_are_one_tree() -> None:
    found = {
        f"{relative(path)}: {node.name}"
        for path in python_files("harness")
        for node in _roots(parsed(path))
    }
    # A signal ends a run as Ctrl-C ends a program: nothing that catches errors may catch it.
    interrupted = "harness/play/interruption.py: Interrupted"
    assert found == {"harness/errors.py: HarnessError", interrupted}


def test_the_one_that_may_sleep_does() -> None:
    assert [place for name in MAY_SLEEP for place in _sleeps(ROOT / name)]


def _is_rule(node: ast.ClassDef) -> bool:
    """A rule is described at its class; its handlers are its parts."""
    return any(
        isinstance(one, ast.Call) and isinstance(one.func, ast.Name) and one.func.id == "rule"
        for one in node.decorator_list
    )


def _public(body: list[ast.stmt]) -> Iterator[tuple[str, ast.ClassDef | ast.FunctionDef]]:
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if node.name.startswith("_"):
            continue
        yield node.name, node  # type: ignore[misc]
        if isinstance(node, ast.ClassDef) and not _is_rule(node):
            yield from ((f"{node.name}.{name}", one) for name, one in _public(node.body))


@pytest.mark.parametrize("package", OURS)
def test_everything_public_has_a_docstring(package: str) -> None:
    missing = [
        f"{relative(path)}:{node.lineno}: {name}"
        for path in python_files(package)
        for name, node in _public(parsed(path).body)
        if not ast.get_docstring(node)
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("package", OURS)
def test_every_module_says_what_lives_in_it(package: str) -> None:
    missing = [
        relative(path)
        for path in python_files(package)
        if parsed(path).body and not ast.get_docstring(parsed(path))
    ]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("package", [*OURS, "tests", "tools"])
def test_no_module_repeats_the_map(package: str) -> None:
    """ARCHITECTURE.md says where each thing is, and the layering test who may import whom."""
    repeated = [
        relative(path)
        for path in python_files(package)
        if MAP.search(ast.get_docstring(parsed(path)) or "")
    ]
    assert repeated == []
    assert all(map(MAP.search, ("Here: x.", "It does. Here live x.", "Not here: y.")))


def test_constants_are_called_by_what_they_bound() -> None:
    """MAX_REQUESTS says where it is used what it bounds; MOST and LEAST do not."""
    superlatives = [
        f"{relative(path)}:{node.lineno}: {node.id}"
        for package in [*OURS, "sdk", "tests", "tools", "fixtures"]
        for path in python_files(package)
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Name)
        and isinstance(node.ctx, ast.Store)
        and SUPERLATIVE.fullmatch(node.id)
    ]
    assert superlatives == []
    assert all(map(SUPERLATIVE.fullmatch, ("MOST", "_LONGEST", "MOST_TOOLS", "OPEN_AT_MOST")))


def test_no_file_holds_a_path_of_one_machine() -> None:
    homes = tuple(f"/{name}/" for name in ("work", "root"))
    found = [
        f"{relative(path)}: {home}"
        for folder in (*OURS, "tools", "scenarios", "fixtures", "docs")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix in SUFFIXES
        for home in homes
        if home in path.read_text("utf-8")
    ]
    assert not found, "\n".join(found)


def test_modules_of_tests_outside_packages_have_names_of_their_own() -> None:
    """pytest imports such a module by its bare name; of two with one name it finds the first."""
    loose = [
        path
        for path in python_files("tests")
        if not (path.parent / "__init__.py").exists() and path.name != "conftest.py"
    ]
    names = Counter(path.name for path in loose)
    twice = [relative(path) for path in loose if names[path.name] > 1]
    assert not twice, "\n".join(twice)
