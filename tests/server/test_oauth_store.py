"""Storage of credentials: the file, the keyring, and the errors of either."""

import json
import os
import stat
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from reference_server.config.home import Home
from reference_server.config.mcp import McpServer
from reference_server.oauth import keyring_store
from reference_server.oauth.credentials import Credentials, key_of
from reference_server.oauth.failure import OAuthFailure
from reference_server.oauth.status import auth_statuses
from reference_server.oauth.store import Choice, Store

URL = "https://docs.example/mcp"
ONE = Credentials(
    server="docs",
    url=URL,
    issuer="https://login.example",
    token_endpoint="https://login.example/token",
    client_id="client-1",
    access_token="access-secret-1",
    refresh_token="refresh-secret-1",
    client_secret="client-secret-1",
    expires_at=4e9,
    scopes=("a", "b"),
)


class Keyring(ModuleType):
    """A keyring in memory in the place of the package."""

    def __init__(self) -> None:
        super().__init__("keyring")
        self.kept: dict[tuple[str, str], str] = {}
        self.asked = 0
        self.failure: BaseException | None = None

    def _begin(self) -> None:
        self.asked += 1
        if self.failure is not None:
            raise self.failure

    def get_password(self, service: str, name: str) -> str | None:
        self._begin()
        return self.kept.get((service, name))

    def set_password(self, service: str, name: str, text: str) -> None:
        self._begin()
        self.kept[service, name] = text

    def delete_password(self, service: str, name: str) -> None:
        self._begin()
        del self.kept[service, name]


class NoKeyringError(Exception):
    pass


@pytest.fixture
def keyring(monkeypatch) -> Keyring:
    made = Keyring()
    monkeypatch.setitem(sys.modules, "keyring", made)
    return made


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / ".credentials.json"


def store(home: Path, choice: Choice = "file") -> Store:
    return Store(Home(home), choice)


# The file.


def test_saved_credentials_are_found_by_name_and_address(tmp_path, path) -> None:
    store(tmp_path).save(ONE)
    assert store(tmp_path).load("docs", URL) == ONE
    assert store(tmp_path).load("docs", URL + "/other") is None
    assert store(tmp_path).load("dogs", URL) is None
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_home_that_is_not_there_is_made_private(tmp_path) -> None:
    umask = os.umask(0)
    try:
        store(tmp_path / "new").save(ONE)
    finally:
        os.umask(umask)
    modes = [stat.S_IMODE(one.stat().st_mode) for one in [tmp_path / "new", *tmp_path.rglob(".c*")]]
    assert modes == [0o700, 0o600, 0o600]


def test_a_login_takes_the_place_of_one_at_another_address(tmp_path, path) -> None:
    store(tmp_path).save(ONE)
    store(tmp_path).save(replace(ONE, url=URL + "/new"))
    assert store(tmp_path).load("docs", URL) is None
    assert len(json.loads(path.read_text())) == 1


def test_only_what_is_still_there_is_replaced(tmp_path) -> None:
    new = replace(ONE, access_token="access-secret-2")
    assert not store(tmp_path).replace(ONE, new)
    store(tmp_path).save(ONE)
    assert store(tmp_path).replace(ONE, new)
    assert not store(tmp_path).replace(ONE, new)
    assert store(tmp_path).load("docs", URL) == new


def test_the_last_logout_takes_the_file_with_it(tmp_path, path) -> None:
    store(tmp_path).save(ONE)
    store(tmp_path).save(replace(ONE, server="docs-2"))
    assert store(tmp_path).remove("docs") == (True, "")
    assert store(tmp_path).remove("docs") == (False, "")
    assert store(tmp_path).load("docs-2", URL) is not None
    assert store(tmp_path).remove("docs-2") == (True, "")
    assert not path.exists()


def test_a_half_written_file_of_a_killed_process_is_removed(tmp_path, path) -> None:
    copy = tmp_path / ".credentials.json.new"
    store(tmp_path).save(ONE)
    copy.write_text(path.read_text()[:50])
    assert store(tmp_path).remove("docs") == (True, "")
    assert [one.name for one in tmp_path.iterdir()] == [f"{path.name}.lock"]


@pytest.mark.slow
@pytest.mark.socket
def test_logins_at_once_lose_none_and_leave_nothing(tmp_path, path) -> None:
    program = (
        "import sys; from dataclasses import replace; sys.path[:0] = sys.argv[3:];"
        "from test_oauth_store import ONE, store; from pathlib import Path;"
        "[store(Path(sys.argv[1])).save(replace(ONE, server=f'{sys.argv[2]}-{n}'))"
        " for n in range(10)]"
    )
    here = str(Path(__file__).parent)
    running = [
        subprocess.Popen([sys.executable, "-c", program, str(tmp_path), str(number), here])
        for number in range(6)
    ]
    assert [one.wait(60) for one in running] == [0] * 6
    assert len(json.loads(path.read_text())) == 60
    assert sorted(one.name for one in tmp_path.iterdir()) == [path.name, f"{path.name}.lock"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"{secret-1", "it is not JSON; remove it, and log in again"),
        (b"[" * 100_000, "it is not JSON; remove it"),
        (b"\xff\xfe\xff", "it is not JSON; remove it"),
        (b'["secret-1"]', "is no JSON object; remove it"),
        (b" " * (16 * 2**20 + 1), "is larger than 16 MiB"),
    ],
    ids=["broken", "deep", "bytes", "array", "large"],
)
def test_a_file_that_cannot_be_read_is_named_and_left(tmp_path, path, content, words) -> None:
    path.write_bytes(content)
    for work in (
        lambda: store(tmp_path).load("docs", URL),
        lambda: store(tmp_path).save(ONE),
        lambda: store(tmp_path).remove("docs"),
        store(tmp_path).check,
    ):
        with pytest.raises(OAuthFailure) as failed:
            work()
        assert str(failed.value).startswith(f"{path}: {words}")
        assert "secret-1" not in str(failed.value)
    assert path.read_bytes() == content
    assert status_of(McpServer("docs", url=URL), store(tmp_path)) == "unknown"


@pytest.mark.parametrize(
    "entry", [1, None, {}, [], {"server": "docs"}, {"kept_in_keyring": 1}, {"access_token": 5}]
)
def test_an_entry_that_cannot_be_read_is_told_and_replaced_by_a_login(
    tmp_path, path, entry
) -> None:
    path.write_text(json.dumps({key_of("docs", URL): entry, "kept|x": 1}))
    if entry is not None:
        with pytest.raises(OAuthFailure, match="the credentials of `docs` cannot be used: "):
            store(tmp_path).load("docs", URL)
    assert status_of(McpServer("docs", url=URL), store(tmp_path)) == "not logged in"
    store(tmp_path).save(ONE)
    assert store(tmp_path).load("docs", URL) == ONE


def test_an_entry_moved_to_the_key_of_another_address_is_not_used(tmp_path, path) -> None:
    path.write_text(json.dumps({key_of("docs", "https://evil.example/mcp"): ONE.to_json()}))
    assert store(tmp_path).load("docs", "https://evil.example/mcp") is None


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_a_store_that_is_not_a_file_is_not_opened(tmp_path, path, kind) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text(json.dumps({key_of("docs", URL): ONE.to_json()}))
    {
        "link": lambda: path.symlink_to(elsewhere),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
    }[kind]()
    with pytest.raises(OAuthFailure, match="cannot be read"):
        store(tmp_path).load("docs", URL)
    with pytest.raises(OAuthFailure, match="cannot be read"):
        store(tmp_path).save(ONE)
    assert "docs" in elsewhere.read_text()


def test_a_disk_that_is_full_leaves_what_was_there(tmp_path, path, monkeypatch) -> None:
    store(tmp_path).save(ONE)
    before = path.read_bytes()

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OAuthFailure, match="cannot be written: No space left on device"):
        store(tmp_path).save(replace(ONE, server="other"))
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


# The keyring.


def test_with_a_keyring_the_file_holds_no_secret(tmp_path, path, keyring) -> None:
    assert store(tmp_path, "auto").save(ONE) == ""
    assert not [one for one in ONE.secrets if one in path.read_text()]
    [text] = keyring.kept.values()
    assert "access-secret-1" in text
    # Whatever the setting is by now.
    for choice in ("auto", "file", "keyring"):
        assert store(tmp_path, choice).load("docs", URL) == ONE
    assert store(tmp_path, "file").remove("docs") == (True, "")
    assert (keyring.kept, path.exists()) == ({}, False)


def test_a_server_without_a_login_asks_no_keyring(tmp_path, keyring) -> None:
    assert store(tmp_path, "auto").load("docs", URL) is None
    assert store(tmp_path, "auto").remove("docs") == (False, "")
    store(tmp_path, "keyring").save(ONE)
    asked = keyring.asked
    assert status_of(McpServer("docs", url=URL), store(tmp_path, "keyring")) == "authenticated"
    assert keyring.asked == asked


def test_another_home_is_another_set_of_logins(tmp_path, keyring) -> None:
    store(tmp_path / "a", "keyring").save(ONE)
    store(tmp_path / "b", "keyring").save(replace(ONE, access_token="access-secret-2"))
    assert store(tmp_path / "a").load("docs", URL) == ONE
    assert len(keyring.kept) == 2


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (NoKeyringError(), ""),
        (ModuleNotFoundError(), ""),
        (
            RuntimeError("access-secret-1 is locked"),
            "the keyring cannot be used (it fails (Runtime",
        ),
    ],
)
def test_without_a_keyring_that_works_the_file_has_it(tmp_path, keyring, failure, words) -> None:
    keyring.failure = failure
    said = store(tmp_path, "auto").save(ONE)
    assert said.startswith(words)
    assert (said == "") == (words == "")
    assert "access-secret-1" not in said
    assert store(tmp_path, "auto").load("docs", URL) == ONE
    assert store(tmp_path, "auto").remove("docs") == (True, "")
    with pytest.raises(OAuthFailure, match='mcp_oauth_credentials_store = "file"'):
        store(tmp_path, "keyring").save(ONE)
    assert not (tmp_path / ".credentials.json").exists()


def test_a_keyring_that_keeps_nothing_is_none(tmp_path, keyring, monkeypatch) -> None:
    monkeypatch.setattr(keyring, "set_password", lambda *_: None)
    assert store(tmp_path, "auto").save(ONE) == ""
    assert "access-secret-1" in (tmp_path / ".credentials.json").read_text()


def test_a_keyring_that_hangs_is_waited_for_once_within_its_bound(
    tmp_path, keyring, monkeypatch
) -> None:
    store(tmp_path, "keyring").save(ONE)
    never = threading.Event()
    monkeypatch.setattr(keyring_store, "PATIENCE", 0.1)
    monkeypatch.setattr(keyring, "get_password", lambda *_: never.wait(60))
    hanging = store(tmp_path, "auto")
    for _ in range(20):
        with pytest.raises(OAuthFailure, match=r"does not answer within 0\.1 seconds"):
            hanging.load("docs", URL)
    began = time.monotonic()
    assert hanging.remove("docs") == (True, "it does not answer within 0.1 seconds")
    assert time.monotonic() - began < 5
    never.set()


def test_credentials_lost_by_the_keyring_are_not_a_login(tmp_path, keyring) -> None:
    store(tmp_path, "keyring").save(ONE)
    keyring.kept.clear()
    assert store(tmp_path, "keyring").load("docs", URL) is None
    assert not store(tmp_path, "keyring").replace(ONE, ONE)


def test_renewed_credentials_stay_in_the_keyring(tmp_path, path, keyring) -> None:
    new = replace(ONE, access_token="access-secret-2")
    store(tmp_path, "keyring").save(ONE)
    assert store(tmp_path, "file").replace(ONE, new)
    assert store(tmp_path).load("docs", URL) == new
    assert "secret" not in path.read_text()


# What is said of them.


def status_of(server: McpServer, store: Store) -> str:
    """Its status without asking the server, as that of a disabled one."""
    [status] = auth_statuses([replace(server, enabled=False)], store)
    return status


@pytest.mark.parametrize(
    ("server", "status"),
    [
        (McpServer("docs", command="true"), "unsupported"),
        (McpServer("docs", url=URL, token_variable="TOKEN"), "bearer token"),
        (McpServer("docs", url=URL), "authenticated"),
        (McpServer("docs", url=URL + "/x"), "unknown"),
        (McpServer("dogs", url=URL), "unknown"),
    ],
)
def test_the_status_of_a_server(tmp_path, server, status) -> None:
    store(tmp_path).save(ONE)
    assert status_of(server, store(tmp_path)) == status


@pytest.mark.parametrize("choice", ["file", "keyring"])
@pytest.mark.parametrize(
    ("ends", "refresh", "status"),
    [
        (None, None, "authenticated"),
        (0.0, "refresh-secret-1", "authenticated"),
        (0.0, None, "not logged in"),
        (4e9, None, "authenticated"),
    ],
)
@pytest.mark.usefixtures("keyring")
def test_the_status_of_what_has_expired(tmp_path, choice, ends, refresh, status) -> None:
    store(tmp_path, choice).save(replace(ONE, expires_at=ends, refresh_token=refresh))
    assert status_of(McpServer("docs", url=URL), store(tmp_path)) == status


def test_no_secret_is_in_the_repr_of_credentials() -> None:
    assert not [one for one in ONE.secrets if one in repr(ONE)]
