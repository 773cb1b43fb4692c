"""`python -m tools.scaffold ID NEIGHBOUR` begins a new rule beside one that exists.

It writes the four parts of a rule, each next to the neighbour's: the class, the row of its
requirement, a fault and a case. What must be filled in says FILL IN, and is listed at the end.
"""

import ast
import re
import sys
from pathlib import Path

from harness.judge.rules.discovery import all_rules
from harness.protocol.spec.loading import load_book
from harness.trace.nearest import unknown_name

ROOT = Path(__file__).parents[1]
RULE_ID = re.compile(r"[a-z][a-z-]*\.[a-z][a-z-]*")
TODO = "FILL IN"

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
ROW = """- {{id: {id}, document: {document}, line: {line},
   heading: {heading},
   bound: server, basis: {basis}, level: {level}, {origin}rules: [{id}],
   statement: "FILL IN: the requirement in our own words."}}
"""
FAULT = """    Fault(
        "FILL-IN-{slug}",
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
        witnesses=(SUBJECT,),
        # FILL IN: one that breaks it, with the frames that prove it.
        bad=running().turn_completed(),
        found=(Found(SUBJECT, (9,)),),
        # FILL IN: one that gives the rule nothing to judge.
        idle=foreign(),
    ),
"""


def main(rule_id: str, neighbour: str) -> list[str]:
    """Write the four parts; return the places to fill in. Raises SystemExit for a wrong id."""
    rules, book = all_rules(), load_book()
    if not RULE_ID.fullmatch(rule_id):
        raise SystemExit(f"{rule_id!r} is not an id of a rule: family.slug, such as turn.ends-once")
    if rule_id in rules:
        raise SystemExit(f"the rule {rule_id} exists already; make prove RULE={rule_id} proves it")
    if neighbour not in rules:
        raise SystemExit(unknown_name("rule", neighbour, rules))
    requirement = book.requirements_of(neighbour)[0]
    drawn_from = requirement.drawn_from
    name = "".join(word.capitalize() for word in rule_id.split(".")[1].split("-"))
    fields = {
        "id": rule_id,
        "slug": rule_id.split(".")[1],
        "name": name,
        "level": rules[neighbour].level.name,
        "document": requirement.clause.document,
        "line": requirement.clause.line,
        "heading": requirement.clause.heading,
        "basis": requirement.clause.basis,
        "origin": f"from: [{', '.join(drawn_from)}], " if drawn_from else "",
    }
    module = ROOT / (rules[neighbour].__module__.replace(".", "/") + ".py")
    module.write_text(module.read_text("utf-8") + CLASS.format(**fields), "utf-8")
    row = _file_with("harness/protocol/spec/requirements/*.yaml", f"id: {requirement.id},")
    _insert(row, _end_of_row(row, requirement.id), ROW.format(**fields))
    fault = _file_with("harness/faults/tables/*.py", f'rule="{neighbour}"')
    _insert(fault, _end_of_call(fault, "Fault", neighbour), FAULT.format(**fields))
    case = _file_with("tests/rules/cases_*.py", f'rule="{neighbour}"')
    _insert(case, _end_of_call(case, "Case", neighbour), CASE.format(**fields))
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in (module, row, fault, case)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if TODO in line or "FILL-IN" in line
    ]


def _file_with(pattern: str, text: str) -> Path:
    for path in sorted(ROOT.glob(pattern)):
        if text in path.read_text("utf-8"):
            return path
    raise SystemExit(f"no file of {pattern} has {text}: take a neighbour that has one")


def _end_of_row(path: Path, requirement: str) -> int:
    """Return the number of lines up to the end of a row."""
    lines = path.read_text("utf-8").splitlines()
    begin = next(at for at, line in enumerate(lines) if f"id: {requirement}," in line)
    return next(
        (at for at in range(begin + 1, len(lines)) if lines[at].startswith(("- ", "#"))), len(lines)
    )


def _end_of_call(path: Path, name: str, rule_id: str) -> int:
    """Return the number of lines up to the end of the last call of `name` about a rule."""
    ends = [
        node.end_lineno or 0
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == name
        and any(
            keyword.arg == "rule"
            and isinstance(keyword.value, ast.Constant)
            and keyword.value.value == rule_id
            for keyword in node.keywords
        )
    ]
    return max(ends)


def _insert(path: Path, index: int, text: str) -> None:
    lines = path.read_text("utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines[:index], text, *lines[index:]]), "utf-8")


if __name__ == "__main__":
    todo = main(*sys.argv[1:3])
    sys.stdout.write("\n".join(["written; to be filled in:", *todo, ""]))
