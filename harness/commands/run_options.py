"""Options of `harness run` for CI, with what they are for.

Here: their types and help. Not here: what they do (harness.suite).
"""

from typing import Annotated

import typer

Markdown = Annotated[str, typer.Option(help="write the report as Markdown; - to stdout")]
