"""`harness connect`: check the options before anything is started."""

import math
from dataclasses import dataclass
from functools import partial

from harness.cli.connect.display import Write
from harness.cli.connect.live_server import ConnectOptions
from harness.cli.connect.run import run
from harness.cli.connect.talk import Judging
from harness.client.target.profile import Profile, load_profile
from harness.client.target.run_folders import base_folder
from harness.client.transport.connect import check_address
from harness.errors import UsageError
from harness.judge.base import judges_surface
from harness.judge.rules.discovery import all_rules
from harness.play.config import configure
from harness.play.lexicon import protocol_lexicon
from harness.protocol.spec.loading import load_book
from harness.scenario.loader import Loaded, load
from harness.scenario.scenario_names import named_files
from harness.trace.surfaces import SESSION


@dataclass(frozen=True, slots=True)
class PageOptions:
    """The port of the page, 0 for any free one, and whether the browser opens it."""

    port: int = 0
    opens: bool = False


def by_hand(
    *,
    server_cmd: str,
    address: str,
    target: str,
    scenario: str,
    model_port: int,
    scale: float,
    page: PageOptions | None,
    write: Write,
    complain: Write,
) -> int:
    """Let the user talk to a server, on a page if given its options; return the exit status.

    Raises `UsageError` for unusable options.
    """
    if server_cmd and address:
        raise UsageError("--server-cmd starts a server and --connect finds one; give one of them")
    if not 0 < scale < math.inf:
        raise UsageError("--timeout-scale must be a number greater than 0")
    profile = _profile(server_cmd, address, target, scale)
    # The user writes the client's messages, so rules about the harness do not apply.
    rules = {
        name: rule
        for name, rule in all_rules().items()
        if judges_surface(rule, SESSION) and not name.startswith("harness.")
    }
    options = ConnectOptions(
        profile=profile,
        bounds=profile.bounds.scale(scale),
        address=address,
        scenario=_scenario(scenario) if scenario else None,
        model_port=model_port,
    )
    judging = Judging(load_book(), profile, rules)
    if page is not None:
        import anyio

        from harness.cli.connect.web import at_page  # Starlette and Jinja are slow to import.

        hold = partial(at_page, port=page.port, opens=page.opens)
        return anyio.run(hold, options, judging, base_folder(), write)
    return run(options, judging, base_folder(), write, complain)


def _profile(server_cmd: str, address: str, target: str, scale: float) -> Profile:
    if address:
        check_address(address)
        return load_profile(target)
    profile = load_profile(target)
    if not server_cmd and not profile.command:
        raise UsageError(
            f"the profile {profile.name!r} has no command; give --server-cmd 'program arguments', "
            "or --connect ADDRESS of a server that runs"
        )
    return configure(target=target, server_cmd=server_cmd, scale=scale).profile


def _scenario(word: str) -> Loaded:
    files = named_files([word])
    if len(files) != 1:
        raise UsageError(f"{word}: {len(files)} scenarios; name one")
    return load(files[0], lexicon=protocol_lexicon())
