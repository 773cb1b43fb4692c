"""Options of `harness run` for CI, with what they are for.

Here: their types and help. Not here: what they do (harness.suite).
"""

import sys
from typing import Annotated

import typer

Markdown = Annotated[str, typer.Option(help="write the report as Markdown; - to stdout")]

UpdateBaseline = Annotated[
    bool, typer.Option("--update-baseline", help="write what is found into the file of --baseline")
]
Reason = Annotated[str, typer.Option(help="why the new entries of the baseline are accepted")]
Expires = Annotated[str, typer.Option(help="the last day of the new entries: 2027-01-31")]

Repeat = Annotated[int, typer.Option(min=1, help="play each scenario so many times")]
Retries = Annotated[int, typer.Option(min=0, help="plays more of what failed, until it passes")]
MaxTime = Annotated[
    float | None, typer.Option(metavar="S", help="begin no scenario after so many seconds")
]


def asked_reason(reason: str, *, wanted: bool) -> str:
    """The reason that was given, or that a person gives now; "" where nobody can be asked."""
    if reason or not wanted or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return reason
    question = "why is what this run finds accepted? (every report shows it)"
    return str(typer.prompt(question, err=True))
