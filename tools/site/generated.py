"""Pages of the site that stand in no file: rules with their requirements, scenarios, decisions."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path

from harness.cli.commands.shipped import bundled_scenario_text
from harness.cli.commands.show import show_trace
from harness.judge.rules.discovery import every_rule
from harness.protocol.spec.book import Book
from harness.report.diagram.svg import svg_text
from harness.scenario.bundled import bundled_ids, bundled_scenario
from tools.site import ROOT
from tools.site.pages import figure, link_ids, site_page, write

DRAWN = (
    *("approvals/accept-command", "choices/empty-input", "clients/either-may-accept"),
    *("commands/both-streams", "compaction/asked-for", "exec/resumed"),
    *("failures/cut-after-a-call", "files/add", "interrupts/during-an-approval"),
    *("language/two-clients", "lasting/declined/command/next-turn", "mcp-command/stdio-server"),
    *("plans/changed-twice", "recorded/python-client", "reported/interrupted-again"),
    *("reviews/findings", "sdk-calls/plain-turn", "skills/invoke", "steering/while-it-speaks"),
    *("threads/archive", "tools/dynamic-tool", "turns/plain-turn"),
)
"""The scenarios that are drawn, one of each area."""


def id_places(book: Book) -> dict[str, str]:
    """Return the address of each requirement, rule and scenario in the site, by id."""
    places = {row.id: f"docs/protocol.md#{row.id}" for row in book.requirements}
    places |= {rule: f"docs/rules.md#{rule}" for rule in every_rule()}
    return places | {one: f"scenarios/{area(one)}.md#{one}" for one in bundled_ids()}


def area(scenario: str) -> str:
    """Return the first part of a scenario's id."""
    return scenario.split("/", 1)[0]


def rules_page(book: Book, places: Mapping[str, str]) -> str:
    """Return docs/rules.md by families, each rule with an anchor and its requirements."""
    requirements: dict[str, list[str]] = defaultdict(list)
    for row in book.requirements:
        for rule in row.rules:
            requirements[rule].append(f"[{row.id}](protocol.md#{row.id})")
    families: dict[str, list[str]] = defaultdict(list)
    for rule in every_rule().values():
        families[rule.id.split(".", 1)[0]].append(
            f'| <a id="{rule.id}"></a>`{rule.id}` | {rule.level} | {rule.title} '
            f"| {', '.join(requirements[rule.id])} |"
        )
    text = (ROOT / "docs/rules.md").read_text("utf-8")
    lines = [site_page("docs/rules.md", text.partition(" rules: ")[0] + " rules.", {}), ""]
    for family, rows in families.items():
        lines += [
            f"## {family}",
            "",
            "| rule | level | title | requirements |",
            "|---|---|---|---|",
        ]
        lines += [*rows, ""]
    return "\n".join(lines)


def decisions_page() -> str:
    """Return a list of the decisions in docs/adr."""
    lines = ["# Decisions", "", "Why the project is as it is, thirty lines each.", ""]
    for path in sorted((ROOT / "docs/adr").glob("*.md")):
        title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    return "\n".join(lines) + "\n"


def write_scenario_pages(folder: Path, traces: Path, places: Mapping[str, str]) -> list[str]:
    """Write a page for each area, with one scenario drawn, and an index; return their names."""
    drawn = {area(one): one for one in DRAWN}
    by_area: dict[str, list[str]] = defaultdict(list)
    for one in sorted(bundled_ids()):
        by_area[area(one)].append(one)
    index = ["# Scenarios", "", f"{len(bundled_ids())} scenarios ship with the harness.", ""]
    index += ["| area | scenarios | one of them, drawn |", "|---|---|---|"]
    for name, ids in by_area.items():
        title = bundled_scenario(drawn[name]).scenario.title
        index.append(f"| [{name}]({name}.md) | {len(ids)} | [{title}]({name}.md#drawn) |")
        # The drawing needs the room of the contents.
        page = [
            "---",
            "hide: [toc]",
            "---",
            f"# {name}",
            "",
            *_drawn_lines(folder, traces, drawn[name]),
        ]
        page += ["", f"## All {len(ids)}", "", *_rows(ids, places)]
        write(folder / f"scenarios/{name}.md", "\n".join(page) + "\n")
    write(folder / "scenarios/index.md", "\n".join(index) + "\n")
    return [f"scenarios/{name}.md" for name in ("index", *by_area)]


def _drawn_lines(folder: Path, traces: Path, scenario: str) -> Iterator[str]:
    title = bundled_scenario(scenario).scenario.title
    yield '<a id="drawn"></a>'
    yield ""
    yield f"## {title}"
    yield ""
    yield f"`{scenario}`, played on the reference server. Time flows down."
    yield ""
    played = [*traces.glob(f"{scenario}.jsonl"), *traces.glob(f"{scenario}@*.jsonl")]
    if not played:
        yield "It was not played where this site was built: the machine lacks what it needs."
        return
    picture = f"drawn/{area(scenario)}.svg"
    write(folder / "scenarios" / picture, svg_text(show_trace(played[0]).diagram()))
    yield figure(picture, escape(f"The messages of {scenario}", quote=True))
    yield ""
    yield f"Its file (`harness scenario show {scenario}`):"
    yield ""
    yield "```yaml"
    yield bundled_scenario_text(scenario).rstrip()
    yield "```"


def _rows(ids: list[str], places: Mapping[str, str]) -> Iterator[str]:
    yield "| scenario | title | rules |"
    yield "|---|---|---|"
    for one in ids:
        scenario = bundled_scenario(one).scenario
        rules = ", ".join(link_ids(f"`{rule}`", "scenarios", places) for rule in scenario.covers)
        yield f'| <a id="{one}"></a>`{one}` | {scenario.title} | {rules} |'
