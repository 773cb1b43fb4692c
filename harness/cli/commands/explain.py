"""`harness explain` and `harness list`: meanings of rules, requirements and findings."""

import inspect
from collections.abc import Iterator

from harness.cli.commands import fault_list, protocol_words, vocabulary
from harness.cli.commands.protocol_words import clause_lines, wrap
from harness.errors import UsageError
from harness.faults.base import all_faults
from harness.faults.client_duties import client_faults
from harness.judge.base import Monitor, Side
from harness.judge.rules.discovery import class_place, every_rule
from harness.protocol.spec.findings import FindingKind, finding_kinds
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.rows import Requirement
from harness.scenario.bundled import bundled_scenario, bundled_with
from harness.scenario.explain import unknown_name

_LISTED = "harness list"


def explain(name: str) -> Iterator[str]:
    """Yield the lines of an explanation. Raises `UsageError` for an unknown id.

    A rule and a requirement can share an id: then both are explained, the rule first.
    """
    rules, kinds = every_rule(), finding_kinds()
    requirements = {requirement.id: requirement for requirement in load_book().requirements}
    # Also as pytest prints it: rules::turn.completes, findings::setup.not-started.
    wanted_id = name.split("::", 1)[-1]
    is_word = wanted_id in vocabulary.names() or wanted_id.upper() in vocabulary.names()
    if wanted_id in kinds:
        yield from _finding_lines(kinds[wanted_id])
    elif wanted_id in rules:
        yield from _rule_lines(rules[wanted_id], alone=wanted_id not in requirements)
    elif wanted_id in requirements:
        yield from _requirement_lines(requirements[wanted_id])
    elif is_word or protocol_words.is_explained(wanted_id):
        if is_word:
            yield from vocabulary.explain_word(wanted_id)
        if protocol_words.is_explained(wanted_id):
            yield from [""] * is_word
            yield from protocol_words.explain_word(wanted_id)
    elif wanted_id in fault_list.faults_by_id():
        yield from fault_list.explain_fault(wanted_id)
    else:
        raise UsageError(unknown_name("id", wanted_id, explained_names(), listed=_LISTED))


def explained_names() -> list[str]:
    """Return every id and word that `explain` knows, in alphabetical order."""
    requirements = (requirement.id for requirement in load_book().requirements)
    ids = {*every_rule(), *finding_kinds(), *requirements, *fault_list.faults_by_id()}
    return sorted(ids | {*vocabulary.names(), *protocol_words.names()})


def _finding_lines(kind: FindingKind) -> Iterator[str]:
    yield f"{kind.id} (finding)"
    yield ""
    yield from wrap(kind.means[0].upper() + kind.means[1:] + ".")
    yield ""
    yield "usual causes:"
    for cause in kind.causes:
        yield from wrap(cause, "- ")
    yield ""
    yield "what to do:"
    yield from wrap(kind.advice, "  ")
    yield ""
    if kind.accepted:
        yield "known and accepted? name it in a baseline or a profile:"
        yield f'  [[deviations]] with rule = "{kind.id}" and a reason'
    else:
        yield "no baseline can accept it"


def _requirement_lines(requirement: Requirement) -> Iterator[str]:
    yield from clause_lines(requirement)
    yield ""
    yield f"binds: {requirement.clause.bound}; level {requirement.clause.level}"
    if requirement.drawn_from:
        yield f"drawn from: {', '.join(requirement.drawn_from)}"
    if requirement.lighter:
        yield from wrap(f"no MUST, since: {requirement.lighter}")
    if requirement.excluded:
        yield from wrap(f"no rule judges it: {requirement.excluded}")
    rules = every_rule()
    for name in requirement.rules:
        yield f"judged by: {name} ({rules[name].level}): {rules[name].title}"
    if requirement.rules:
        yield f"more: harness explain {requirement.rules[0]}"


def _rule_lines(rule: type[Monitor], *, alone: bool) -> Iterator[str]:
    yield f"{rule.id} ({rule.level}): {rule.title}"
    yield ""
    yield from wrap(" ".join((inspect.getdoc(rule) or "").split()))
    yield f"its class: {class_place(rule)}"
    yield ""
    judged = load_book().requirements_of(rule.id)
    for requirement in judged:
        yield from clause_lines(requirement)
    if not alone and all(requirement.id != rule.id for requirement in judged):
        yield from clause_lines(load_book().requirement(rule.id))
    yield ""
    if rule.side is Side.CLIENT:
        yield "a duty of clients, judged by harness check --side client and behind"
        yield "agent app-server --scenario; no server is judged by it"
        for fault in client_faults().values():
            if fault.rule == rule.id:
                yield f"broken for example where: {fault.reason}"
        return
    if rule.needs:
        yield f"needs: {', '.join(rule.needs)}"
    covering = [
        name for name in bundled_with(rule.id) if rule.id in bundled_scenario(name).scenario.covers
    ]
    yield f"scenarios that cover it: {', '.join(covering) or 'none by name; see harness status'}"
    killers = [fault for fault in all_faults().values() if fault.rule == rule.id]
    for fault in killers:
        yield f"caught by it: {fault.id}: {fault.reason}"


def rule_rows() -> list[dict[str, str]]:
    """Return all rules with their level and title."""
    return [
        {"id": rule.id, "level": str(rule.level), "title": rule.title}
        for rule in every_rule().values()
    ]


def rule_table(*, markdown: bool = False) -> Iterator[str]:
    """Yield a line per rule with id, level and title; with `markdown` a Markdown table."""
    rules = every_rule().values()
    if markdown:
        yield "| rule | level | title |"
        yield "|---|---|---|"
        for rule in rules:
            yield f"| `{rule.id}` | {rule.level} | {rule.title} |"
        return
    width = max(len(rule.id) for rule in rules)
    for rule in rules:
        yield f"{rule.id:{width}}  {rule.level:6}  {rule.title}"
