"""Facts about a machine that must be the same on the controller and on each worker of a cluster."""

import asyncio
import hashlib
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

from anyio.from_thread import start_blocking_portal

import harness
from harness.client.target.host import lacks_of
from harness.client.target.program import find_program
from harness.client.target.run_folders import base_folder
from harness.errors import UsageError
from harness.play.bench import open_bench
from harness.play.config import Config
from harness.play.session.server_name import server_name
from harness.play.session.servers import SetupFailed
from harness.report.json_form import DISTRIBUTION
from harness.scenario.bundled import bundled_folder
from harness.scenario.loader import load_text
from harness.search.worker_processes import decode_config

_HELLO = """
title: the first answer of the server
client:
  - request: {method: thread/loaded/list, params: {}, expect: any}
"""
_DIGEST_CHARACTERS = 12
_NOT_USABLE = "not usable"

Facts = Mapping[str, str]


async def facts_of_worker(config: str) -> Facts:
    """Return the facts about this worker for a run with the encoded `config`."""
    return await asyncio.to_thread(facts_of, decode_config(config))


def facts_of(config: Config) -> Facts:
    """Return the facts about this machine: versions, and the name that the server gives."""
    facts = versions_of(config)
    if config.profile.command and not facts["the server's program"].startswith(_NOT_USABLE):
        facts["the server"] = _greet(config)
    return facts


def versions_of(config: Config) -> dict[str, str]:
    """Return versions, digests of the files in the commands, and what this machine lacks."""
    profile = config.profile
    lacks = "; ".join(lack.reason for lack in lacks_of(profile))
    commands = {
        "the server's program": profile.command,
        "the agent's program": profile.exec.command,
        "the SDK's driver": profile.sdk.command,
    }
    return {
        "the harness": f"{version(DISTRIBUTION)} ({_package_digest()})",
        "Python": ".".join(map(str, sys.version_info[:2])),
        **{name: _describe_program(words) for name, words in commands.items() if words},
        "what the profile needs": lacks or "all there",
    }


def differences(worker: str, here: Facts, there: Facts) -> list[str]:
    """Return a line for each fact about a worker that is another than here."""
    return [
        f"worker {worker}: {name} is {there.get(name, 'unknown')}; expected, as here: {value}"
        for name, value in here.items()
        if there.get(name) != value
    ]


@cache
def _package_digest() -> str:
    """Return a digest of the files of the harness and of the bundled scenarios."""
    digest = hashlib.sha256()
    for folder in (Path(harness.__file__).parent, bundled_folder()):
        for file in sorted(folder.rglob("*")):
            if file.suffix in (".py", ".yaml", ".json", ".toml") and file.is_file():
                digest.update(f"{file.relative_to(folder)}\n".encode() + file.read_bytes())
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


def _describe_program(words: list[str]) -> str:
    """Return the command's program with a digest of its further files, or why it cannot be run."""
    try:
        find_program(words)
    except UsageError as error:
        return f"{_NOT_USABLE} ({error})"
    digest = hashlib.sha256()
    for file in filter(Path.is_file, map(Path, words[1:])):
        digest.update(file.read_bytes())
    return f"{words[0]} ({digest.hexdigest()[:_DIGEST_CHARACTERS]})"


def _greet(config: Config) -> str:
    """Return the name that the server gives in its handshake, or why it cannot be used."""
    base = base_folder()
    opened = open_bench(config.profile, config.book, base=base, worker="check", scale=config.scale)
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened) as bench:
        try:
            return server_name(portal.call(bench.run, load_text(_HELLO, name="check")).trace)
        except SetupFailed as failed:
            return f"{_NOT_USABLE} ({failed})"
