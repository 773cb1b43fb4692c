"""Addresses and sockets of `--listen`: valid ones, occupied ones, and leftovers."""

import os
import socket
import stat
from pathlib import Path

import pytest

from reference_server.cli.listening import ListenOptions, listen
from reference_server.cli.surroundings import UsageError
from reference_server.transport.addresses import (
    BadAddress,
    TcpAddress,
    UnixAddress,
    parse_address,
)
from reference_server.transport.listener import CannotListen, open_listener

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ws://127.0.0.1:4500", TcpAddress("127.0.0.1", 4500)),
        ("ws://127.0.0.1:0/", TcpAddress("127.0.0.1", 0)),
        ("ws://localhost:4500", TcpAddress("127.0.0.1", 4500)),
        ("ws://[::1]:4500", TcpAddress("::1", 4500)),
        ("ws://0.0.0.0:4500", TcpAddress("0.0.0.0", 4500)),
        ("unix:/run/a", UnixAddress("/run/a")),
        ("unix:///run/a", UnixAddress("/run/a")),
        ("unix://a/b", UnixAddress("a/b")),
        ("unix:a", UnixAddress("a")),
        ("ws+unix:///run/a", UnixAddress("/run/a", websocket=True)),
        ("ws+unix:a", UnixAddress("a", websocket=True)),
    ],
)
def test_an_address_is_read(text: str, address: TcpAddress | UnixAddress) -> None:
    assert parse_address(text) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "unknown kind of address"),
        ("4500", "unknown kind of address"),
        ("tcp://127.0.0.1:4500", "unknown kind of address"),
        ("wss://127.0.0.1:4500", "no TLS"),
        ("ws://127.0.0.1", "a host and a port"),
        ("ws://:4500", "a host and a port"),
        ("ws://127.0.0.1:65536", "a number up to 65535"),
        ("ws://127.0.0.1:x", "x"),
        ("ws://example.org:4500", "as an IP address"),
        ("ws://127.0.0.1.example.org:4500", "as an IP address"),
        ("ws://127.0.0.1:4500/path", "only a host and a port"),
        ("ws://me:secret@127.0.0.1:4500", "only a host and a port"),
        ("ws://[::1:4500", "IPv6"),
        ("unix:", "path of the socket is missing"),
        ("unix://", "path of the socket is missing"),
        ("unix:a\0b", "null character"),
    ],
)
def test_an_invalid_address_is_reported_in_one_line(text: str, words: str) -> None:
    with pytest.raises(BadAddress, match=words) as found:
        parse_address(text)
    assert "\n" not in str(found.value)


def opened(path: Path) -> None:
    """Listen there, and leave nothing."""
    listener = open_listener(UnixAddress(str(path)))
    assert stat.S_ISSOCK(path.lstat().st_mode)
    listener.close()
    assert not path.exists()


def refused(address: TcpAddress | UnixAddress) -> str:
    with pytest.raises(CannotListen) as found:
        open_listener(address)
    assert "\n" not in str(found.value)
    return str(found.value)


def test_the_socket_is_its_users_alone_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        listener = open_listener(UnixAddress(str(tmp_path / "s")))
        assert os.umask(0) == 0, "the umask of the process is as it was"
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "s").stat().st_mode) == 0o600
    listener.close()


def test_the_socket_of_a_server_that_has_died_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.listen()
    dead.close()
    opened(path)


def test_the_socket_of_a_server_that_lives_is_not(tmp_path: Path) -> None:
    path = tmp_path / "s"
    first = open_listener(UnixAddress(str(path)))
    assert "another server listens there" in refused(UnixAddress(str(path)))
    # Also where it has no time for more clients.
    waiting = [socket.socket(socket.AF_UNIX) for _ in range(200)]
    for one in waiting:
        one.setblocking(False)
        one.connect_ex(str(path))
    assert "another server listens there" in refused(UnixAddress(str(path)))
    for one in waiting:
        one.close()
    first.close()
    opened(path)


def test_a_datagram_socket_in_its_place_stays(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.bind(str(tmp_path / "s"))
        refused(UnixAddress(str(tmp_path / "s")))
        assert (tmp_path / "s").exists()


@pytest.mark.parametrize("kind", ["file", "folder", "link", "link to a socket", "dangling link"])
def test_a_file_that_is_not_a_socket_stays_and_is_not_followed(tmp_path: Path, kind: str) -> None:
    path, other = tmp_path / "s", tmp_path / "other"
    listener = None
    match kind:
        case "file":
            path.write_text("mine")
        case "folder":
            path.mkdir()
        case "link":
            other.write_text("mine")
            path.symlink_to(other)
        case "link to a socket":
            listener = open_listener(UnixAddress(str(other)))
            path.symlink_to(other)
        case _:
            path.symlink_to(other)
    assert "no socket" in refused(UnixAddress(str(path)))
    assert os.path.lexists(path)
    if kind == "link":
        assert other.read_text() == "mine"
    if listener is not None:
        listener.close()


def test_a_socket_that_another_server_put_there_since_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    first = open_listener(UnixAddress(str(path)))
    path.unlink()
    second = open_listener(UnixAddress(str(path)))
    first.close()
    assert path.exists()
    second.close()
    assert not path.exists()


def test_who_has_closed_once_removes_nothing_any_more(tmp_path: Path) -> None:
    """The next socket often has the number of the file that was removed."""
    path = tmp_path / "s"
    for _ in range(10):
        first = open_listener(UnixAddress(str(path)))
        first.close()
        second = open_listener(UnixAddress(str(path)))
        first.close()
        assert path.exists()
        second.close()


def test_a_path_is_as_long_as_the_system_takes(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    opened(Path("x" * 107))
    words = refused(UnixAddress("x" * 108))
    assert "at most 107 bytes" in words
    assert "108" in words
    assert "at most 107 bytes" in refused(UnixAddress("ä" * 54))


def test_no_folder_and_no_right_are_told(tmp_path: Path) -> None:
    assert f"no folder {tmp_path}/none" in refused(UnixAddress(str(tmp_path / "none" / "s")))
    (tmp_path / "file").write_text("")
    refused(UnixAddress(str(tmp_path / "file" / "s")))


@pytest.mark.socket
def test_a_port_that_is_taken_is_told_and_a_free_one_is_given() -> None:
    first = open_listener(TcpAddress("127.0.0.1", 0))
    assert isinstance(first.address, TcpAddress)
    assert first.address.port > 0
    assert "another program listens there" in refused(first.address)
    first.close()
    open_listener(first.address).close()


@pytest.mark.socket
async def test_a_short_message_does_not_wait_for_the_one_before_to_be_acknowledged() -> None:
    listener = open_listener(TcpAddress("127.0.0.1", 0))
    assert isinstance(listener.address, TcpAddress)
    address = (listener.address.host, listener.address.port)
    with socket.create_connection(address), await listener.accept() as accepted:
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert not accepted.getblocking()
    listener.close()


@pytest.mark.socket
def test_an_address_of_another_machine_is_told() -> None:
    assert "ws://192.0.2.1:4500: " in refused(TcpAddress("192.0.2.1", 4500))


@pytest.mark.parametrize("address", ["ws://0.0.0.0:0", "ws://[::]:0", "ws://192.0.2.1:0"])
def test_others_reach_a_server_only_with_a_token(address: str) -> None:
    with pytest.raises(UsageError, match="clients must have a token"):
        listen(ListenOptions(address), {})
    with pytest.raises(UsageError, match="at least 16 characters"):
        listen(ListenOptions(address, token_env="T"), {"T": "short"})


@pytest.mark.parametrize("token", ["", "x" * 15, "x" * 15 + "é", "x" * 20 + "\n", "\udc80" * 20])
def test_a_token_is_long_and_can_be_sent_in_a_header(token: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--token-env T: a token has at least 16") as found:
        listen(ListenOptions("ws://127.0.0.1:0", token_env="T"), {"T": token})
    assert not token or token not in str(found.value)


def test_a_token_comes_from_a_file_that_is_its_users_alone(tmp_path: Path) -> None:
    file = tmp_path / "token"
    options = ListenOptions("ws://127.0.0.1:0", token_file=str(file))
    with pytest.raises(UsageError, match="No such file"):
        listen(options, {})
    file.write_text(f"{TOKEN}\n")
    file.chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        listen(options, {})
    file.chmod(0o600)
    found = listen(options, {})
    assert found.admission.token == TOKEN
    found.close()


def test_over_plain_lines_there_is_no_place_for_a_token(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="here there is none"):
        listen(ListenOptions(f"unix:{tmp_path}/s", token_env="T"), {"T": TOKEN})
    found = listen(ListenOptions(f"ws+unix:{tmp_path}/s", token_env="T"), {"T": TOKEN})
    found.close()


def test_the_host_is_checked_where_only_this_machine_can_connect(tmp_path: Path) -> None:
    for address, checked in [
        ("ws://127.0.0.1:0", True),
        ("ws://0.0.0.0:0", False),
        (f"ws+unix:{tmp_path}/s", False),
    ]:
        found = listen(ListenOptions(address, token_env="T"), {"T": TOKEN})
        assert found.admission.checks_host == checked, address
        found.close()


def test_commands_are_told_no_token_and_of_what_is_hidden_from_them(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    found = listen(ListenOptions(f"ws+unix:{tmp_path}/s", token_file=str(file)), {})
    hidden = found.hidden_from_commands({"PATH": "/bin"})
    assert {str(tmp_path / "s"), str(file), "/bin"} == set(hidden.values())
    found.close()
    found = listen(ListenOptions("ws://127.0.0.1:0", token_env="T"), {"T": TOKEN})
    assert found.hidden_from_commands({"PATH": "/bin", "T": TOKEN}) == {"PATH": "/bin"}
    found.close()
