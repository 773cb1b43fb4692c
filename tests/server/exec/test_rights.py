"""Read permissions of root's commands, equal to the kernel's for a process without capabilities."""

import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from confined import ORDINARY, Place, a_place

from reference_server.sandbox import permissions
from reference_server.sandbox.permissions import may_read

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
WITHOUT = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", "--")
"""Words that take the capabilities from a command of root; it keeps its groups, as ours do."""


@pytest.fixture
def place() -> Iterator[Place]:
    with a_place(ordinary=False) as found:
        yield found


def made(folder: Path) -> list[Path]:
    """Files and folders of every owner, group and right that makes a difference."""
    paths: list[Path] = []
    numbers = itertools.count()
    for user, group in itertools.product((0, ORDINARY), repeat=2):
        for mode in (0o000, 0o400, 0o040, 0o004, 0o440, 0o404, 0o044, 0o444):
            path = folder / str(next(numbers))
            path.write_text("x")
            own(path, user, group, mode)
            paths.append(path)
        for mode in (0o700, 0o010, 0o001, 0o711, 0o077, 0o444):
            path = folder / str(next(numbers)) / "file"
            path.parent.mkdir()
            path.write_text("x")
            own(path.parent, user, group, mode)
            paths.append(path)
    return paths


def own(path: Path, user: int, group: int, mode: int) -> None:
    os.chown(path, user, group)
    path.chmod(mode)


def test_the_kernel_says_the_same_of_owners_groups_and_others(place: Place) -> None:
    paths = made(place.outside)
    listed = "for path; do test -r $path && cat $path >/dev/null && echo $path; done; true"
    command = [*WITHOUT, "sh", "-c", listed, "sh", *map(str, paths)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    ours = [str(path) for path in paths if may_read(str(path), path.stat())]
    assert ours == told
    assert 0 < len(told) < len(paths)


def test_of_a_file_that_is_not_looked_at_yet_only_the_way_is_judged(place: Place) -> None:
    (closed := place.outside / "closed").mkdir()
    own(closed, ORDINARY, ORDINARY, 0o700)
    assert not may_read(str(closed / "none"))
    assert may_read(str(place.outside / "none"))


def test_an_access_list_of_another_users_file_is_taken_to_refuse(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File systems without access lists exist, so the list is played."""
    (path := place.outside / "listed").write_text("x")
    own(path, ORDINARY, ORDINARY, 0o644)
    assert may_read(str(path), path.stat())
    monkeypatch.setattr(permissions.os, "listxattr", lambda *_, **__: ["system.posix_acl_access"])
    assert not may_read(str(path), path.stat())
