"""Options of the command `harness bisect`."""

from typing import Annotated

import typer

from harness.cli.commands.output_files import (
    STANDARD_OUTPUT,
    JsonOption,
    OnOption,
    say,
    write_results,
)
from harness.cli.commands.run_commands import exit_on_error
from harness.cli.commands.target_options import ScaleOption, TargetOption


def bisect(
    *,
    versions: Annotated[str, typer.Option(help="a,b,c, or a range a..b of --npm; oldest first")],
    finding: Annotated[
        str, typer.Option(metavar="RULE[@SCENARIO]", help="which release shows it first?")
    ] = "",
    scenario: Annotated[str, typer.Option(metavar="ID", help="which ends otherwise first?")] = "",
    server_cmd: Annotated[
        str, typer.Option("--server-cmd", help="with {version}; * names the one file that matches")
    ] = "",
    agent_cmd: Annotated[str, typer.Option("--agent-cmd", help="the agent, likewise")] = "",
    sdk_cmd: Annotated[str, typer.Option("--sdk-cmd", help="the SDK's driver, likewise")] = "",
    target: TargetOption = "spec",
    npm: Annotated[str, typer.Option(metavar="PACKAGE", help="the versions of this package")] = "",
    pre_releases: Annotated[
        bool, typer.Option("--pre-releases", help="of a range, pre-releases too")
    ] = False,
    install: Annotated[
        str, typer.Option(metavar="CMD", help="with {version}: run if the program is missing")
    ] = "",
    repeat: Annotated[int, typer.Option(min=1, help="play each scenario so many times")] = 1,
    timeout_scale: ScaleOption = 1.0,
    confine: Annotated[
        bool, typer.Option("--confine/--no-confine", help="confine the servers where possible")
    ] = True,
    fresh: Annotated[bool, typer.Option("--fresh", help="use no stored result")] = False,
    on: OnOption = "",
    json: JsonOption = "",
) -> None:
    """Find the first release that shows a finding, or no longer does, by halving.

    Exit status 1 if both ends answer alike, or none can be judged.
    """
    from harness.cli.commands.bisect import find_change
    from harness.cli.commands.plays_progress import show_plays
    from harness.client.target.run_folders import base_folder
    from harness.report.results.rerun_command import Programs
    from harness.search.releases.plays import Plays, options_of, stop_on_signals
    from harness.search.releases.question import Question
    from harness.search.releases.target import Target
    from harness.search.releases.versions import parse_versions

    with exit_on_error():
        question = Question.parse(finding, scenario)
        names = parse_versions(versions, npm=npm, pre_releases=pre_releases)
        options = options_of(None, repeat, timeout_scale, confine=confine, on=on)
        plays = Plays(base_folder(), options, fresh=fresh, on=on)
        programs = Programs(target, server_cmd, agent_cmd, sdk_cmd)
        is_aside = json == STANDARD_OUTPUT
        with stop_on_signals(plays), show_plays(plays, err=is_aside) as print_line:
            change = find_change(
                question,
                Target("bisect", programs),
                names,
                plays,
                install=install,
                say=print_line,
            )
        if plays.stopped_by is not None:
            say("interrupted: what was judged is kept; the same command goes on", err=True)
            raise typer.Exit(128 + plays.stopped_by)
        write_results(change.text_lines, json_target=json, results=change.to_plain)
    raise typer.Exit(0 if change.halving.is_found else 1)
