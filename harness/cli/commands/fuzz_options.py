"""Options of the commands `harness fuzz` and `harness replay`."""

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from harness.cli.commands.output_files import (
    HtmlOption,
    JsonOption,
    OnOption,
    check_targets,
    say,
    write_results,
)
from harness.cli.commands.run_commands import exit_on_error
from harness.cli.commands.target_options import ScaleOption, ServerCmdOption, TargetOption

if TYPE_CHECKING:
    from harness.play.interruption import Interruption
    from harness.report.progress.events import Event
    from harness.report.progress.log import ProgressLog

_STORE = Annotated[Path | None, typer.Option(help="the folder of failures; without: .harness/fuzz")]


def fuzz(
    *,
    target: TargetOption = "spec",
    server_cmd: ServerCmdOption = "",
    max_time: Annotated[
        float | None, typer.Option(min=1, help="seconds for all; 60 where nothing is bounded")
    ] = None,
    seed: Annotated[int, typer.Option(help="where the search begins")] = 1,
    conversations: Annotated[
        int | None, typer.Option(min=1, help="so many of each kind: same seed, same cases")
    ] = None,
    what: Annotated[
        str, typer.Option(help="inputs, frames, sessions (all three without), sequences; or A,B")
    ] = "",
    ways: Annotated[
        int, typer.Option(min=2, max=3, help="of sequences: cover every pair, or triples as well")
    ] = 2,
    method: Annotated[str, typer.Option(help="inputs that send this request only")] = "",
    store: _STORE = None,
    on: OnOption = "",
    json: JsonOption = "",
    html: HtmlOption = "",
    timeout_scale: ScaleOption = 1.0,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="say why sequences are not covered")
    ] = False,
) -> None:
    """Search for what goes wrong: requests, raw frames, sessions, sequences.

    All rules are on. Exit status 1 if the server goes wrong. Known failures are tried first.
    """
    from harness.cli.commands.campaign_log import campaign_log
    from harness.cli.commands.doctor import target_words
    from harness.client.target.run_folders import failures_folder
    from harness.errors import TargetError, UsageError
    from harness.play.config import configure
    from harness.play.interruption import Interruption
    from harness.report.progress.events import RunEnded
    from harness.search.cluster.connection import open_cluster
    from harness.search.fuzz import result_text
    from harness.search.fuzz.case import kinds_of
    from harness.search.fuzz.params import check_method
    from harness.search.fuzz.run import Bounds, fuzz
    from harness.search.fuzz.store import open_store

    with exit_on_error():
        check_targets(json, html_target=html)
        config = configure(target=target, server_cmd=server_cmd, scale=timeout_scale)
        check_method(config.book, method)
        kinds = kinds_of(what or ("inputs" if method else ""))
        if on and kinds != ["sequences"]:
            raise UsageError("--on plays sequences: give --what sequences")
    # By default hypothesis would create a folder beside the user's files.
    os.environ.setdefault("HYPOTHESIS_STORAGE_DIRECTORY", str(config.base / "hypothesis"))
    endless = conversations is not None or kinds == ["sequences"]
    seconds = 60.0 if max_time is None and not endless else max_time
    bounds = Bounds(kinds, seed, seconds, conversations, method, ways=ways)
    interruption = Interruption(config.base)
    interruption.install()
    with exit_on_error(), open_store(store or failures_folder(), kinds) as failures:
        try:
            with (
                campaign_log(config.base, "fuzz", config.profile) as progress,
                _show_progress(progress, seconds, interruption) as note,
                open_cluster(on, config) if on else nullcontext() as cluster,
            ):
                config = replace(config, progress=progress)
                result = fuzz(config, bounds, failures, interruption, note, cluster)
                status = interruption.status if result.interrupted_by else int(result.red)
                progress.write(RunEnded(verdict=result.verdict, status=status))
        except TargetError as failed:
            say(f"harness: {failed}; ask harness doctor what to do", err=True)
            raise typer.Exit(1) from None
        words = target_words(config)
        write_results(
            lambda: result_text.lines(result, failures, words, verbose=verbose),
            json_target=json,
            results=lambda: result_text.plain(result, failures, words),
            html_target=html,
            html=lambda: _page(result_text.plain(result, failures, words)),
        )
    if result.interrupted_by:
        raise typer.Exit(interruption.status)
    raise typer.Exit(1 if result.red else 0)


def _page(plain: dict[str, Any]) -> str:
    from harness.report.html.other_pages import fuzz_page

    return fuzz_page(plain)


@contextmanager
def _show_progress(
    log: "ProgressLog", seconds: float | None, interruption: "Interruption"
) -> "Generator[Callable[[str], None] | None]":
    """Show a campaign's events on stderr until a signal; yield what shows a note with them."""
    from harness.report.progress.fuzz_view import FuzzView
    from harness.report.progress.plain_lines import PlainLines
    from harness.report.progress.terminal_area import TerminalArea, can_show_area

    view = FuzzView(seconds)
    if can_show_area(2, os.environ):
        area = TerminalArea(view, lambda: None, 2, sys.stderr.encoding)
    else:
        area = PlainLines(view.plain_lines, 2, sys.stderr.encoding)

    def show_event(event: "Event") -> None:
        line = view.feed(event)
        if line is not None and isinstance(area, TerminalArea):
            area.print(line)

    log.listeners.append(show_event)
    interruption.on_signal = lambda _: area.stop()
    area.start()
    try:
        yield lambda note: setattr(view, "note", note)
    finally:
        area.stop()


def replay(
    case: Annotated[str, typer.Argument(metavar="ID|FILE", help="a failure, or its scenario")],
    *,
    target: TargetOption = "spec",
    server_cmd: ServerCmdOption = "",
    store: _STORE = None,
    timeout_scale: ScaleOption = 1.0,
    json: JsonOption = "",
) -> None:
    """Play a failure again, three times. Exit status 0 if it is fixed, else 1."""
    from harness.client.target.run_folders import failures_folder
    from harness.errors import TargetError
    from harness.play.config import configure
    from harness.play.interruption import Interruption
    from harness.search.fuzz.replay import case_of
    from harness.search.fuzz.replay import replay as play_again

    with exit_on_error():
        check_targets(json)
        config = configure(target=target, server_cmd=server_cmd, scale=timeout_scale)
        replayed_case = case_of(case, store or failures_folder(), config)
    interruption = Interruption(config.base)
    interruption.install()
    try:
        result = play_again(config, replayed_case, interruption)
    except TargetError as failed:
        say(f"harness: {failed}; ask harness doctor what to do", err=True)
        raise typer.Exit(1) from None
    if result.interrupted_by:
        typer.echo(f"interrupted ({result.interrupted_by}): whether it is fixed is not known")
        raise typer.Exit(interruption.status)
    wrong = [text for text in result.problems if text]
    head = f"{result.verdict}: {result.name} ({len(wrong)} of {len(result.problems)} plays wrong)"
    with exit_on_error():
        write_results(
            lambda: [head, *(f"  {text[:500]}" for text in dict.fromkeys(wrong))],
            json_target=json,
            results=lambda: {
                "verdict": result.verdict,
                "name": result.name,
                "problems": list(result.problems),
            },
        )
    raise typer.Exit(0 if result.verdict == "fixed" else 1)
