"""The pytest plugin: options, and nothing else until one of them names a target.

Registered by its entry point only. Without `--target` or `--server-cmd` it does nothing; with one
of them `harness.suite.live` takes over. It is imported by every pytest run of whoever installs the
harness, so it imports nothing itself.
"""

import pytest

_NEEDS_A_TARGET = ("rule", "baseline", "require", "harness_json", "harness_strict", "race")


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the harness."""
    group = parser.getgroup("harness", "conformance of an agent session protocol server")
    add = group.addoption
    # None where it was not given: an empty command is a mistake, not a run without a target.
    add("--server-cmd", default=None, metavar="CMD", help="the server to judge; no shell runs it")
    add("--target", default=None, metavar="PROFILE", help="a profile: name or path (default: spec)")
    add("--rule", default="", metavar="ID", help="judge one rule, on the scenarios that cover it")
    # pytest has a --strict of its own.
    add("--harness-strict", action="store_true", help="SHOULD findings make the run fail too")
    add("--baseline", default="", metavar="FILE", help="known deviations beside the profile's own")
    add("--require", default="", metavar="CAPS", help="capabilities that must be offered, or all")
    add("--race", default="", metavar="WHAT", help="races only: all, ACTION, or ACTION@POSITION")
    add("--timeout-scale", type=float, default=1.0, metavar="N", help="multiply every bound")
    add("--harness-json", default="", metavar="FILE", help="write the report as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Check the options; nothing is started before they are right."""
    option = config.option
    config.addinivalue_line("markers", "race: an action at every position of a scenario's turn")
    if option.server_cmd is None and option.target is None:
        idle = [name for name in _NEEDS_A_TARGET if getattr(option, name)]
        if idle:
            name = "--" + idle[0].replace("_", "-")
            raise pytest.UsageError(f"{name} needs a server: give --server-cmd or --target")
        return
    from harness.suite.live import Live
    from harness.suite.oneline import OneLine
    from harness.target.profile import ProfileError

    try:
        live = Live(config)
    except ProfileError as error:
        raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(live, "harness-live")
    config.pluginmanager.register(OneLine(config), "harness-one-line")
