"""Generator of docs/versions.md, a comparison of two releases of a real server.

`make real` runs both releases and then `python -m tools.compare_page`; `make docs` cannot.
"""

from collections.abc import Iterator
from pathlib import Path

from harness.cli.commands.recorded_runs import find_run
from harness.report.compare.comparison import compare
from harness.report.compare.text import markdown
from harness.report.compare.values import Comparison, TracePlace

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "versions.md"
RUNS = ("codex-0.107", "codex-0.169")
PROGRAMS = ("codex-0.107-programs", "codex-0.169-programs")

HEAD = """\
# Two releases of a shipping server

Made by `make real`, which runs all bundled scenarios on both releases and then
`harness compare codex-0.107 codex-0.169`; do not edit. [Comparing](comparing.md) says what the
headings mean and which changes may break a client. KNOWN is a deviation that the profile of that
release lists with its reason. In the last column are the scenarios in which it shows; a scenario's
file says what is done, and `harness run --target PROFILE SCENARIO` plays it again; those of
`documented/` are the examples of [Scenarios](scenarios.md).
"""

SECOND = """
# Their exec and their mcp

Made likewise, by `harness compare codex-0.107-programs codex-0.169-programs`: the events of turns
that are run by `exec`, and what the command `mcp` does.
"""


def page(sessions: Comparison, programs: Comparison) -> str:
    """Return the page: the session protocol first, then the commands."""
    return "\n".join([HEAD, *_page_lines(sessions), SECOND, *_page_lines(programs), ""])


def _page_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the lines of a comparison; they name scenarios, as readers do not have the traces."""
    for line in markdown(comparison, _scenario):
        yield line.replace("; ; ", "; ")


def _scenario(place: TracePlace) -> str:
    """Return the scenario of a trace `…/history/RUN/turns/plain-turn.jsonl`, "" for other paths."""
    parts = Path(place.trace).parts
    if "history" not in parts:
        return ""
    scenario = "/".join(parts[parts.index("history") + 2 :]).removesuffix(".jsonl")
    # `tools.examples` writes the examples of the docs to this folder.
    return f"`{scenario.removeprefix('.harness/examples/')}`"


def main() -> None:
    """Write the page from the last runs of both releases."""
    sessions, programs = (
        compare(find_run(first), find_run(second)) for first, second in (RUNS, PROGRAMS)
    )
    PAGE.write_text(page(sessions, programs), encoding="utf-8")


if __name__ == "__main__":
    main()
