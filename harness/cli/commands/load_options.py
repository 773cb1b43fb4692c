"""Options of the command `harness load`."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.commands.output_files import (
    HtmlOption,
    JsonOption,
    MarkdownOption,
    check_targets,
    say,
    write_results,
)
from harness.cli.commands.run_commands import exit_on_error
from harness.cli.commands.target_options import ScaleOption, ServerCmdOption, TargetOption
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.load.results import LoadReport

_MISSING = "harness load needs Locust: pip install locust (the extra [load] of this package)"


def load(
    *,
    target: TargetOption = "spec",
    server_cmd: ServerCmdOption = "",
    url: Annotated[str, typer.Option(help="a server that runs, as ws://127.0.0.1:PORT")] = "",
    model_port: Annotated[
        int, typer.Option(min=0, help="port of the scripted model; 0 for any free one")
    ] = 0,
    stdio: Annotated[
        bool, typer.Option("--stdio", help="a process for each user, not one that listens")
    ] = False,
    users: Annotated[int, typer.Option(min=1, help="connections at once")] = 50,
    ramp: Annotated[
        str, typer.Option(metavar="N,N…", help="steps of users, such as 50,100,200")
    ] = "",
    time: Annotated[float, typer.Option(min=0.1, help="seconds of each step")] = 60.0,
    spawn_rate: Annotated[float, typer.Option(min=0.1, help="users that begin per second")] = 50.0,
    think: Annotated[
        str, typer.Option(metavar="MIN..MAX", help="seconds between two operations of a user")
    ] = "0.5..2",
    mix: Annotated[str, typer.Option(help="operations and their weights")] = (
        "turn=80,list=10,fork=5,interrupt=5"
    ),
    judge: Annotated[
        str, typer.Option(metavar="PERCENT", help="users whose conversations are judged")
    ] = "5%",
    pace: Annotated[
        str,
        typer.Option(
            metavar="FIRST,N,BETWEEN", help="the model: seconds to a delta, deltas, seconds between"
        ),
    ] = "0.05,10,0.01",
    seed: Annotated[int, typer.Option(help="of the operations and think times")] = 0,
    timeout_scale: ScaleOption = 1.0,
    json: JsonOption = "",
    markdown: MarkdownOption = "",
    html: HtmlOption = "",
) -> None:
    """Put a server under load with Locust, and judge a sample of the conversations.

    Exit status 1 if an operation failed or a MUST rule was broken.
    """
    with exit_on_error():
        check_targets(json, markdown, html)
        if find_spec("locust") is None:
            raise UsageError(_MISSING)
        from harness.load.operations import parse_mix
        from harness.load.run import LoadOptions, run_load
        from harness.play.config import configure

        first, deltas, between = parse_numbers("--pace", pace, ",", 3)
        least, most = parse_numbers("--think", think, "..", 2)
        percent = parse_numbers("--judge", judge.removesuffix("%"), ",", 1)[0]
        steps = [int(number) for number in parse_numbers("--ramp", ramp, ",")] if ramp else [users]
        if not 0 <= percent <= 100 or least > most or min(steps) < 1 or deltas < 1:
            raise UsageError("--judge is 0% to 100%, --think MIN..MAX, --ramp and N at least 1")
        options = LoadOptions(
            steps,
            seconds=time,
            spawn_rate=spawn_rate,
            think=(least, most),
            judged=percent / 100,
            mix=parse_mix(mix),
            pace=(first, int(deltas), between),
            url=url,
            stdio=stdio,
            model_port=model_port,
            seed=seed,
        )
        # A server that runs already needs no command; the profile's is not started.
        command = server_cmd or ("true" if url else "")
        config = configure(target=target, server_cmd=command, scale=timeout_scale)
        report = run_load(config, options, lambda line: say(line, err=True))
        write_results(
            report.text_lines,
            json_target=json,
            results=report.to_plain,
            markdown_target=markdown,
            markdown=report.markdown_lines,
            html_target=html,
            html=lambda: _page(report),
        )
    raise typer.Exit(0 if report.is_clean else 1)


def parse_numbers(option: str, words: str, separator: str, count: int = 0) -> list[float]:
    """Return numbers of an option, exactly `count` of them if given. Raises `UsageError`."""
    try:
        numbers = [float(word) for word in words.split(separator)]
    except ValueError:
        numbers = []
    if (
        not numbers
        or (count and len(numbers) != count)
        or not all(0 <= one < 1e9 for one in numbers)
    ):
        raise UsageError(f"{option} {words!r}: expected {count or 'some'} numbers by {separator!r}")
    return numbers


def _page(report: "LoadReport") -> str:
    from harness.report.html.other_pages import load_page

    return load_page(report.to_plain())
