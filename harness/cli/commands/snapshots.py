"""`harness snapshots`: review the transcripts of a run with `--snapshots`."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.commands import run_commands
from harness.cli.commands.output_files import METAVAR, JsonOption, say, write_results

if TYPE_CHECKING:
    from harness.report.snapshot.folder import SnapshotFolder, WaitingSnapshot

app = typer.Typer(no_args_is_help=True, help="Review the transcripts that harness run keeps.")

FolderArgument = Annotated[Path, typer.Argument(metavar="DIR", help="the folder of --snapshots")]
Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAMES", help="of these scenarios alone: turns/plain-turn, 'turns/*'"),
]


@app.command()
def review(
    folder: FolderArgument,
    names: Names = None,
    *,
    accept_all: Annotated[
        bool, typer.Option("--accept-all", help="accept what is new or changed, without asking")
    ] = False,
    reject_all: Annotated[
        bool, typer.Option("--reject-all", help="drop what is new or changed, without asking")
    ] = False,
    remove_unused: Annotated[
        bool, typer.Option("--remove-unused", help="remove those of no scenario that is played")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="list what waits; exit status 1 if anything does")
    ] = False,
) -> None:
    """Decide on each new or changed transcript, with a key each; piped, list what waits.

    Exit status 1 if --check finds anything, or something that cannot be read is left.
    """
    if sum((accept_all, reject_all, check)) > 1 or (check and remove_unused):
        raise typer.BadParameter("--accept-all, --reject-all, --check: one of them only")
    with run_commands.exit_on_error():
        chosen = _select(folder, names or [])
        if check:
            raise typer.Exit(_list_waiting(chosen))
        if accept_all or reject_all or remove_unused:
            raise typer.Exit(_decide(chosen, accept_all, reject_all, remove_unused))
        _review(chosen)


@app.command(name="list")
def list_(folder: FolderArgument, names: Names = None, *, json: JsonOption = "") -> None:
    """List all snapshots: accepted, or what they wait for. Exit status 2 if one cannot be read."""
    from harness.report.snapshot.folder import State

    with run_commands.exit_on_error():
        chosen = _select(folder, names or [])
        rows: dict[str, tuple[str, str]] = dict.fromkeys(chosen.accepted_names, ("accepted", ""))
        bad = 0
        for snapshot in chosen.pending_snapshots:
            broken = bool(snapshot.problem) and snapshot.state is not State.UNUSED
            rows[snapshot.name] = (str(snapshot.state), snapshot.problem if broken else "")
            bad += broken
        write_results(
            lambda: (
                f"{state:8} {name}{f': {problem}' if problem else ''}"
                for name, (state, problem) in sorted(rows.items())
            ),
            json_target=json,
            results=lambda: [
                {"name": name, "state": state, "problem": problem}
                for name, (state, problem) in sorted(rows.items())
            ],
        )
    if bad:
        say(f"{bad} cannot be read: play the scenario with --snapshots, and review", err=True)
        raise typer.Exit(2)


@app.command()
def summary(
    folder: FolderArgument,
    *,
    markdown: Annotated[
        str,
        typer.Option(
            "--markdown", metavar=METAVAR, help="add it to this file; - for standard output"
        ),
    ] = "-",
) -> None:
    """Print what waits as Markdown, for a pull request: a table of meanings, and differences."""
    from harness.report.snapshot.summary import markdown as lines

    with run_commands.exit_on_error():
        chosen = _select(folder, [])
        text = (
            "\n".join(lines(chosen.pending_snapshots, len(chosen.folder.accepted_names()))) + "\n"
        )
        if markdown == "-":
            typer.echo(text, nl=False)
            return
        with Path(markdown).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)


@dataclass(frozen=True, slots=True)
class _Selection:
    """The snapshots that a command selects: pending ones, and the names of accepted ones.

    `words` are the names that select them; none selects all.
    """

    folder: "SnapshotFolder"
    pending_snapshots: "list[WaitingSnapshot]"
    accepted_names: list[str]
    words: Sequence[str] = ()


def _select(path: Path, names: Sequence[str]) -> _Selection:
    from harness.errors import UsageError
    from harness.report.snapshot.folder import SnapshotFolder

    if not path.is_dir():
        problem = "is no folder" if path.exists() else "does not exist"
        raise UsageError(f"{path} {problem}: harness run … --snapshots {path} makes it")
    folder = SnapshotFolder(path)
    waiting = folder.waiting_snapshots()
    waits = {snapshot.name for snapshot in waiting}
    every = (f"{target}/{scenario}" for target, scenario in folder.accepted_names())
    accepted = [name for name in every if name not in waits]
    if not names:
        return _Selection(folder, waiting, accepted)
    for name in names:
        if not any(_matches(candidate, [name]) for candidate in (*accepted, *waits)):
            raise UsageError(f"{name}: {path} has no such snapshot; harness snapshots list {path}")
    waiting = [snapshot for snapshot in waiting if _matches(snapshot.name, names)]
    accepted = [name for name in accepted if _matches(name, names)]
    return _Selection(folder, waiting, accepted, names)


def _matches(name: str, words: Sequence[str]) -> bool:
    """Return whether one of the words (name, pattern, `folder/`) fits, with or without target."""
    scenario = name.partition("/")[2]
    return any(
        fnmatchcase(candidate, f"{word}*" if word.endswith("/") else word)
        for word in words
        for candidate in (name, scenario)
    )


def _list_waiting(chosen: _Selection) -> int:
    from harness.report.snapshot.changes import headline
    from harness.report.snapshot.review import count_by_state, describe_snapshot

    waiting = chosen.pending_snapshots
    for snapshot in waiting:
        say(f"{snapshot.state} {snapshot.name}: {headline(describe_snapshot(snapshot))}")
    if waiting:
        say(f"{len(waiting)} wait for review: {count_by_state(waiting)}")
        return 1
    of_these = "of these " if chosen.words else ""
    say(
        f"{of_these}nothing waits for review: {len(chosen.accepted_names)} snapshot(s) are accepted"
    )
    return 0


def _decide(chosen: _Selection, accept: bool, reject: bool, remove_unused: bool) -> int:
    from harness.report.snapshot.folder import State

    folder, status = chosen.folder, 0
    for word in chosen.words:
        if not any(_matches(snapshot.name, [word]) for snapshot in chosen.pending_snapshots):
            say(f"{word} does not wait for review: it is accepted, and stays as it is")
    for snapshot in chosen.pending_snapshots:
        if snapshot.state is State.UNUSED:
            if remove_unused:
                folder.accept(snapshot)
                say(f"removed {snapshot.name}")
        elif accept and snapshot.state is State.DAMAGED:
            say(f"{snapshot.name}: {snapshot.problem}", err=True)
            status = 1
        elif accept:
            folder.accept(snapshot)
            say(f"accepted {snapshot.name}")
        elif reject and (
            snapshot.state is not State.DAMAGED or snapshot.accepted_snapshot is not None
        ):
            folder.reject(snapshot)
            say(f"rejected {snapshot.name}")
    remaining = {snapshot.name for snapshot in folder.waiting_snapshots()}
    chosen_remaining = remaining & {snapshot.name for snapshot in chosen.pending_snapshots}
    others_words = (
        f", {len(remaining - chosen_remaining)} other(s) too"
        if chosen_remaining and remaining - chosen_remaining
        else ""
    )
    if not chosen_remaining and remaining:
        say(f"of these nothing waits for review, {len(remaining)} other(s) do")
    else:
        say(
            f"{len(chosen_remaining)} wait for review{others_words}"
            if remaining
            else "nothing waits for review"
        )
    return status


def _review(chosen: _Selection) -> None:
    import sys

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        _print_all(chosen)
        return
    from harness.cli.commands.keys import keys
    from harness.report.snapshot.review import Review

    if not chosen.pending_snapshots:
        _list_waiting(chosen)
        return
    with keys(sys.stdin.fileno()) as key:
        summary_line = Review(chosen.folder, key).run(chosen.pending_snapshots)
    say(summary_line)


def _print_all(chosen: _Selection) -> None:
    """Print the differences, the snapshots that wait, and how to decide without a terminal."""
    from harness.report.snapshot.difference_lines import unified_lines
    from harness.report.snapshot.review import difference_lines

    folder, waiting = chosen.folder, chosen.pending_snapshots
    for snapshot in waiting:
        if snapshot.accepted_snapshot is not None and snapshot.pending_snapshot is not None:
            say(f"--- {folder.accepted_file(snapshot.target, snapshot.scenario)}")
            say(f"+++ {folder.pending_file(snapshot.target, snapshot.scenario)}")
            for line in unified_lines(difference_lines(snapshot)):
                say(line)
    _list_waiting(chosen)
    if waiting:
        say("to decide: --accept-all or --reject-all, of some by their NAMES; or a terminal")
