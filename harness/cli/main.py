"""The `harness` command.

Imports are inside the commands, so that `harness show` does not load pytest.
"""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from harness.cli import double_options
from harness.cli.commands import (
    bisect_options,
    connect_options,
    drift_options,
    fault_options,
    fuzz_options,
    load_options,
    matrix_options,
    merge,
    model_options,
    mutate_options,
    profile_options,
    record_options,
    run_commands,
    run_options,
    show_options,
    snapshots,
    soak_options,
    watch_options,
)
from harness.cli.commands.folder_option import FolderCommand, KeepingCommand
from harness.cli.commands.output_files import (
    STANDARD_OUTPUT,
    JsonOption,
    MarkdownOption,
    check_targets,
    say,
    write_json,
    write_results,
)
from harness.cli.commands.target_options import (
    AgentCmdOption,
    NeededScenariosArgument,
    ScaleOption,
    ScenariosArgument,
    SdkCmdOption,
    ServerCmdOption,
    TargetOption,
    complete_explained,
    complete_pages,
)

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Judge any server of the agent session protocol.",
)


def main() -> None:
    """Run the console script."""
    from harness.console import guard_output

    guard_output(exits=True)
    try:
        app()
    finally:
        sys.stdout.flush()


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"harness {version('agent-session-harness')}")
        raise typer.Exit


@app.callback()
def _of_all(
    context: typer.Context,
    _: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_version, help="print the version"),
    ] = False,
) -> None:
    from harness.console import restore_interrupt

    if context.invoked_subcommand != "run":
        restore_interrupt()


app.command(cls=KeepingCommand)(run_options.run)


@app.command(cls=FolderCommand)
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
    strict: Annotated[
        bool, typer.Option("--strict", help="a broken SHOULD counts like a broken MUST")
    ] = False,
    json: JsonOption = "",
) -> None:
    """Judge stored traces, or others' recordings. Exit status 1 if a MUST rule is broken."""
    from harness.cli.commands.check import Sides, check_files
    from harness.errors import UsageError

    with run_commands.exit_on_error():
        if side not in tuple(Sides):
            raise UsageError(f"--side {side!r}: expected {', '.join(Sides)}")
        status = check_files(
            traces,
            target=target,
            settled=settled,
            side=Sides(side),
            strict=strict,
            json_target=json,
        )
    raise typer.Exit(status)


app.command(cls=FolderCommand)(show_options.show)


@app.command(context_settings={"ignore_unknown_options": True})  # -32600 is an argument.
def explain(
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="or: capabilities, verdicts, levels",
            autocompletion=complete_explained,
        ),
    ],
) -> None:
    """Explain an id, a verdict, or a word of the protocol: turn/start, decline, -32600.

    Ids are those of rules, requirements, findings, capabilities, scenarios and open points. Words
    are methods, notifications, item types, types, their members and values, and error codes.
    """
    from harness.cli.commands.explain import explain as explanation

    with run_commands.exit_on_error():
        for line in explanation(name):
            typer.echo(line)


@app.command(name="list")
def list_(*, json: JsonOption = "", markdown: MarkdownOption = "") -> None:
    """List the rules."""
    from harness.cli.commands.explain import rule_rows, rule_table

    with run_commands.exit_on_error():
        write_results(
            rule_table,
            json_target=json,
            results=rule_rows,
            markdown_target=markdown,
            markdown=lambda: rule_table(markdown=True),
        )


@app.command(cls=KeepingCommand)
def doctor(
    *,
    target: TargetOption = "spec",
    server_cmd: ServerCmdOption = "",
    agent_cmd: AgentCmdOption = "",
    sdk_cmd: SdkCmdOption = "",
    timeout_scale: ScaleOption = 1.0,
    json: JsonOption = "",
) -> None:
    """Say in seconds whether a server can be judged, and what to do if not."""
    from harness.cli.commands.doctor import examine
    from harness.play.config import configure
    from harness.play.interruption import Interruption
    from harness.play.session.setup_diagnosis import Check

    with run_commands.exit_on_error():
        check_targets(json)
        config = configure(
            target=target,
            server_cmd=server_cmd,
            agent_cmd=agent_cmd,
            sdk_cmd=sdk_cmd,
            scale=timeout_scale,
        )
    interruption = Interruption(config.base)
    interruption.install()
    checks: list[Check] = []
    with interruption.defer_signals():
        for check_ in examine(config, interruption):
            if json != STANDARD_OUTPUT:
                say(str(check_))
            checks.append(check_)
    healthy = all(check_.good is not False for check_ in checks)
    if json:
        with run_commands.exit_on_error():
            write_json({"healthy": healthy, "checks": [asdict(one) for one in checks]}, json)
    if interruption.signal:
        raise typer.Exit(interruption.status)
    raise typer.Exit(0 if healthy else 1)


app.command(cls=KeepingCommand)(fuzz_options.fuzz)
app.command(cls=KeepingCommand)(fuzz_options.replay)


@app.command()
def example(
    name: Annotated[str, typer.Argument(help="which one")] = "",
    *,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="write it to this file or folder")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="write over a file")] = False,
) -> None:
    """Print an example, or write it to a file or folder; without a name, list them."""
    from harness.cli.commands.shipped import example_lines, example_text, write_example

    with run_commands.exit_on_error():
        if not name and output is not None:
            raise typer.BadParameter("name an example to write", param_hint="--output")
        if not name:
            for line in example_lines():
                typer.echo(line)
        elif output is None:
            typer.echo(example_text(name), nl=False)
        else:
            for path in write_example(name, output, force=force):
                typer.echo(f"{path} written")


@app.command()
def docs(
    page: Annotated[
        str,
        typer.Argument(
            help="such as reports, or protocol#turn.completes", autocompletion=complete_pages
        ),
    ] = "",
    *,
    path: Annotated[bool, typer.Option("--path", help="where its file lies, not its text")] = False,
) -> None:
    """Print a page of the documents, or its part at an anchor; without a name, list them."""
    from harness.cli.commands.shipped import document_lines, document_text, documents, find_document

    with run_commands.exit_on_error():
        if page:
            file = find_document(page)[0]
            typer.echo(str(file) if path else document_text(page), nl=path)
        elif path:
            typer.echo(str(documents()["README"].parent))
        else:
            for line in document_lines():
                typer.echo(line)


@app.command(name="schema")
def print_schema(
    name: Annotated[str, typer.Argument(metavar="NAME", help="report, trace, scenario, family")],
) -> None:
    """Print the JSON Schema of our files, for editors and for readers in other languages."""
    from harness.cli.commands.file_schemas import file_schema

    with run_commands.exit_on_error():
        typer.echo(file_schema(name), nl=False)


@app.command()
def upgrade(
    traces: Annotated[list[Path], typer.Argument(help="traces of an older format")],
) -> None:
    """Rewrite traces of an older format in the current one; their messages keep every byte."""
    from harness.trace.surface.registry import classify_of
    from harness.trace.upgrade import upgrade_trace

    with run_commands.exit_on_error():
        for trace in traces:
            is_changed = upgrade_trace(trace, classify_of)
            typer.echo(f"{trace}: {'upgraded' if is_changed else 'already in the current format'}")


app.command(cls=FolderCommand)(run_commands.status)
app.command(cls=FolderCommand)(run_commands.report)
app.command(cls=FolderCommand)(merge.merge)
app.command(cls=FolderCommand)(watch_options.watch)
app.command(cls=FolderCommand)(run_commands.compare)
app.command(cls=FolderCommand)(run_commands.ledger)
app.command(cls=KeepingCommand)(load_options.load)
app.command(cls=KeepingCommand)(soak_options.soak)
app.command()(fault_options.faulty)
app.command()(double_options.double)
app.command()(record_options.record)
app.command(cls=KeepingCommand)(mutate_options.mutate)
app.command(cls=KeepingCommand)(drift_options.drift)
app.command(cls=KeepingCommand)(matrix_options.matrix)
app.command(cls=KeepingCommand)(bisect_options.bisect)
app.command()(model_options.model)
app.command(cls=KeepingCommand)(connect_options.connect)
app.add_typer(snapshots.app, name="snapshots")
app.add_typer(profile_options.app, name="profile")


MAX_MISTAKES_SHOWN = 40
"""Lines about one file on the terminal; `--json` has all of them."""

scenario = typer.Typer(no_args_is_help=True, help="Work with scenario files.")
app.add_typer(scenario, name="scenario")


@scenario.command()
def validate(
    scenarios: NeededScenariosArgument,
    *,
    json: JsonOption = "",
) -> None:
    """Check scenario files without starting anything. Exit status 1 if one is bad."""
    from harness.judge.rules.discovery import all_rules
    from harness.play.lexicon import protocol_lexicon
    from harness.protocol.spec.loading import load_book
    from harness.scenario.loader import load_all

    files, unknown = _named_files(scenarios)
    mistakes: list[str] = []
    bad_files: set[str] = set()
    rules, lexicon = set(all_rules()), protocol_lexicon()
    capabilities = {capability.id for capability in load_book().capabilities}
    for loaded in load_all(
        files, rules=rules, capabilities=capabilities, lexicon=lexicon, clientless=True
    ):
        if isinstance(loaded, Exception):
            bad_files.add(loaded.path + loaded.row)
            lines = [mistake.line for mistake in loaded.all_mistakes()]
            mistakes += lines
            shown, hidden = lines[:MAX_MISTAKES_SHOWN], len(lines) - MAX_MISTAKES_SHOWN
            more = [f"{loaded.path}: {hidden} more mistakes"] if hidden > 0 else []
            typer.echo("\n".join([*shown, *more]), err=True)
    bad = len(bad_files) + len(unknown)
    with run_commands.exit_on_error():
        write_results(
            lambda: [f"{len(files)} scenario(s), {bad} bad"],
            json_target=json,
            results=lambda: {
                "scenarios": len(files),
                "bad": bad,
                "unknown": unknown,
                "mistakes": mistakes,
            },
        )
    raise typer.Exit(1 if mistakes else 2 if unknown or not files else 0)


@scenario.command(name="list")
def list_scenarios(
    scenarios: ScenariosArgument = None,
    *,
    json: JsonOption = "",
) -> None:
    """List scenarios, the bundled ones without arguments: id, what it needs, title."""
    from harness.scenario.loader import load_all

    files, unknown = _named_files(scenarios or ["bundled"])
    bad = len(unknown)
    rows: list[dict[str, Any]] = []
    for loaded in load_all(files, clientless=True):
        if isinstance(loaded, Exception):
            bad += 1
            typer.echo(str(loaded), err=True)
            continue
        needs = list(loaded.scenario.needs)
        rows.append({"id": loaded.id, "needs": needs, "title": loaded.scenario.title})
        if json != STANDARD_OUTPUT:
            shown_needs = f" [{', '.join(needs)}]" if needs else ""
            typer.echo(f"{loaded.id}{shown_needs}: {loaded.scenario.title}")
    if json:
        with run_commands.exit_on_error():
            write_json(rows, json)
    raise typer.Exit(2 if bad else 0)


@scenario.command(name="show")
def show_scenario(
    name: Annotated[str, typer.Argument(help="the id of a bundled scenario: turns/plain-turn")],
) -> None:
    """Print a bundled scenario's file, to read or to begin one's own with."""
    from harness.cli.commands.shipped import bundled_scenario_text

    with run_commands.exit_on_error():
        typer.echo(bundled_scenario_text(name), nl=False)


def _named_files(words: list[str]) -> tuple[list[Path], list[str]]:
    """Return the files of all words, and a message about each bad word, which is printed too."""
    from harness.errors import UsageError
    from harness.scenario.scenario_names import named_files

    files: dict[Path, None] = {}
    unknown: list[str] = []
    for word in words:
        try:
            files |= dict.fromkeys(named_files([word]))
        except UsageError as problem:
            unknown.append(str(problem))
            typer.echo(str(problem), err=True)
    return list(files), unknown


@scenario.command(name="from-trace", cls=FolderCommand)
def from_trace(
    trace: Annotated[Path, typer.Argument(help="a recording, or a stored trace of a run")],
    *,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="a new *.scenario.yaml; else printed")
    ] = None,
    title: Annotated[str, typer.Option(help="one sentence that states a fact")] = "",
    force: Annotated[bool, typer.Option("--force", help="write over a file")] = False,
    timing: model_options.TimingOption = None,
) -> None:
    """Make a scenario of a session: what its client did, with a model that says what it said."""
    from harness.cli.commands.from_trace import from_trace, write_scenario

    with run_commands.exit_on_error():
        new_scenario = from_trace(trace, title=title, timing=timing is not None)
        if output is None:
            typer.echo(new_scenario.text, nl=False)
            return
        path = write_scenario(new_scenario, output, force=force)
    say(f"{path} written; play it: harness run {path} {new_scenario.played_by}")
    for note in new_scenario.notes:
        say(f"  - {note}")


@scenario.command()
def schema(
    *,
    family: Annotated[bool, typer.Option("--family", help="of *.family.yaml files")] = False,
) -> None:
    """Print the JSON Schema of scenario files, for editors."""
    from harness.scenario.schema import schema_text

    typer.echo(schema_text(family=family), nl=False)


@scenario.command(cls=KeepingCommand)
def play(
    name: Annotated[str, typer.Argument(metavar="SCENARIO", help="a file, or an id")],
    *,
    target: TargetOption = "spec",
    server_cmd: ServerCmdOption = "",
    timeout_scale: ScaleOption = 1.0,
    json: JsonOption = "",
    verbose: Annotated[bool, typer.Option("-v", help="one line for each rule")] = False,
) -> None:
    """Play one scenario and judge it, as `harness run` does."""
    run_options.run(
        [name],
        target=target,
        server_cmd=server_cmd,
        timeout_scale=timeout_scale,
        json=json,
        verbose=verbose,
    )


if __name__ == "__main__":
    main()
