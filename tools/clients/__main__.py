"""`python -m tools.clients [NAME...]`: install all, or the named, clients and run them offline."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools.clients.install import CannotInstall, install, install_release
from tools.clients.page import PAGE, page
from tools.clients.run import BIN, Outcome, Server, note_broken_duties, run
from tools.clients.table import ROOT, Client, load_clients, load_release

MAX_PROGRAMS_AT_ONCE = 4
OFFLINE = "TOOLS_CLIENTS_OFFLINE"
NO_NAMESPACE = 77
"""Exit status of tools/offline.py on a machine that refuses network namespaces."""


def main(names: list[str]) -> int:
    """Return the exit status: 1 if a check failed, or the two servers gave different results."""
    clients = [client for client in load_clients() if not names or client.name in names]
    installed, skipped = _install(clients)
    release = load_release()
    release_program = install_release(release)
    if OFFLINE not in os.environ:
        sys.stdout.writelines(f"{line}\n" for line in skipped)
        sys.stdout.flush()
        return _run_offline(names)
    servers = (
        Server("release", release_program, is_double=False),
        Server("double", BIN / "agent", is_double=True),
    )
    began = time.monotonic()
    jobs = [(client, server) for client in clients if client in installed for server in servers]

    def run_job(job: tuple[Client, Server]) -> Outcome:
        return run(*job, installed[job[0]])

    with ThreadPoolExecutor(MAX_PROGRAMS_AT_ONCE) as pool:
        outcomes = list(pool.map(run_job, jobs))
    note_broken_duties(outcomes)
    rows = list(zip(outcomes[::2], outcomes[1::2], strict=True))
    problems = [problem for row in rows for problem in _problems(*row)]
    end = f"clients: {len(rows)} on two servers in {time.monotonic() - began:.0f} s"
    for line in (*_summary(rows), *skipped, *problems, end):
        sys.stdout.write(f"{line}\n")
    if not names and not skipped:
        PAGE.write_text(page(release, rows), encoding="utf-8")
    return 1 if problems else 0


def _install(clients: list[Client]) -> tuple[dict[Client, Path], list[str]]:
    installed: dict[Client, Path] = {}
    skipped: list[str] = []
    for client in clients:
        try:
            installed[client] = install(client, is_offline=OFFLINE in os.environ)
        except CannotInstall as error:
            skipped.append(f"{client.name}: not run, {error}")
    return installed, skipped


def _run_offline(names: list[str]) -> int:
    """Run this again where only loopback exists; the release would try to reach the internet."""
    command = [sys.executable, "tools/offline.py", sys.executable, "-m", "tools.clients", *names]
    environment = {**os.environ, OFFLINE: "1"}
    status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    if status == NO_NAMESPACE:
        sys.stdout.write("clients: not run, since they run offline only\n")
        return 0
    return status


def _summary(rows: list[tuple[Outcome, Outcome]]) -> Iterator[str]:
    for row in rows:
        counts = "; ".join(
            f"{one.server.name} {one.passed_count} of {len(one.lines)} in {one.seconds:.0f} s"
            for one in row
        )
        yield f"{row[0].client.name} {row[0].client.version}: {counts}"


def _problems(release: Outcome, double: Outcome) -> Iterator[str]:
    client = release.client
    for outcome in (release, double):
        for line in outcome.failures:
            if not (outcome is double and _name_of(line) in client.differs):
                yield f"{client.name} on the {outcome.server.name}: {line}"
    differs = tuple(_name_of(line) for line in release.lines if line not in double.lines)
    if differs != client.differs and not release.failures:
        yield f"{client.name}: {list(differs)} differ; clients.toml has {list(client.differs)}"
    broken = tuple(sorted({*release.breaks, *double.breaks}))
    if broken != client.breaks:
        yield f"{client.name}: breaks {list(broken)}; clients.toml has {list(client.breaks)}"


def _name_of(line: str) -> str:
    """Return the name of the check that a line is about."""
    return line.removeprefix("ok ").removeprefix("FAILED ").partition(":")[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
