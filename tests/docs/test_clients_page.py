"""The page of public clients lists the clients that `make clients` installs, by their versions.

The run behind it is of real clients and a real server, which no test starts.
"""

from __future__ import annotations

import re

from tools.clients.page import HEAD, PAGE, page, versions_of, versions_on
from tools.clients.run import Outcome, Server
from tools.clients.table import PROGRAMS, ROOT, load_clients, load_release

TEXT = PAGE.read_text("utf-8")
CLIENTS = load_clients()


def test_the_versions_of_the_page_are_those_that_are_installed() -> None:
    assert versions_on(TEXT) == versions_of(CLIENTS)
    assert versions_of(CLIENTS) == {client.name: client.version for client in CLIENTS}
    assert len(CLIENTS) >= 9


def test_every_package_has_an_exact_version() -> None:
    packages = [package for client in CLIENTS for package in client.packages]
    assert all(re.search(r"[=@]\d+(\.\d+)+$", package) for package in packages), packages


def test_the_page_says_how_it_was_made_and_with_which_remarks() -> None:
    assert TEXT.startswith(HEAD.format(release=load_release()))
    for client in CLIENTS:
        assert client.uses in TEXT
        assert client.remark in TEXT


def test_every_program_belongs_to_one_client() -> None:
    programs = sorted(path.name for path in PROGRAMS.glob("use_*"))
    assert programs == sorted(client.program for client in CLIENTS)


def test_a_difference_has_its_reason_in_the_remark() -> None:
    for client in CLIENTS:
        assert ("double" in client.remark.lower()) == bool(client.differs), client.name


def test_nothing_of_the_machine_is_on_it() -> None:
    assert not re.search(r"/(work|home|tmp|root)/|\.harness|[0-9a-f]{8}-[0-9a-f]{4}-", TEXT)


def test_the_tool_writes_such_a_page() -> None:
    client = CLIENTS[0]
    release, double = (
        Outcome(client, Server(name, ROOT, is_double=name == "double"), lines=["ok a", "ok b"])
        for name in ("release", "double")
    )
    double.lines[1] = "FAILED b: why"
    double.breaks = ("duty.answers (MUST)",)
    row = page("0.1", [(release, double)]).splitlines()[-1]
    assert "| 2 of 2 | 1 of 2 | `duty.answers` (MUST) |" in row
