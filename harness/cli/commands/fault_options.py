"""Options of the command `harness faulty`."""

import contextlib
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.commands.output_files import JsonOption, say, write_results
from harness.cli.commands.run_commands import exit_on_error

if TYPE_CHECKING:
    from harness.faults.live.chain import FaultChain
    from harness.faults.live.lines import BadLine, BreakableSide

_HELP = "the server and its arguments, behind --; with --list: words to look for"


def faulty(
    server: Annotated[list[str] | None, typer.Argument(metavar="[SERVER…]", help=_HELP)] = None,
    *,
    fault: Annotated[list[str] | None, typer.Option(help="a fault's id; may be repeated")] = None,
    scenario: Annotated[
        str, typer.Option(metavar="FILE|ID", help="the faults that a scenario writes down")
    ] = "",
    after: Annotated[int, typer.Option(min=0, help="spare so many places of each fault")] = 0,
    once: Annotated[bool, typer.Option("--once", help="act at one place only")] = False,
    line: Annotated[
        str, typer.Option(help="a bad line: slices, unread, half-closed or reset")
    ] = "",
    quiet: Annotated[
        float, typer.Option(min=0.01, help="seconds of silence after which held lines go on")
    ] = 5.0,
    listen: Annotated[
        str, typer.Option(metavar="ws://…|unix:…", help="take clients there, not on standard input")
    ] = "",
    list_: Annotated[bool, typer.Option("--list", help="print the faults")] = False,
    rule: Annotated[str, typer.Option(help="with --list: those of a rule, or of a family")] = "",
    json: JsonOption = "",
) -> None:
    """Run a server that misbehaves on cue: a proxy on standard input and output.

    What each fault did is said on standard error. The exit status is the server's.
    """
    from harness.cli.commands import fault_list
    from harness.errors import UsageError

    with exit_on_error():
        if list_:
            fault_rows = fault_list.find_faults(server or (), rule)
            write_results(
                lambda: fault_list.text_lines(fault_rows),
                json_target=json,
                results=lambda: fault_list.to_plain(fault_rows),
            )
            return
        if json:
            raise UsageError("--json is for --list")
        from harness.cli.commands.faulty import build_chain, line_kind, serve
        from harness.cli.commands.proxy import end_like
        from harness.faults.live.lines import BadLine

        kind = line_kind(line) if line else None

        def make_bad(side: "BreakableSide", number: int = 1) -> "BreakableSide | BadLine":
            if kind is None or (once and number > 1):
                return side
            head = f"faulty: client {number}: " if listen else "faulty: "
            return BadLine(
                side, kind, after=after, pause=quiet, say=lambda words: _say(head + words)
            )

        if listen:
            from harness.cli.commands import faulty_sockets

            def of_client(number: int) -> "FaultChain":
                def say_of_client(line: str) -> None:
                    _say(line.replace("faulty: ", f"faulty: client {number}: ", 1))

                return build_chain(
                    fault or (),
                    scenario=scenario,
                    after=after,
                    once=once,
                    say=say_of_client,
                    line=line,
                )

            status = faulty_sockets.listen(listen, server or (), of_client, quiet, _say, make_bad)
        else:
            live = build_chain(
                fault or (), scenario=scenario, after=after, once=once, say=_say, line=line
            )
            status = serve(server or (), live, quiet=quiet, say=_say, bad_line=make_bad)
    end_like(status)


def _say(line: str) -> None:
    # If nobody reads standard error, the conversation still goes on.
    with contextlib.suppress(OSError, ValueError):
        say(line, err=True)
