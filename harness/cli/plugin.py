"""The pytest plugin: options only, until one of them names a target.

Without `--target` or `--server-cmd` it does nothing; with one of them `harness.cli.suite.hooks`
takes over. Every pytest run of an environment with the harness imports it through its entry point,
so it imports nothing itself, and reserves no names: every option is `--harness-…`, and has its
short name only in a run that uses it and in which nobody else defines it.
"""

import argparse
import gc
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.cli.suite.agent_server import Factory

_NEEDS_A_TARGET = (
    "rule",
    "baseline",
    "update_baseline",
    "reason",
    "expires",
    "retries",
    "require",
    "harness_json",
    "harness_markdown",
    "harness_html",
    "harness_strict",
    "race",
    "keep_going",
    "tag",
    "no_bundled",
    "snapshots",
    "confine",
    "confine_auto",
    "shard",
    "on",
    "resume",
)
_TITLE = "conformance of an agent session protocol server; --harness-NAME stands for each --NAME"
_PREFIX = "--harness-"


class _Several(argparse.Action):
    """An option with comma-separated names that may be repeated."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Append the names to those given before."""
        before = getattr(namespace, self.dest, "")
        setattr(namespace, self.dest, f"{before},{values}" if before else values)


def _at_least_one(word: str) -> int:
    """Parse a number of lanes. Raises `ArgumentTypeError` if it is less than 1."""
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word} is less than 1")
    return number


def _options(add: Callable[..., None]) -> None:
    # None if it was not given: an empty command is a mistake, not a run without a target.
    add("--server-cmd", default=None, metavar="CMD", help="the server to judge; no shell runs it")
    add("--agent-cmd", default=None, metavar="CMD", help="the agent whose `exec` is to be judged")
    add("--sdk-cmd", default=None, metavar="CMD", help="the driver program of an SDK to be judged")
    add("--target", default=None, metavar="PROFILE", help="a profile: name or path (default: spec)")
    add(
        "--rule",
        action=_Several,
        default="",
        metavar="ID",
        help="judge this rule alone, on what covers it; or ID,ID",
    )
    tagged = "scenarios with this tag, area or need; or TAG,TAG"
    add("--tag", action=_Several, default="", metavar="TAG", help=tagged)
    bundled = "leave out the bundled scenarios, which are added where the paths hold no scenario"
    add("--no-bundled", action="store_true", help=bundled)
    frozen = "the suite of a release, such as 1.0, or a file: what came later does not count"
    add("--suite", default="", metavar="NAME", help=frozen)
    # pytest has a --strict of its own.
    add("--harness-strict", action="store_true", help="SHOULD findings make the run fail too")
    add("--baseline", default="", metavar="FILE", help="known deviations beside the profile's own")
    update = "write what is found into the file of --baseline, and take out what is gone"
    add("--update-baseline", action="store_true", help=update)
    reason = "why the entries of --update-baseline are accepted; every report shows it"
    add("--reason", default="", metavar="TEXT", help=reason)
    add("--expires", default="", metavar="DAY", help="the last day of these entries: 2027-01-31")
    needed = "capabilities that must be offered, or all"
    add("--require", action=_Several, default="", metavar="CAPS", help=needed)
    race = "races only: all, ACTION, or ACTION@POSITION; several with commas"
    add("--race", action=_Several, default="", metavar="WHAT", help=race)
    add("--timeout-scale", type=float, default=1.0, metavar="N", help="multiply every bound")
    lanes = "scenarios that are played at once, each on a server of its own (default: by the cores)"
    add("--lanes", type=_at_least_one, default=None, metavar="N", help=lanes)
    shard = "play the K-th of N parts of the scenarios; harness merge makes one report of all parts"
    add("--shard", default="", metavar="K/N", help=shard)
    durations = "divide by these durations (harness merge --write-durations), not by number"
    add("--durations", default="", metavar="FILE", help=durations)
    cluster = "play on a Dask cluster: local, local:N, or its scheduler's tcp://HOST:PORT"
    add("--on", default="", metavar="CLUSTER", help=cluster)
    resume = "go on with a run that ended early; with it, and with --on, outcomes are stored"
    add("--resume", action="store_true", help=resume)
    confine = "confine the server: its own folders, no secrets, loopback alone (Linux, bubblewrap)"
    add("--confine", action="store_true", help=confine)
    auto = "as --confine where that is possible; elsewhere one line says why not"
    add("--confine-auto", action="store_true", help=auto)
    add("--keep-going", action="store_true", help="play on where the server hangs all the time")
    snapshots = "keep a transcript of each scenario in this folder, for harness snapshots review"
    add("--snapshots", default="", metavar="DIR", help=snapshots)
    strict = "what waits for review makes the run fail, as where CI is set"
    add("--snapshots-strict", action="store_true", help=strict)
    budget = "begin no scenario after so many seconds; of -m fuzz, all of it (60)"
    add("--max-time", type=float, default=None, metavar="S", help=budget)
    add("--repeat", type=int, default=1, metavar="N", help="play each scenario so many times")
    retries = "play a scenario that failed so many times more at most, until it passes"
    add("--retries", type=int, default=0, metavar="N", help=retries)
    add("--fuzz-seed", type=int, default=1, metavar="N", help="where -m fuzz begins")
    many = "so many cases of each kind in -m fuzz, in place of --max-time: same seed, same cases"
    add("--fuzz-conversations", type=int, default=None, metavar="N", help=many)
    ways = "play sequences that cover every pair of operations; with 3, triples as well"
    add("--sequences", type=int, choices=(2, 3), default=None, help=ways)
    add("--harness-json", default="", metavar="FILE", help="write the report as JSON")
    page = "write the report as a Markdown page, for a pull request or the summary of a CI job"
    add("--harness-markdown", default="", metavar="FILE", help=page)
    html = "write the report as one HTML file, with its conversations, to open in a browser"
    add("--harness-html", default="", metavar="FILE", help=html)
    # Set by `harness run`, which plays scenarios only.
    add("--harness-run", action="store_true", help=argparse.SUPPRESS)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the harness under their unique long names."""
    group = parser.getgroup("harness", _TITLE)

    def add(name: str, **more: object) -> None:
        short = not name.startswith(_PREFIX)
        long = f"{_PREFIX}{name[2:]}" if short else name
        hidden_help = {"help": argparse.SUPPRESS} if short else {}
        group.addoption(long, dest=long[2:].replace("-", "_"), **{**more, **hidden_help})

    _options(add)


@pytest.hookimpl(trylast=True)
def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> None:
    """Add the short names that this run uses and that no other plugin or conftest defines."""
    group = parser.getgroup("harness", _TITLE)
    used = {word.split("=", 1)[0] for word in args}

    def add(name: str, **more: object) -> None:
        if name.startswith(_PREFIX) or not used & {name, "-h", "--help"}:
            return
        dest = f"{_PREFIX}{name[2:]}"[2:].replace("-", "_")
        try:
            group.addoption(name, **{**more, "dest": dest, "default": argparse.SUPPRESS})
        except (ValueError, argparse.ArgumentError):
            return  # The name is taken; --harness-… still works.

    _options(add)


def _options_of(config: pytest.Config) -> argparse.Namespace:
    """Return the options of a run, those of the harness under their short names too."""
    options = dict(vars(config.option))
    harness_options = {
        name: value for name, value in options.items() if name.startswith("harness_")
    }
    return argparse.Namespace(
        **options
        | {name.removeprefix("harness_"): value for name, value in harness_options.items()}
    )


@pytest.fixture
def agent_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> "Iterator[Factory]":
    """A server for the client under test: agent_server("turns/plain-turn").url, or .command.

    It plays the script, and fails the test at its end if the client broke a duty, or the script
    was not played as written. See `harness docs agent-server-fixture`.
    """
    from harness.cli.suite.agent_server import agent_server_factory

    with agent_server_factory(
        request.path.parent, lambda: tmp_path_factory.mktemp("agent-server")
    ) as factory:
        yield factory


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Explain that a named scenario file needs a server, since otherwise nothing collects it."""
    try:
        return (yield)
    except pytest.UsageError as error:
        option = session.config.option
        target_options = ("server_cmd", "agent_cmd", "sdk_cmd", "target")
        server = any(getattr(option, f"harness_{name}") is not None for name in target_options)
        paths = (word.split("::", 1)[0] for word in session.config.args)
        if server or not any(name.endswith((".scenario.yaml", ".family.yaml")) for name in paths):
            raise
        hint = "scenario files need a server: give --server-cmd or --target"
        raise pytest.UsageError(*error.args, hint) from error


def pytest_configure(config: pytest.Config) -> None:
    """Check the options before anything is started, and register the plugins."""
    option = _options_of(config)
    commands = (option.server_cmd, option.agent_cmd, option.sdk_cmd, option.target)
    if all(command is None for command in commands):
        idle = [name for name in _NEEDS_A_TARGET if getattr(option, name)]
        if idle:
            name = "--" + idle[0].replace("_", "-")
            raise pytest.UsageError(f"{name} needs a server: give --server-cmd or --target")
        return
    if option.harness_run and hasattr(config, "workerinput"):
        # A worker of `harness run`, started by pytest-xdist (see harness/cli/suite/__main__.py).
        gc.disable()
    config.addinivalue_line("markers", "race: an action at every position of a scenario's turn")
    from harness.cli.suite.hooks import PytestPlugin
    from harness.cli.suite.one_line import OneLine
    from harness.cli.suite.own_trouble import OwnTrouble
    from harness.errors import UsageError
    from harness.play.trouble import describe_trouble

    try:
        judging = PytestPlugin(config, option)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error
    except OSError as error:
        raise pytest.UsageError(describe_trouble(error)) from error
    except KeyboardInterrupt as error:
        raise pytest.exit.Exception("interrupted before the start", returncode=130) from error
    config.pluginmanager.register(judging, "harness-judging")
    config.pluginmanager.register(OwnTrouble(config, judging.config.base), "harness-trouble")
    config.pluginmanager.register(OneLine(config), "harness-one-line")
    config.pluginmanager.register(judging.collecting, "harness-collecting")
    if option.harness_run and not hasattr(config, "workerinput"):
        from harness.cli.suite.live import LiveProgress

        live = LiveProgress(config, judging.config)
        config.pluginmanager.register(live, "harness-live")
