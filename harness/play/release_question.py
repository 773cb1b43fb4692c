"""The question to a server for its release: by its version command, else by `initialize`."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from anyio.from_thread import start_blocking_portal

from harness.client.target.host import run_briefly
from harness.client.target.process import environment
from harness.client.target.profile import Profile, fill
from harness.client.target.program import find_program, with_absolute_paths
from harness.client.target.run_folders import base_folder
from harness.errors import UsageError
from harness.play.bench import open_bench
from harness.play.session.server_name import server_name
from harness.play.session.servers import SetupFailed
from harness.protocol.spec.book import Book
from harness.scenario.loader import load_text

_HELLO = """
title: what the server says of itself
client:
  - request: {method: thread/loaded/list, params: {}, expect: any}
"""


def ask_release(profile: Profile, book: Book, *, scale: float = 1.0) -> str:
    """Return the release that the profile's server names, "" if it names none."""
    for command in (profile.command, profile.exec.command):
        if command and (release := _ask_command(profile, command)):
            return release
    return _ask_server(profile, book, scale) if profile.command else ""


def _ask_command(profile: Profile, command: Sequence[str]) -> str:
    """Return the release that the version command prints, "" if there is none."""
    words = fill(profile.version.command, {"program": command[0]})
    if not words:
        return ""
    try:
        program = with_absolute_paths(find_program(words))
    except UsageError:  # A run with this program says why.
        return ""
    with tempfile.TemporaryDirectory() as home:
        env = environment({}, Path(home), profile.home_env, confined=profile.is_confined)
        confinement = profile.confinement(Path(home))
        words = program if confinement is None else confinement.brief_command(program)
        status, text = run_briefly(words, env)
    return profile.version.find_release(text) if status == 0 else ""


def _ask_server(profile: Profile, book: Book, scale: float) -> str:
    """Return the release in the answer to `initialize`, "" if there is none."""
    try:
        find_program(profile.command)
    except UsageError:  # A run says why.
        return ""
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            open_bench(profile, book, base=base_folder(), worker="release", scale=scale)
        ) as bench,
    ):
        try:
            trace = portal.call(bench.run, load_text(_HELLO, name="release")).trace
        except SetupFailed as failed:  # A run says why.
            trace = failed.trace
    return profile.version.find_release(server_name(trace))
