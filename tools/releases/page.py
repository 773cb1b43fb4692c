"""docs/releases.md: findings, choices, methods and members by release."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.loading import load_book
from harness.report.drift.release_schemas import Part, ReleaseSchemas
from harness.report.results.report import Report, RuleResult
from tools.releases.members import Members, read_members
from tools.releases.spans import spans

HEAD = """\
# Releases of a shipping server

Made by `make releases`, which plays the bundled scenarios on these releases of Codex's
`app-server`; do not edit. A finding is a rule that scenarios of an area broke; most are known: the
profile `codex` lists them with their reasons. Other releases were published between these:
`harness bisect` finds the first one that changed ([Bisect](bisect.md)).
"""
# Values of an open point that more of the scenarios than this show are its usual ones.
MIN_SHARE = 0.2
MAX_VALUE_LENGTH = 90
_KINDS = {
    Part.RESULT: "request",
    Part.NOTIFICATION: "notification",
    Part.SERVER_REQUEST: "request of the server",
}

Reports = Mapping[str, Report]
Present = Mapping[str, set[str]]


def page(reports: Reports, schemas: Mapping[str, ReleaseSchemas]) -> str:
    """Return the page; both mappings have the releases as keys, in their order."""
    releases = tuple(reports)
    parts = (
        [HEAD],
        _summary(reports),
        _findings(reports, releases),
        _methods(schemas),
        _members(schemas),
        _choices(reports, releases),
    )
    return "\n".join(line for part in parts for line in part)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', '&#124;') for cell in row)} |"
    yield ""


def _summary(reports: Reports) -> Iterator[str]:
    yield "## What was judged\n"
    yield from _table(
        ("release", "scenarios", "not applicable", "rules that a MUST breaks", "known", "new"),
        (
            (
                release,
                str(len(report.scenarios)),
                str(sum(row.verdict is Verdict.NOT_APPLICABLE for row in report.scenarios)),
                str(len(_broken_rules(report, Level.MUST))),
                str(
                    sum(rule.verdict is Verdict.KNOWN for rule in _broken_rules(report, Level.MUST))
                ),
                str(len(report.red_rules())),
            )
            for release, report in reports.items()
        ),
    )


def _broken_rules(report: Report, level: Level) -> list[RuleResult]:
    return [
        rule
        for rule in report.rules
        if rule.level is level and rule.verdict in (Verdict.FAIL, Verdict.KNOWN)
    ]


def _findings(reports: Reports, releases: Sequence[str]) -> Iterator[str]:
    """Yield the findings that are not in all releases, then those that are."""
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    example: dict[tuple[str, str], str] = {}
    titles: dict[str, tuple[str, str]] = {}
    for release, report in reports.items():
        for rule in report.rules:
            titles[rule.id] = (rule.title, rule.level.name)
            for proof in rule.proofs:
                key = (rule.id, proof.scenario.split("/")[0])
                seen[key].add(release)
                example.setdefault(key, proof.scenario)
    changed: dict[tuple[str, str], list[str]] = defaultdict(list)
    lasting: dict[str, list[str]] = defaultdict(list)
    for rule, area in sorted(seen):
        where = spans(releases, seen[rule, area])
        if where == "all":
            lasting[rule].append(area)
        else:
            changed[rule, where].append(area)
    yield "## Findings that came or went\n"
    yield from _table(
        ("rule", "level", "releases", "in", "such as"),
        (
            (
                f"{rule}: {titles[rule][0]}",
                titles[rule][1],
                where,
                ", ".join(areas),
                f"`{example[rule, areas[0]]}`",
            )
            for (rule, where), areas in sorted(changed.items())
        ),
    )
    yield "## Findings in all of them\n"
    yield from _table(
        ("rule", "level", "in", "such as"),
        (
            (
                f"{rule}: {titles[rule][0]}",
                titles[rule][1],
                ", ".join(areas),
                f"`{example[rule, areas[0]]}`",
            )
            for rule, areas in sorted(lasting.items())
        ),
    )


def _methods(schemas: Mapping[str, ReleaseSchemas]) -> Iterator[str]:
    yield "## Methods that came and went\n"
    yield "From the schemas that each release writes (`app-server generate-json-schema`).\n"
    rows: list[tuple[str, str, str, str]] = []
    before: dict[Part, set[str]] = {}
    for release, schema in schemas.items():
        methods = {part: set(schema.methods(part)) for part in Part}
        for part, earlier in before.items():
            new, gone = methods[part] - earlier, earlier - methods[part]
            if new or gone:
                rows.append((release, _KINDS[part], _code(new), _code(gone)))
        before = methods
    yield from _table(("release", "kind", "new", "gone"), rows)


def _members(schemas: Mapping[str, ReleaseSchemas]) -> Iterator[str]:
    yield "## Members that came and went\n"
    yield (
        "Only of types that a message of the specification reaches; a word in quotes is one of an\n"
        "enumeration. Types that are new or gone as a whole are left out.\n"
    )
    book = load_book()
    named = frozenset(row.method for row in (*book.methods, *book.events))
    rows: list[tuple[str, str, str, str]] = []
    before: Members = {}
    for release, schema in schemas.items():
        members = read_members(schema, named)
        for name in sorted(members.keys() & before.keys()):
            new, gone = members[name] - before[name], before[name] - members[name]
            if new or gone:
                rows.append((release, f"`{name}`", _code(new), _code(gone)))
        before = members
    yield from _table(("release", "type", "new", "gone"), rows)


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _choices(reports: Reports, releases: Sequence[str]) -> Iterator[str]:
    """Yield the open points whose usual values differ between releases."""
    usual: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    reached: dict[tuple[str, str], set[str]] = defaultdict(set)
    for release, report in reports.items():
        for point, results in report.choices.items():
            totals: dict[str, int] = defaultdict(int)
            for result in results:
                totals[result.about] += result.count
            for result in results:
                reached[point, result.about].add(release)
                if result.count > MIN_SHARE * totals[result.about]:
                    usual[point, result.about][result.value].add(release)
    yield "## Choices that changed\n"
    yield (
        "Points that the specification leaves open; `harness ledger` explains them. A value\n"
        "counts if more than a fifth of the occasions show it.\n"
    )
    rows: list[tuple[str, str, str]] = []
    for (point, about), values in sorted(usual.items()):
        where = [release for release in releases if release in reached[point, about]]
        said = {value: spans(where, present) for value, present in values.items()}
        if set(said.values()) == {"all"}:
            continue
        rows.append(
            (
                point,
                about,
                "; ".join(f"{span}: {_shorten(value)}" for value, span in said.items()),
            )
        )
    yield from _table(("open point", "about", "what the releases do"), rows)


def _shorten(value: str) -> str:
    return value if len(value) <= MAX_VALUE_LENGTH else f"{value[: MAX_VALUE_LENGTH - 1]}…"
