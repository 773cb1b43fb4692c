"""The `harness` command.

Here: arguments, and printing what the parts give. Not here: any work of its own; every command is
a few lines around one function. Imports are inside the commands: `harness show` must not pay for a
test run.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from harness.commands import (
    connect_options,
    fault_options,
    fuzz_options,
    model_options,
    mutate_options,
    record_options,
    recorded,
    run_options,
    snapshots,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Judge any server of the agent session protocol.",
)

Target = Annotated[str, typer.Option("--target", help="a profile's name or path")]
ServerCmd = Annotated[str, typer.Option("--server-cmd", help="the server, run without a shell")]
AgentCmd = Annotated[str, typer.Option("--agent-cmd", help="the agent whose exec is judged")]
SdkCmd = Annotated[str, typer.Option("--sdk-cmd", help="the driver of the SDK that is judged")]
Scale = Annotated[float, typer.Option("--timeout-scale", help="multiply every bound")]
# The status of a usage error, of all commands but `run`.
_USAGE = 2
# Settings of the user's own tests.
_OF_OTHERS = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")
_SCENARIOS = "files, folders, ids (turns/plain-turn, turns/, 'turns/*'), or bundled"


def main() -> None:
    """The console script."""
    from harness.runner.console import guard_output

    guard_output(ends=True)
    try:
        app()
    finally:
        sys.stdout.flush()


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"harness {version('agent-session-harness')}")
        raise typer.Exit


class _Run(TyperCommand):
    """A command line that cannot be used ends it with pytest's status for that, 4."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().make_context(*args, **kwargs)
        except Exception as error:
            # Of a usage error, which typer has from a module of its own.
            if getattr(error, "exit_code", 0) == _USAGE:
                setattr(error, "exit_code", 4)  # noqa: B010
            raise


@app.callback()
def _of_all(
    context: typer.Context,
    _: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_version, help="print the version"),
    ] = False,
) -> None:
    from harness.runner.console import usual_interrupt

    if context.invoked_subcommand != "run":
        usual_interrupt()


@app.command(cls=_Run)
def run(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help=_SCENARIOS),
    ] = None,
    *,
    target: Target = "spec",
    server_cmd: ServerCmd = "",
    agent_cmd: AgentCmd = "",
    sdk_cmd: SdkCmd = "",
    rule: Annotated[str, typer.Option(help="judge this rule alone; or ID,ID")] = "",
    tag: Annotated[str, typer.Option(help="with this tag, area or need; or TAG,TAG")] = "",
    keyword: Annotated[
        str, typer.Option("-k", help="ids, tags, rules: 'turns and not skill'")
    ] = "",
    race: Annotated[str, typer.Option(help="races: all, ACTION, or ACTION@POSITION; or A,B")] = "",
    baseline: Annotated[str, typer.Option(help="a file of known deviations")] = "",
    update_baseline: run_options.UpdateBaseline = False,
    reason: run_options.Reason = "",
    expires: run_options.Expires = "",
    require: Annotated[str, typer.Option(help="capabilities that must be offered, or all")] = "",
    strict: Annotated[bool, typer.Option("--strict", help="SHOULD counts too")] = False,
    timeout_scale: Scale = 1.0,
    repeat: run_options.Repeat = 1,
    retries: run_options.Retries = 0,
    max_time: run_options.MaxTime = None,
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="play on where the server hangs all the time")
    ] = False,
    exit_first: Annotated[
        bool, typer.Option("-x", help="stop after the first scenario that fails or breaks a rule")
    ] = False,
    last_failed: Annotated[
        bool, typer.Option("--lf", help="what failed last, or broke a rule; all where nothing did")
    ] = False,
    workers: Annotated[int, typer.Option("-n", min=0, help="worker processes (0: none)")] = 0,
    json: Annotated[str, typer.Option(help="write the report as JSON; - to stdout")] = "",
    junit: Annotated[str, typer.Option(help="write a JUnit XML file; - to stdout")] = "",
    snapshots: Annotated[
        str, typer.Option(metavar="DIR", help="keep transcripts there, for harness snapshots")
    ] = "",
    snapshots_strict: Annotated[
        bool,
        typer.Option("--snapshots-strict", help="new and changed ones fail, as where CI is set"),
    ] = False,
    markdown: run_options.Markdown = "",
    verbose: Annotated[bool, typer.Option("-v", help="one line per scenario and rule")] = False,
) -> None:
    """Play scenarios against a server and judge it (pytest, shielded from local settings).

    Without arguments the bundled scenarios are played.
    """
    from harness.runner.console import hold_interrupt, quiet_interrupt

    quiet_interrupt()
    _check_files(("--json", json), ("--junit", junit), ("--markdown", markdown))
    json, junit, markdown = _to_stdout(
        ("--json", json), ("--junit", junit), ("--markdown", markdown)
    )
    arguments = ["-c", os.devnull, "--rootdir", ".", "--noconftest", "-rfE"]
    arguments += ["-v" if verbose else "-q", "--no-header", "--harness-run"]
    # No plugin of the environment: what others need costs seconds, and may warn or fail. Workers
    # are given the same words.
    arguments += ["--disable-plugin-autoload", "-p", "xdist.plugin", "-p", "harness.plugin"]
    arguments += ["-p", "no:doctest", "--assert=plain"]
    arguments += ["-o", "python_files=", "-o", "junit_family=xunit1"]
    # By the long names: a short one may be another plugin's.
    arguments += ["--harness-target", target, "--harness-timeout-scale", str(timeout_scale)]
    for name, value in (
        ("--harness-server-cmd", server_cmd),
        ("--harness-agent-cmd", agent_cmd),
        ("--harness-sdk-cmd", sdk_cmd),
        ("--harness-rule", rule),
        ("--harness-tag", tag),
        ("-k", keyword),
        ("--harness-race", race),
        ("--harness-baseline", baseline),
        ("--harness-reason", run_options.asked_reason(reason, wanted=update_baseline)),
        ("--harness-expires", expires),
        ("--harness-repeat", str(repeat)),
        ("--harness-retries", str(retries)),
        ("--harness-max-time", "" if max_time is None else str(max_time)),
        ("--harness-require", require),
        ("--harness-json", json),
        ("--harness-markdown", markdown),
        ("--junit-xml", junit),
        ("--harness-snapshots", snapshots),
    ):
        arguments += [name, value] if value else []
    for name, given in (
        ("--harness-strict", strict),
        ("--harness-update-baseline", update_baseline),
        ("--harness-keep-going", keep_going),
        ("--harness-snapshots-strict", snapshots_strict),
        ("-x", exit_first),
        ("--lf", last_failed),
    ):
        arguments += [name] if given else []
    arguments += ["-n", str(workers)] if workers else []
    environment = {name: value for name, value in os.environ.items() if name not in _OF_OTHERS}
    # A process of its own, which takes no module from the current folder.
    # PYTHONWARNINGS=error speaks of the user's code, and would end a run in which a library warns.
    mild = ["-W", "default"] if sys.warnoptions else []
    command = [sys.executable, "-P", *mild, "-m", "harness.suite", *arguments, *mild]
    command += scenarios or []
    sys.stdout.flush()
    hold_interrupt(on=True)
    os.execve(sys.executable, command, environment)


def _check_files(*named: tuple[str, str]) -> None:
    """Refuse what could not be written after everything was played."""
    from harness.suite.report_file import unwritable
    from harness.target.place import base_folder

    if any(path.startswith(".harness/") for _, path in named):
        with recorded.errors():
            base_folder()  # The run would make it, and the folder of reports in it.
    for option, path in named:
        makes_folder = option == "--junit"  # pytest does, for its own file.
        problem = unwritable(path, makes_folder=makes_folder) if path not in ("", "-") else ""
        if problem:
            typer.echo(f"harness: {option} {path}: {problem}", err=True)
            raise typer.Exit(4)


def _to_stdout(*named: tuple[str, str]) -> list[str]:
    """The files, `-` being standard output; all else is then printed to standard error."""
    printed = [option for option, path in named if path == "-"]
    if len(printed) > 1:
        both = " ".join(f"{option} -" for option in printed)
        typer.echo(f"harness: {both}: one of them only; name a file for the other", err=True)
        raise typer.Exit(4)
    if not printed:
        return [path for _, path in named]
    kept = os.dup(1)
    os.set_inheritable(kept, True)
    os.dup2(2, 1)
    return [f"/dev/fd/{kept}" if path == "-" else path for _, path in named]


@app.command()
def check(
    traces: Annotated[list[Path], typer.Argument(help="stored traces, or recordings")],
    *,
    target: Annotated[str, typer.Option(help="a profile: its names and known deviations")] = "",
    settled: Annotated[
        bool,
        typer.Option("--settled", help="the server was at rest in the end: judge what is owed"),
    ] = False,
    side: Annotated[
        str, typer.Option(metavar="SIDE", help="whose messages: server, client or both")
    ] = "server",
    json: Annotated[
        Path | None, typer.Option("--json", help="a file for the verdicts on the client's duties")
    ] = None,
) -> None:
    """Judge stored traces, or others' recordings. Exit status 1 if a MUST rule is broken."""
    from harness.commands.check import Sides, check_files
    from harness.errors import UsageError

    with recorded.errors():
        if side not in tuple(Sides):
            raise UsageError(f"--side {side!r}: expected {', '.join(Sides)}")
        status = check_files(
            traces, target=target, settled=settled, side=Sides(side), json_file=json, say=typer.echo
        )
    raise typer.Exit(status)


@app.command()
def show(
    trace: Annotated[Path, typer.Argument(help="a stored trace")],
    *,
    stdin: Annotated[bool, typer.Option("--stdin", help="only what was sent, as sent")] = False,
    message: Annotated[
        int | None, typer.Option(help="this one and those around it; the first is 0")
    ] = None,
) -> None:
    """Show a trace: every message with its milliseconds, or with --stdin what we sent."""
    from harness.commands.stored_traces import sent_bytes, shown_lines
    from harness.target.place import kept

    with recorded.errors():
        if stdin:
            sys.stdout.buffer.write(sent_bytes(kept(trace)))
            return
        for line in shown_lines(kept(trace), message):
            typer.echo(line)


@app.command()
def explain(
    name: Annotated[str, typer.Argument(metavar="ID", help="or: capabilities, verdicts, levels")],
) -> None:
    """Explain an id: of a rule, requirement, finding, capability, scenario; or a verdict."""
    from harness.commands.explain import explain as explanation

    with recorded.errors():
        for line in explanation(name):
            typer.echo(line)


@app.command(name="list")
def list_(
    *,
    markdown: Annotated[bool, typer.Option("--markdown", help="as a Markdown table")] = False,
) -> None:
    """List the rules."""
    from harness.commands.explain import rule_table

    for line in rule_table(markdown=markdown):
        typer.echo(line)


@app.command()
def doctor(
    *,
    target: Target = "spec",
    server_cmd: ServerCmd = "",
    agent_cmd: AgentCmd = "",
    sdk_cmd: SdkCmd = "",
    timeout_scale: Scale = 1.0,
) -> None:
    """Say in seconds whether a server can be judged, and what to do if not."""
    from harness.commands.doctor import examine
    from harness.runner.config import configure
    from harness.runner.interruption import Interruption

    with recorded.errors():
        config = configure(
            target=target,
            server_cmd=server_cmd,
            agent_cmd=agent_cmd,
            sdk_cmd=sdk_cmd,
            scale=timeout_scale,
        )
    interruption = Interruption(config.base)
    interruption.install()
    healthy = True
    with interruption.ours():
        for check_ in examine(config, interruption):
            typer.echo(str(check_))
            healthy = healthy and check_.good is not False
    if interruption.signal:
        raise typer.Exit(interruption.status)
    raise typer.Exit(0 if healthy else 1)


app.command()(fuzz_options.fuzz)
app.command()(fuzz_options.replay)


@app.command()
def example(
    name: Annotated[str, typer.Argument(help="which one")] = "",
    *,
    to: Annotated[Path | None, typer.Option(help="write it to this file or folder")] = None,
    force: Annotated[bool, typer.Option("--force", help="write over a file")] = False,
) -> None:
    """Print an example server, or write it to a file; without a name, list them."""
    from harness.commands.shipped import example_lines, example_text, write_example

    with recorded.errors():
        if not name and to is not None:
            raise typer.BadParameter("name an example to write", param_hint="--to")
        if not name:
            for line in example_lines():
                typer.echo(line)
        elif to is None:
            typer.echo(example_text(name), nl=False)
        else:
            typer.echo(f"{write_example(name, to, force=force)} written")


@app.command()
def docs(
    page: Annotated[str, typer.Argument(help="such as reports, or protocol#turn.completes")] = "",
    *,
    path: Annotated[bool, typer.Option("--path", help="where its file lies, not its text")] = False,
) -> None:
    """Print a page of the documents, or its part at an anchor; without a name, list them."""
    from harness.commands.shipped import document_lines, document_text, documents, find_document

    with recorded.errors():
        if page:
            found = find_document(page)[0]
            typer.echo(str(found) if path else document_text(page), nl=path)
        elif path:
            typer.echo(str(documents()["README"].parent))
        else:
            for line in document_lines():
                typer.echo(line)


app.command()(recorded.status)
app.command()(recorded.compare)
app.command()(recorded.ledger)
app.command()(fault_options.faulty)
app.command()(record_options.record)
app.command()(mutate_options.mutate)
app.command()(model_options.model)
app.command()(connect_options.connect)
app.add_typer(snapshots.app, name="snapshots")


scenario = typer.Typer(no_args_is_help=True, help="Work with scenario files.")
app.add_typer(scenario, name="scenario")


@scenario.command()
def validate(scenarios: Annotated[list[str], typer.Argument(help=_SCENARIOS)]) -> None:
    """Check scenario files without starting anything. Exit status 1 if one is bad."""
    from harness.rules.discovery import all_rules
    from harness.runner.lexicon import protocol_lexicon
    from harness.scenario.loader import load_all
    from harness.spec.loading import load_book

    found, bad = _found(scenarios)
    rules, lexicon = set(all_rules()), protocol_lexicon()
    capabilities = {one.id for one in load_book().capabilities}
    for one in load_all(
        found, rules=rules, capabilities=capabilities, lexicon=lexicon, clientless=True
    ):
        if isinstance(one, Exception):
            bad += 1
            typer.echo(str(one), err=True)
    typer.echo(f"{len(found)} scenario(s), {bad} bad")
    raise typer.Exit(1 if bad or not found else 0)


@scenario.command(name="list")
def list_scenarios(
    scenarios: Annotated[list[str] | None, typer.Argument(help=_SCENARIOS)] = None,
) -> None:
    """List scenarios, the bundled ones without arguments: id, what it needs, title."""
    from harness.scenario.loader import load_all

    found, bad = _found(scenarios or ["bundled"])
    for one in load_all(found, clientless=True):
        if isinstance(one, Exception):
            bad += 1
            typer.echo(str(one), err=True)
            continue
        needs = f" [{', '.join(one.scenario.needs)}]" if one.scenario.needs else ""
        typer.echo(f"{one.id}{needs}: {one.scenario.title}")
    raise typer.Exit(1 if bad else 0)


@scenario.command(name="show")
def show_scenario(
    name: Annotated[str, typer.Argument(help="the id of a bundled scenario: turns/plain-turn")],
) -> None:
    """Print a bundled scenario's file, to read or to begin one's own with."""
    from harness.commands.shipped import scenario_text

    with recorded.errors():
        typer.echo(scenario_text(name), nl=False)


def _found(words: list[str]) -> tuple[list[Path], int]:
    """The files of all words; of each word that names none the reason is printed and counted."""
    from harness.errors import UsageError
    from harness.scenario.named import named_files

    found: dict[Path, None] = {}
    bad = 0
    for word in words:
        try:
            found |= dict.fromkeys(named_files([word]))
        except UsageError as problem:
            bad += 1
            typer.echo(str(problem), err=True)
    return list(found), bad


@scenario.command(name="from-trace")
def from_trace(
    trace: Annotated[Path, typer.Argument(help="a recording, or a stored trace of a run")],
    *,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="a new *.scenario.yaml; else printed")
    ] = None,
    title: Annotated[str, typer.Option(help="one sentence that states a fact")] = "",
    force: Annotated[bool, typer.Option("--force", help="write over a file")] = False,
) -> None:
    """Make a scenario of a session: what its client did, with a model that says what it said."""
    from harness.commands.from_trace import from_trace, written

    with recorded.errors():
        made = from_trace(trace, title=title)
        if output is None:
            typer.echo(made.text, nl=False)
            return
        path = written(made, output, force=force)
    typer.echo(f"{path} written; play it: harness scenario play {path} --target NAME")
    for note in made.notes:
        typer.echo(f"  - {note}")


@scenario.command()
def schema(
    *,
    family: Annotated[bool, typer.Option("--family", help="of *.family.yaml files")] = False,
) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from harness.scenario.schema import schema_text

    typer.echo(schema_text(family=family), nl=False)


@scenario.command()
def play(
    name: Annotated[str, typer.Argument(metavar="SCENARIO", help="a file, or an id")],
    *,
    target: Target = "spec",
    server_cmd: ServerCmd = "",
    timeout_scale: Scale = 1.0,
) -> None:
    """Play one scenario and judge it: `harness run` of it, with all its lines."""
    run(
        [name],
        target=target,
        server_cmd=server_cmd,
        timeout_scale=timeout_scale,
        verbose=True,
    )


if __name__ == "__main__":
    main()
