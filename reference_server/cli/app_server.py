"""`agent app-server`: the protocol on standard input and output, or on a socket (`listening`)."""

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import anyio

from reference_server.cli.edge import (
    edge_of_process,
    extra_methods_of_process,
    failures_of_process,
    told_to_all_by_process,
)
from reference_server.cli.process import (
    FirstSignal,
    begin_log,
    hide_secrets_in_log,
    leave_hung_threads,
    start_helper,
    without_secrets,
)
from reference_server.cli.scenario_model import (
    go_behind_faults,
    home_of_play,
    scenario_answers,
    scenario_defaults,
    scenario_environment,
    scenario_transport,
)
from reference_server.cli.surroundings import (
    UsageError,
    check_streams,
    complain,
    find_home,
    speak_utf8,
)
from reference_server.config.load import ConfigError, load_config
from reference_server.config.model import Config
from reference_server.connection import Connection
from reference_server.recovery import recover
from reference_server.scripted_answers import NO_ANSWERS
from reference_server.server import Server, running_server
from reference_server.transport.base import Edge
from reference_server.transport.stdio import StdioTransport

if TYPE_CHECKING:
    import argparse

    from reference_server.cli.listening import Listening, ListenOptions
    from reference_server.cli.staging import StageWords

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Options(NamedTuple):
    """Parsed command line of `agent app-server`."""

    scenario: Path | None = None
    require_initialize: bool = False
    config: tuple[str, ...] = ()
    """Settings as `key=value`, which override config.toml."""
    listen_options: "ListenOptions | None" = None
    stage: "StageWords | None" = None
    """Options of a stage, which gives each connection a scenario and a server of its own."""
    home: str | None = None


def parse(arguments: Sequence[str]) -> Options:
    """Parse the command line. Raises UsageError for wrong usage, and SystemExit after `--help`."""
    if not arguments:
        return Options()
    from reference_server.cli.one_message import OneMessageParser, add_options_without_effect
    from reference_server.config.arguments import add_settings_options

    parser = OneMessageParser(
        prog="agent app-server",
        description="Serve the agent session protocol: JSON Lines on standard input and output, "
        "or any number of clients on a socket.",
    )
    parser.add_argument(
        "--scenario",
        nargs="+",
        action="extend",
        metavar="FILE|ID",
        help="play the model's side from this file, or from this bundled scenario: no model and "
        "no network are needed. With --listen each connection gets a scenario, a home and a "
        "workspace of its own, and its client is judged; then folders and several are allowed too",
    )
    parser.add_argument(
        "--home",
        metavar="FOLDER",
        help="the folder of settings and threads, in place of AGENT_HOME; without either it is "
        "~/.agent, and with --scenario a folder of its own that is removed at the end",
    )
    parser.add_argument(
        "--require-initialize",
        action="store_true",
        help="refuse every request before `initialize`",
    )
    add_settings_options(parser)
    if os.environ.get("AGENT_DIALECT"):
        add_options_without_effect(parser)
    _add_listening(parser)
    _add_staging(parser)
    parsed = parser.parse_args(arguments)
    listening = _listen_options(parser, parsed)
    scenario, stage = _scenario(parser, parsed)
    if stage is not None and parsed.home is not None:
        parser.error("--home: a connection of a client under test has a home of its own")
    return Options(
        scenario,
        parsed.require_initialize,
        tuple(parsed.config),
        listening,
        stage,
        home=parsed.home,
    )


def _add_listening(parser: "argparse.ArgumentParser") -> None:
    from reference_server.cli.one_message import whole_number

    options = parser.add_argument_group("listening")
    options.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="ws://127.0.0.1:PORT, unix:PATH (a message is a line) or ws+unix:PATH (a WebSocket); "
        "port 0 is any free one; stdio (or stdio://): standard input and output",
    )
    token = options.add_mutually_exclusive_group()
    token.add_argument(
        "--token-env", metavar="NAME", help="the variable with the token that clients must send"
    )
    token.add_argument(
        "--token-file", metavar="FILE", help="the file with the token that clients must send"
    )
    options.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="let pages of this origin connect, as in https://example.org; may be repeated",
    )
    options.add_argument(
        "--max-connections",
        type=whole_number,
        metavar="N",
        help="connections at once; 256 by default, and further ones are refused",
    )


def _add_staging(parser: "argparse.ArgumentParser") -> None:
    from reference_server.cli.one_message import seconds, whole_number

    options = parser.add_argument_group(
        "clients under test (with --scenario, and --listen or --program)"
    )
    options.add_argument(
        "--program",
        type=Path,
        metavar="FILE",
        help="write an executable that a client starts in place of its agent; each start is a "
        "connection, and the file is removed at the end; one named codex speaks as Codex does",
    )
    options.add_argument(
        "--json", type=Path, metavar="FILE", help="write what each connection came to, at the end"
    )
    end = options.add_mutually_exclusive_group()
    end.add_argument("--once", action="store_true", help="end when each scenario was played once")
    end.add_argument(
        "--connections",
        type=whole_number,
        metavar="N",
        help="end after so many connections have ended",
    )
    options.add_argument(
        "--end-with-input",
        action="store_true",
        help="end when standard input, a pipe, is closed: so it ends with a test that is killed",
    )
    options.add_argument(
        "--strict",
        action="store_true",
        help="a connection is RED for a broken SHOULD too, not only for a MUST",
    )
    options.add_argument(
        "--idle",
        type=seconds,
        metavar="SECONDS",
        help="close a connection on which nothing was said for so long",
    )


def _scenario(
    parser: "argparse.ArgumentParser", parsed: "argparse.Namespace"
) -> "tuple[Path | None, StageWords | None]":
    """Return the scenario of a plain server and None, or None and the options of a stage."""
    stage_options = [
        name
        for name in (
            "program",
            "json",
            "once",
            "connections",
            "idle",
            "strict",
            "end_with_input",
        )
        if getattr(parsed, name) not in (None, False)
    ]
    if parsed.program is not None and parsed.listen is not None:
        parser.error("--program: clients start the program in place of --listen; give one of them")
    if parsed.listen == "stdio://" and os.environ.get("AGENT_DIALECT") and not stage_options:
        # So clients of the release start it, again and again with the same home.
        parsed.listen = None
    if parsed.scenario is None or (parsed.listen is None and parsed.program is None):
        if stage_options:
            other = "" if parsed.program is not None else " and --listen or --program"
            option = stage_options[0].replace("_", "-")
            parser.error(f"--{option} needs --scenario{other}")
        if parsed.scenario is None:
            return None, None
        if len(parsed.scenario) > 1:
            parser.error("--scenario takes one file; with --listen each connection gets one")
        return Path(parsed.scenario[0]), None
    from reference_server.cli.staging import StageWords

    words = tuple(parsed.scenario)
    return None, StageWords(
        words,
        parsed.json,
        parsed.connections,
        parsed.idle,
        once=parsed.once,
        strict=parsed.strict,
        program=parsed.program,
        end_with_input=parsed.end_with_input,
    )


def _listen_options(
    parser: "argparse.ArgumentParser", parsed: "argparse.Namespace"
) -> "ListenOptions | None":
    if parsed.listen in (None, "stdio", "stdio://"):
        if parsed.token_env or parsed.token_file or parsed.allow_origin or parsed.max_connections:
            parser.error(
                "--token-env, --token-file, --allow-origin and --max-connections need --listen"
            )
        return None
    from reference_server.cli.listening import ListenOptions

    return ListenOptions(
        parsed.listen,
        parsed.token_env,
        parsed.token_file,
        parsed.allow_origin,
        parsed.max_connections,
    )


def run(arguments: Sequence[str]) -> int:
    """Serve until the input ends or a signal comes, and return the exit status.

    0; 2 if the server cannot start; of a stage, 1 if a client failed a test.
    """
    speak_utf8()
    try:
        options = parse(arguments)
        check_streams(uses_streams=options.listen_options is None)
        if options.scenario is not None:
            go_behind_faults(options.scenario, arguments)
        begin_log()
        if options.stage is not None:
            return _run_stage(options, options.stage)
        environment = dict(os.environ)
        if options.home is not None:
            environment["AGENT_HOME"] = options.home
        if options.scenario is None:
            _run_server(options, environment)
        else:
            with home_of_play(environment) as own:
                _run_server(options, own)
    except (ConfigError, UsageError) as error:
        complain(without_secrets(str(error)))
        return 2
    leave_hung_threads()
    return 0


def _run_server(options: Options, environment: dict[str, str]) -> None:
    """Serve in the home that the environment names. Raises ConfigError, UsageError at the start."""
    home = find_home(environment)
    defaults = Config() if options.scenario is None else scenario_defaults(options.scenario)
    config = load_config(
        home.config_file, environment, complain, overrides=options.config, defaults=defaults
    )
    model_transport = None if options.scenario is None else scenario_transport(options.scenario)
    answers = NO_ANSWERS if options.scenario is None else scenario_answers(options.scenario)
    edge = edge_of_process(environment, home.root)
    listening = None if options.listen_options is None else _listen(options.listen_options, edge)
    hide_secrets_in_log(config)
    if model_transport is not None:
        config = replace(config, environment=scenario_environment(config.environment))
    if listening is not None:
        hidden = listening.hidden_from_commands(config.environment)
        config = replace(config, environment=hidden)
    recover(home)
    server = partial(
        running_server,
        home,
        config,
        model_transport=model_transport,
        requires_initialize=options.require_initialize,
        answers=answers,
        find_extra=extra_methods_of_process(environment),
        read_failure=failures_of_process(environment),
        told_to_all=told_to_all_by_process(environment),
    )
    anyio.run(_serve, server, listening, edge)


def _run_stage(options: Options, words: "StageWords") -> int:
    from reference_server.cli.staging import run_stage

    return run_stage(
        words,
        options.listen_options,
        overrides=options.config,
        requires_initialize=options.require_initialize,
    )


def _listen(options: "ListenOptions", edge: Edge) -> "Listening":
    from reference_server.cli.listening import listen

    return listen(options, os.environ, edge)


async def _serve(
    make_server: "Callable[[], AbstractAsyncContextManager[Server]]",
    listening: "Listening | None",
    edge: Edge,
) -> None:
    signals = FirstSignal(SIGNALS)
    try:
        async with make_server() as server:
            start_helper()
            signals.call(lambda _number: server.stop())
            if listening is not None:
                await listening.serve(server)
            else:
                await server.serve(Connection(edge(StdioTransport.take_over())), then_stop=True)
    finally:
        if listening is not None:
            listening.close()
        # The server has ended in order: a second signal must not kill it now.
        signals.ignore()
