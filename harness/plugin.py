"""The pytest plugin: options, and nothing else until one of them names a target.

Registered by its entry point only. Without `--target` or `--server-cmd` it does nothing; with one
of them `harness.suite.live` takes over. It is imported by every pytest run of whoever installs the
harness, so it imports nothing itself.
"""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the harness."""
    group = parser.getgroup("harness", "conformance of an agent session protocol server")
    add = group.addoption
    add("--server-cmd", default="", metavar="CMD", help="the server to judge, run without a shell")
    add("--target", default="", metavar="PROFILE", help="a profile's name or path (default: spec)")
    add("--rule", default="", metavar="ID", help="judge one rule, on the scenarios that cover it")
    # pytest has a --strict of its own.
    add("--harness-strict", action="store_true", help="SHOULD findings make the run fail too")
    add("--baseline", default="", metavar="FILE", help="known deviations beside the profile's own")
    add("--require", default="", metavar="CAPS", help="capabilities that must be offered, or all")
    add("--timeout-scale", type=float, default=1.0, metavar="N", help="multiply every bound")
    add("--harness-json", default="", metavar="FILE", help="write the report as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Check the options; nothing is started before they are right."""
    if not (config.option.server_cmd or config.option.target):
        return
    from harness.suite.live import Live
    from harness.target.profile import ProfileError

    try:
        live = Live(config)
    except ProfileError as error:
        raise pytest.UsageError(str(error)) from error
    config.pluginmanager.register(live, "harness-live")
