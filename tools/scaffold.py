"""Scaffold of a new rule: `python -m tools.scaffold ID NEIGHBOUR`.

It writes the four parts of a rule, each next to that of an existing rule, the neighbour: the class,
the row of its requirement, a fault and a case. Places to complete say FILL IN and are listed at the
end. The neighbour must judge the session protocol; start rules of other surfaces by hand.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

from harness.judge.rules.discovery import all_rules
from harness.protocol.spec.loading import load_book
from harness.trace.nearest import unknown_name
from harness.trace.surfaces import SESSION

ROOT = Path(__file__).parents[1]
RULE_ID = re.compile(r"[a-z][a-z-]*\.[a-z][a-z-]*")

CLASS = '''

@rule("{id}", title="FILL IN: the requirement in a few words", level=Level.{level})
class {name}(Monitor):
    """Judges that FILL IN.

    A finding needs FILL IN. Left open: FILL IN.
    """

    @on("turn/completed")
    def on_turn_completed(self, frame: Frame) -> Outcomes:
        # FILL IN: the notification to listen to; a Witness only where something was judged.
        turn = self.conversation.turn_of(frame)
        return [Witness(turn.subject, (frame,))] if turn is not None else None
'''
ROW = """# FILL IN: line, heading, basis, level, from; they are still those of {neighbour}.
- {{id: {id}, document: {document}, line: {line},
   heading: {heading},
   bound: server, basis: {basis}, level: {level},
   {origin}rules: [{id}],
   statement: "FILL IN: the requirement in our own words."}}
"""
FAULT = """    Fault(
        "FILL-IN-{fault}",
        rule="{id}",
        on="plain-turn",
        reason="FILL IN: why a trace with this change is illegal.",
        change=first(turn_completed(), duplicate),
    ),
"""
CASE = """    Case(
        rule="{id}",
        # FILL IN: a conversation that keeps the rule, with the subjects that are witnesses.
        good=running().turn_completed(),
        witnesses=("turn turn_1",),
        # FILL IN: one that breaks it, with the frames that prove it.
        bad=running().turn_completed(),
        found=(Found("turn turn_1", (9,)),),
        # FILL IN: one that gives the rule nothing to judge.
        not_exercised=silent(),
    ),
"""


# Names that the parts import, by module.
NAMES = {
    "class": {
        "harness.judge.base": ("Monitor", "Outcomes", "Witness", "on", "rule"),
        "harness.judge.verdict": ("Level",),
        "harness.trace.frame": ("Frame",),
    },
    "fault": {
        "harness.faults.base": ("Fault",),
        "harness.faults.changes": ("first",),
        "harness.faults.operators": ("duplicate",),
        "harness.faults.selectors": ("turn_completed",),
    },
    "case": {"tests.rules.case": ("Case", "Found", "running", "silent")},
}


def main(rule_id: str, neighbour: str) -> list[str]:
    """Write the four parts; return the places to fill in, as `file:line: text`.

    Raises SystemExit for an invalid id, or a neighbour that cannot be used.
    """
    rules, book = all_rules(), load_book()
    if not RULE_ID.fullmatch(rule_id):
        raise SystemExit(f"{rule_id!r} is not an id of a rule: family.slug, such as turn.ends-once")
    if rule_id in rules:
        raise SystemExit(f"the rule {rule_id} exists already; make prove RULE={rule_id} proves it")
    if neighbour not in rules:
        raise SystemExit(unknown_name("rule", neighbour, rules))
    rule = rules[neighbour]
    if rule.surface != SESSION:
        raise SystemExit(f"{neighbour} does not judge the session protocol: take another one")
    requirement = book.requirements_of(neighbour)[0]
    row = _file_with("harness/protocol/spec/requirements/*.yaml", f"id: {requirement.id},")
    module = ROOT / (rule.__module__.replace(".", "/") + ".py")
    fault = _file_with("harness/faults/tables/*.py", f'rule="{neighbour}"')
    case = _file_with("tests/rules/cases_*.py", f'rule="{neighbour}"')
    drawn_from = requirement.drawn_from
    fields = {
        "id": rule_id,
        "neighbour": requirement.id,
        "fault": rule_id.replace(".", "-"),
        "name": _class_name(rule_id, module),
        "level": rule.level.name,
        "document": requirement.clause.document,
        "line": requirement.clause.line,
        "heading": requirement.clause.heading,
        "basis": requirement.clause.basis,
        "origin": f"from: [{', '.join(drawn_from)}], " if drawn_from else "",
    }
    _insert(row, _end_of_row(row, requirement.id), ROW.format(**fields))
    _insert(module, len(module.read_text("utf-8").splitlines()), CLASS.format(**fields))
    _insert(fault, _end_of_list(fault, "FAULTS"), FAULT.format(**fields))
    _insert(case, _end_of_list(case, "CASES"), CASE.format(**fields))
    for path, part in ((module, "class"), (fault, "fault"), (case, "case")):
        _import(path, NAMES[part])
    for words in (("check", "--fix", "--select", "I"), ("format",)):
        command = [sys.executable, "-m", "ruff", *words, "--quiet", module, fault, case]
        subprocess.run(command, check=True)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in (module, row, fault, case)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if "FILL IN" in line or "FILL-IN" in line
    ]


def _class_name(rule_id: str, module: Path) -> str:
    """Return the class name of a rule: its slug, with its family before it if that is taken."""
    family, slug = ("".join(map(str.capitalize, part.split("-"))) for part in rule_id.split("."))
    return family + slug if f"class {slug}(" in module.read_text("utf-8") else slug


def _import(path: Path, names: dict[str, tuple[str, ...]]) -> None:
    """Add imports of the names that a file lacks, before its first import, unsorted."""
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    bound = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    bound |= {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    missing = {
        module: [name for name in them if name not in bound] for module, them in names.items()
    }
    lines = [
        f"from {module} import {', '.join(them)}\n" for module, them in missing.items() if them
    ]
    first = next(node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom))
    _insert(path, first.lineno - 1, "".join(lines))


def _file_with(pattern: str, text: str) -> Path:
    for path in sorted(ROOT.glob(pattern)):
        if text in path.read_text("utf-8"):
            return path
    raise SystemExit(f"no file of {pattern} has {text}: take a neighbour that has one")


def _end_of_row(path: Path, requirement: str) -> int:
    """Return the number of lines up to the end of a requirement's row."""
    lines = path.read_text("utf-8").splitlines()
    begin = next(at for at, line in enumerate(lines) if f"id: {requirement}," in line)
    return next(
        (at for at in range(begin + 1, len(lines)) if lines[at].startswith(("- ", "#"))), len(lines)
    )


def _end_of_list(path: Path, name: str) -> int:
    """Return the number of lines before the closing bracket of the list `name`."""
    for node in ast.parse(path.read_text("utf-8")).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AnnAssign) else targets
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return (node.end_lineno or 0) - 1
    raise SystemExit(f"{path.relative_to(ROOT)} has no {name}: take a neighbour that has one")


def _insert(path: Path, index: int, text: str) -> None:
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines[:index], text, *lines[index:]]), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("use: make rule RULE=family.slug NEXT_TO=a-rule-that-exists")
    todo = main(*sys.argv[1:])
    sys.stdout.write("\n".join(["written; to be filled in:", *todo, ""]))
