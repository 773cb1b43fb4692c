"""Options of the command `harness run`, which hands them to pytest in a process of its own.

Report files that could not be written at the end are rejected before anything is played.
"""

import os
import sys
from typing import Annotated

import typer

from harness.cli.commands import run_commands
from harness.cli.commands.output_files import (
    METAVAR,
    HtmlOption,
    JsonOption,
    MarkdownOption,
    OnOption,
)
from harness.cli.commands.target_options import (
    AgentCmdOption,
    ScaleOption,
    ScenariosArgument,
    SdkCmdOption,
    ServerCmdOption,
    TargetOption,
    complete_rules,
)

# The exit status of a usage error in all commands.
_USAGE_STATUS = 2
# Settings of the user's own tests.
_PYTEST_VARIABLES = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")

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


def run(
    scenarios: ScenariosArgument = None,
    *,
    target: TargetOption = "spec",
    server_cmd: ServerCmdOption = "",
    agent_cmd: AgentCmdOption = "",
    sdk_cmd: SdkCmdOption = "",
    rule: Annotated[
        list[str] | None,
        typer.Option(help="judge this rule alone; or ID,ID", autocompletion=complete_rules),
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="with this tag, area or need; or TAG,TAG")
    ] = None,
    keyword: Annotated[
        str, typer.Option("-k", help="ids, tags, rules: 'turns and not skill'")
    ] = "",
    race: Annotated[
        list[str] | None, typer.Option(help="races: all, ACTION, or ACTION@POSITION; or A,B")
    ] = None,
    baseline: Annotated[str, typer.Option(help="a file of known deviations")] = "",
    update_baseline: UpdateBaseline = False,
    reason: Reason = "",
    expires: Expires = "",
    require: Annotated[
        list[str] | None, typer.Option(help="capabilities that must be offered, or all")
    ] = None,
    suite: Annotated[
        str, typer.Option(help="of a release, as 1.0, or a file: what came later does not count")
    ] = "",
    strict: Annotated[bool, typer.Option("--strict", help="SHOULD counts too")] = False,
    timeout_scale: ScaleOption = 1.0,
    repeat: Repeat = 1,
    retries: Retries = 0,
    max_time: MaxTime = None,
    confine: Annotated[
        bool, typer.Option("--confine", help="its own folders and loopback alone, no secrets")
    ] = False,
    confine_auto: Annotated[
        bool, typer.Option("--confine-auto", help="as --confine, where it is possible")
    ] = False,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="play on where the server hangs all the time")
    ] = False,
    exit_first: Annotated[
        bool, typer.Option("-x", help="stop after the first scenario that fails or breaks a rule")
    ] = False,
    last_failed: Annotated[
        bool, typer.Option("--lf", help="what failed last, or broke a rule; all where nothing did")
    ] = False,
    lanes: Annotated[
        int | None,
        typer.Option(
            min=1, help="scenarios played at once, each on a server of its own; by the cores"
        ),
    ] = None,
    shard: Annotated[
        str, typer.Option(metavar="K/N", help="the K-th of N parts, for harness merge")
    ] = "",
    durations: Annotated[
        str, typer.Option(metavar="FILE", help="divide by these durations, not by number")
    ] = "",
    workers: Annotated[int, typer.Option("-n", min=0, help="worker processes (0: none)")] = 0,
    on: OnOption = "",
    resume: Annotated[
        bool, typer.Option("--resume", help="store outcomes, and go on with a run that ended early")
    ] = False,
    json: JsonOption = "",
    junit: Annotated[
        str, typer.Option(metavar=METAVAR, help="as JUnit XML; - for standard output")
    ] = "",
    snapshots: Annotated[
        str, typer.Option(metavar="DIR", help="keep transcripts there, for harness snapshots")
    ] = "",
    snapshots_strict: Annotated[
        bool,
        typer.Option("--snapshots-strict", help="new and changed ones fail, as where CI is set"),
    ] = False,
    markdown: MarkdownOption = "",
    html: HtmlOption = "",
    verbose: Annotated[bool, typer.Option("-v", help="one line per scenario and rule")] = False,
) -> None:
    """Play scenarios against a server and judge it (pytest, shielded from local settings).

    Without arguments the bundled scenarios are played.
    """
    from harness.console import block_interrupt, exit_quietly_on_interrupt

    exit_quietly_on_interrupt()
    files = (("--json", json), ("--junit", junit), ("--markdown", markdown), ("--html", html))
    _check_files(*files)
    json, junit, markdown, html = _to_stdout(*files)
    arguments = ["-c", os.devnull, "--rootdir", ".", "--noconftest", "-rfE"]
    arguments += ["-v" if verbose else "-q", "--no-header", "--harness-run"]
    # No plugins of the environment: they cost seconds, and may warn or fail. Workers get the same.
    arguments += ["--disable-plugin-autoload", "-p", "xdist.plugin", "-p", "harness.cli.plugin"]
    arguments += ["-p", "no:doctest", "--assert=plain"]
    arguments += ["-o", "python_files=", "-o", "junit_family=xunit1"]
    # Long names: a short one may belong to another plugin.
    arguments += ["--harness-target", target, "--harness-timeout-scale", str(timeout_scale)]
    for name, value in (
        ("--harness-server-cmd", server_cmd),
        ("--harness-agent-cmd", agent_cmd),
        ("--harness-sdk-cmd", sdk_cmd),
        ("--harness-rule", ",".join(rule or ())),
        ("--harness-tag", ",".join(tag or ())),
        ("--harness-suite", suite),
        ("-k", keyword),
        ("--harness-race", ",".join(race or ())),
        ("--harness-baseline", baseline),
        ("--harness-reason", ask_for_reason(reason, is_wanted=update_baseline)),
        ("--harness-expires", expires),
        ("--harness-repeat", str(repeat)),
        ("--harness-retries", str(retries)),
        ("--harness-shard", shard),
        ("--harness-durations", durations),
        ("--harness-on", on),
        ("--harness-lanes", "" if lanes is None else str(lanes)),
        ("--harness-max-time", "" if max_time is None else str(max_time)),
        ("--harness-require", ",".join(require or ())),
        ("--harness-json", json),
        ("--harness-markdown", markdown),
        ("--harness-html", html),
        ("--junit-xml", junit),
        ("--harness-snapshots", snapshots),
    ):
        arguments += [name, value] if value else []
    for name, is_set in (
        ("--harness-strict", strict),
        ("--harness-update-baseline", update_baseline),
        ("--harness-confine", confine),
        ("--harness-confine-auto", confine_auto),
        ("--harness-keep-going", keep_going),
        ("--harness-resume", resume),
        ("--harness-snapshots-strict", snapshots_strict),
        ("-x", exit_first),
        ("--lf", last_failed),
    ):
        arguments += [name] if is_set else []
    arguments += ["-n", str(workers)] if workers else []
    environment = {
        name: value for name, value in os.environ.items() if name not in _PYTEST_VARIABLES
    }
    # A separate process with -P takes no module from the current folder. PYTHONWARNINGS=error is
    # meant for the user's code, and would end a run in which a library warns.
    mild = ["-W", "default"] if sys.warnoptions else []
    command = [sys.executable, "-P", *mild, "-m", "harness.cli.suite", *arguments, *mild]
    command += scenarios or []
    sys.stdout.flush()
    block_interrupt(blocked=True)
    os.execve(sys.executable, command, environment)


def _check_files(*named: tuple[str, str]) -> None:
    """Exit with a message if a report file could not be written at the end of the run."""
    from harness.client.target.run_folders import base_folder
    from harness.report.report_file import write_problem

    if any(path.startswith(".harness/") for _, path in named):
        with run_commands.exit_on_error():
            base_folder()  # The run would create it, with its folder of reports.
    for option, path in named:
        makes_folder = option == "--junit"  # pytest does, for its own file.
        problem = write_problem(path, makes_folder=makes_folder) if path not in ("", "-") else ""
        if problem:
            typer.echo(f"harness: {option} {path}: {problem}", err=True)
            raise typer.Exit(_USAGE_STATUS)


def _to_stdout(*named: tuple[str, str]) -> list[str]:
    """Return the paths, `-` as standard output; all else then goes to standard error.

    Exits with a message if two of them are `-`.
    """
    printed = [option for option, path in named if path == "-"]
    if len(printed) > 1:
        both = " ".join(f"{option} -" for option in printed)
        typer.echo(f"harness: {both}: one of them only; name a file for the other", err=True)
        raise typer.Exit(_USAGE_STATUS)
    if not printed:
        return [path for _, path in named]
    stdout_copy = os.dup(1)
    os.set_inheritable(stdout_copy, True)
    os.dup2(2, 1)
    return [f"/dev/fd/{stdout_copy}" if path == "-" else path for _, path in named]


def ask_for_reason(reason: str, *, is_wanted: bool) -> str:
    """Return the given reason, or ask the user for it; "" if there is no terminal."""
    if reason or not is_wanted or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return reason
    question = "why is what this run finds accepted? (every report shows it)"
    return str(typer.prompt(question, err=True))
