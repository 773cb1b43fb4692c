"""Files that the server itself may read and write for a model: the plan of its mounts."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confined import READ_ONLY, Place, a_place, workspace_write

from harness.protocol.wire.settings import DangerFullAccess, ExternalSandbox
from reference_server.sandbox.mounts import Plan, Refused
from reference_server.sandbox.sandbox import Sandbox


@pytest.fixture
def place() -> Iterator[Place]:
    with a_place(ordinary=False) as found:
        yield found


def view(place: Place, *roots: Path, workspace: Path | None = None) -> Plan:
    policy = workspace_write([str(root) for root in roots])
    found = place.sandbox.view(policy, workspace=str(workspace or place.work))
    assert found is not None
    return found


def test_a_policy_that_confines_no_files_has_no_view(place: Place) -> None:
    for policy in (DangerFullAccess(), ExternalSandbox(network_access="restricted")):
        assert place.sandbox.view(policy, workspace=str(place.work)) is None


def test_read_only_writes_nothing(place: Place) -> None:
    found = place.sandbox.view(READ_ONLY, workspace=str(place.work))
    assert found is not None
    assert not found.writable(str(place.work / "new"))
    assert found.readable(str(place.work / "link"))


def test_the_workspace_and_the_roots_are_writable(place: Place) -> None:
    found = view(place, place.extra)
    for folder, writable in ((place.work, True), (place.extra, True), (place.outside, False)):
        assert found.writable(str(folder / "sub" / "new")) is writable
        assert found.readable(str(folder / "sub" / "new"))


@pytest.mark.parametrize("path", [".git", ".git/hooks/x", "sub/.git/config", "a/b/.git"])
def test_repositories_are_readable_and_not_writable(place: Place, path: str) -> None:
    found = view(place)
    assert found.readable(str(place.work / path))
    assert not found.writable(str(place.work / path))


def test_a_file_that_is_only_called_like_it_is_writable(place: Place) -> None:
    found = view(place)
    assert found.writable(str(place.work / ".gitignore"))
    assert found.writable(str(place.work / ".github" / "workflow.yml"))


def test_a_workspace_within_a_repository_is_writable(place: Place) -> None:
    within = place.work / ".git" / "worktree"
    within.mkdir()
    assert view(place, workspace=within).writable(str(within / "new"))


@pytest.mark.parametrize("path", [".ssh/secret", ".netrc", ".agent/auth.json", ".agent/new"])
def test_secrets_and_the_agents_home_are_hidden(place: Place, path: str) -> None:
    for found in (view(place), view(place, workspace=place.home)):
        assert not found.readable(str(place.home / path))
        assert not found.writable(str(place.home / path))


def test_names_of_secrets_are_not_writable(place: Place) -> None:
    assert not (place.home / ".kube").exists()
    assert not view(place, workspace=place.home).writable(str(place.home / ".kube" / "config"))
    assert view(place, workspace=place.home).writable(str(place.home / ".bashrc"))


def test_the_agents_skills_are_readable_and_not_writable(place: Place) -> None:
    found = view(place, workspace=place.home)
    assert found.readable(str(place.agent / "skills" / "SKILL.md"))
    assert not found.writable(str(place.agent / "skills" / "SKILL.md"))


@pytest.mark.parametrize("path", ["/proc/self/environ", "/sys/kernel", "/dev/shm/a.png", "/dev"])
def test_files_of_the_kernel_are_neither_readable_nor_writable(place: Place, path: str) -> None:
    assert not view(place).readable(path)
    assert not view(place).writable(path)


def test_places_of_sockets_are_hidden(place: Place) -> None:
    assert not view(place).readable("/run/docker.sock")
    socket = place.outside / "agent.1"
    os.mknod(socket)
    sandbox = Sandbox(place.agent, place.home, environment={"SSH_AUTH_SOCK": str(socket)})
    found = sandbox.view(READ_ONLY, workspace=str(place.work))
    assert found is not None
    assert not found.readable(str(socket))
    assert found.readable(str(place.outside / "kept"))


def test_a_root_that_would_open_everything_is_refused(place: Place) -> None:
    with pytest.raises(Refused, match="everything writable"):
        view(place, Path("/"))
