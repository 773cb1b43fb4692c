"""Places that are hidden from confined commands or read-only: secrets, sockets, our own code."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confined import (
    IDENTITIES,
    KEPT,
    ORDINARY,
    READ_ONLY,
    SECRET,
    Place,
    a_place,
    program_that_listens,
    sandboxed,
    workspace_write,
)

import reference_server
from reference_server.sandbox import places
from reference_server.sandbox import sandbox as sandbox_module
from reference_server.sandbox.mounts import Refused
from reference_server.sandbox.probe import SandboxUnavailable
from reference_server.sandbox.sandbox import Sandbox

pytestmark = sandboxed

CONFINED = (READ_ONLY, workspace_write())


@pytest.fixture(params=IDENTITIES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with a_place(ordinary=request.param != "this user") as found:
        yield found


def give(place: Place) -> None:
    """Let everything belong to the user of the place."""
    if place.ordinary:
        for path in (place.base, *place.base.rglob("*")):
            os.chown(path, ORDINARY, ORDINARY, follow_symlinks=False)


def write(path: Path, text: str = SECRET) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def run_folder(place: Place, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a stand-in for /run, with a folder of the user in which a program listens."""
    folder = place.base / "run"
    (folder / "user").mkdir(parents=True)
    give(place)
    monkeypatch.setattr(sandbox_module, "places_of_sockets", lambda: [str(folder)])
    monkeypatch.setattr(places, "_devices_of_run", lambda: {folder.stat().st_dev})
    return folder


async def test_the_folder_that_a_model_chose_opens_no_place_of_sockets(
    place: Place, run_folder: Path
) -> None:
    with program_that_listens(run_folder / "user"):
        for policy in CONFINED:
            for cwd in (run_folder / "user", run_folder):
                with pytest.raises(SandboxUnavailable, match="cannot see"):
                    await place.run("ls", policy, cwd=cwd)


async def test_a_workspace_where_programs_listen_is_refused(place: Place, run_folder: Path) -> None:
    with program_that_listens(run_folder / "user") as path:
        for policy, words in ((READ_ONLY, str(path)), (workspace_write(), str(path))):
            with pytest.raises(SandboxUnavailable, match="programs outside listen") as caught:
                await place.run("ls", policy, workspace=run_folder / "user")
            assert words in str(caught.value)
        with pytest.raises(SandboxUnavailable, match="programs outside listen"):
            await place.run("ls", workspace_write([str(run_folder)]))


async def test_a_workspace_in_a_place_of_sockets_is_seen_without_them(
    place: Place, run_folder: Path
) -> None:
    work = run_folder / "user" / "disk"
    write(work / "mine", KEPT)
    give(place)
    with program_that_listens(run_folder / "user"):
        for policy in CONFINED:
            result = await place.run("cat mine; ls -A ..", policy, workspace=work)
            assert result.output == f"{KEPT}disk\n"


async def test_the_ssh_agent_in_a_root_cannot_be_moved_out_of_its_hiding(place: Place) -> None:
    folder = place.extra / "ssh-abc"
    folder.mkdir()
    with program_that_listens(folder) as path:
        give(place)
        place.sandbox = Sandbox(place.agent, place.home, environment={"SSH_AUTH_SOCK": str(path)})
        moved = place.extra / "moved"
        policy = workspace_write([str(place.extra)])
        await place.run(f"mv {folder} {moved}", policy)
        for found in (policy, READ_ONLY):
            result = await place.run(f"test -S {path} || test -S {moved}/agent.1", found)
            assert result.exit_code == 1
        assert not moved.exists()


MORE_SECRETS = (
    ".pgpass",
    ".my.cnf",
    ".codex/auth.json",
    ".claude/.credentials.json",
    ".claude.json",
    ".config/op/config",
    ".config/rclone/rclone.conf",
    ".config/hub",
    ".terraform.d/credentials.tfrc.json",
    ".m2/settings.xml",
    ".gradle/gradle.properties",
    ".gem/credentials",
    ".composer/auth.json",
    ".boto",
    ".s3cfg",
    ".dockercfg",
    ".subversion/auth/svn.simple/1",
    ".mozilla/firefox/x/logins.json",
    ".config/google-chrome/Default/Cookies",
    ".config/chromium/Default/Cookies",
    ".thunderbird/x/logins.json",
    ".electrum/wallets/default",
    ".bitcoin/wallet.dat",
    ".git-credential-cache/socket",
    ".cache/git/credential/socket",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".local/share/fish/fish_history",
    ".local/share/python_keyring/keyring_pass.cfg",
    ".cert/nm.pem",
    ".pki/nssdb/key4.db",
    ".config/containers/auth.json",
)
NEEDED = (
    ".gitconfig",
    ".config/git/config",
    ".cargo/config.toml",
    ".m2/repository/a.jar",
    ".config/pip/pip.conf",
    ".gradle/caches/a",
    ".cache/pip/a",
    ".bashrc",
)
"""Files that a build reads; they stay readable."""


async def test_every_kind_of_secret_in_the_home_is_hidden(place: Place) -> None:
    for name in (*MORE_SECRETS, *NEEDED):
        write(place.home / name, f"{SECRET} {name}\n")
    give(place)
    names = " ".join(f"~/{name}" for name in (*MORE_SECRETS, *NEEDED))
    for policy in CONFINED:
        read = (await place.run(f"cat {names} 2> /dev/null", policy)).output
        assert read.splitlines() == [f"{SECRET} {name}" for name in NEEDED]


async def test_secrets_that_the_environment_moves_are_hidden_there(place: Place) -> None:
    moved = place.home / "moved"
    names = {
        "GNUPGHOME": ("{}", "gnupg/secring"),
        "AWS_SHARED_CREDENTIALS_FILE": ("{}", "aws-credentials"),
        "AWS_CONFIG_FILE": ("{}", "aws-config"),
        "KUBECONFIG": ("/dev/null:{}", "kube-config"),
        "DOCKER_CONFIG": ("{}", "docker/config.json"),
        "KRB5CCNAME": ("FILE:{}", "krb5cc"),
        "NETRC": ("{}", "netrc"),
        "PGPASSFILE": ("{}", "pgpass"),
        "CLOUDSDK_CONFIG": ("{}", "gcloud/credentials.db"),
        "AZURE_CONFIG_DIR": ("{}", "azure/tokens"),
        "XDG_CONFIG_HOME": ("{}", "config/gh/hosts.yml"),
        "XDG_DATA_HOME": ("{}", "data/keyrings/login.keyring"),
        "XDG_CACHE_HOME": ("{}", "cache/git/credential/socket"),
        "NPM_CONFIG_USERCONFIG": ("{}", "npmrc"),
        "CARGO_HOME": ("{}", "cargo/credentials.toml"),
        "PASSWORD_STORE_DIR": ("{}", "pass/one.gpg"),
        "HISTFILE": ("{}", "history"),
    }
    environment: dict[str, str] = {}
    for variable, (value, name) in names.items():
        write(moved / name)
        folders = name.split("/")[:1] if "/" in name else [name]
        environment[variable] = value.format(moved / folders[0])
    write(moved / "config" / "git" / "config", KEPT)
    give(place)
    place.sandbox = Sandbox(
        place.agent,
        place.home,
        environment=environment,
        root=False if place.ordinary else None,
    )
    for policy in CONFINED:
        result = await place.run(
            f"grep -rl {SECRET} {moved}; cat {moved}/config/git/config", policy
        )
        assert [line for line in result.output.splitlines() if not line.startswith("grep:")] == [
            KEPT.strip()
        ]


@pytest.mark.parametrize("value", ["/", "/tmp", "/dev/null", "{home}", "relative", ""])
async def test_a_variable_that_names_no_place_of_its_own_hides_nothing(
    place: Place, value: str
) -> None:
    environment = {"GNUPGHOME": value.format(home=place.home)}
    place.sandbox = Sandbox(
        place.agent,
        place.home,
        environment=environment,
        root=False if place.ordinary else None,
    )
    write(place.home / "notes", KEPT)
    give(place)
    assert (await place.run("cat ~/notes", READ_ONLY)).output == KEPT


async def test_the_code_of_the_server_is_not_changed_by_what_it_runs(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is installed in the project that it works on."""
    own = (
        place.work / ".venv" / "lib" / "site-packages",
        place.work / "src" / "reference_server",
        place.work / "src" / "harness",
        place.work,  # Never a root itself.
    )
    for folder in own:
        write(folder / "code.py", KEPT)
    give(place)
    monkeypatch.setattr(sandbox_module, "own_code", lambda: {str(path) for path in own})
    place.sandbox = Sandbox(place.agent, place.home, root=False if place.ordinary else None)
    script = (
        "for code in .venv/lib/site-packages src/reference_server src/harness; do"
        " echo x > $code/code.py; echo x > $code/new.py; rm -rf $code; mv $code away; done;"
        " mv src aside; mv .venv aside; echo x > src/mine; echo x > code.py"
    )
    await place.run(script, workspace_write())
    for folder in own[:3]:
        assert sorted(os.listdir(folder)) == ["code.py"]
        assert (folder / "code.py").read_text() == KEPT
    assert (place.work / "src" / "mine").exists()
    assert (place.work / "code.py").read_text() == "x\n"
    view = place.sandbox.view(workspace_write(), workspace=str(place.work))
    assert view is not None
    assert not view.writable(str(own[1] / "code.py"))
    assert view.readable(str(own[1] / "code.py"))
    assert view.writable(str(place.work / "code.py"))


def test_the_code_of_the_server_is_known() -> None:
    found = places.own_code()
    for path in (reference_server.__file__, os.__file__, pytest.__file__):
        assert path is not None
        assert any(places.is_inside(os.path.realpath(path), folder) for folder in found)
    if sys.prefix != sys.base_prefix:
        assert os.path.realpath(sys.prefix) in found


def test_of_run_only_files_of_name_servers_and_programs_stay() -> None:
    for name in places.RUN_KEPT:
        assert name.endswith("resolv.conf") or "/" not in name


async def test_a_path_that_cannot_be_followed_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For an ordinary user /proc/1/root is such a path; root has none, so `realpath` is patched."""
    refused = "/refused/path"
    follow = os.path.realpath

    def realpath(path: str, **options: bool) -> str:
        if str(path).startswith(refused):
            raise PermissionError(13, "Permission denied", path)
        return follow(path, **options)

    monkeypatch.setattr(os.path, "realpath", realpath)
    with pytest.raises(Refused, match="cannot be followed: Permission denied"):
        place.sandbox.view(workspace_write([refused]), workspace=str(place.work))
    for options in ({"cwd": Path(refused)}, {"workspace": Path(refused)}):
        with pytest.raises(SandboxUnavailable, match="cannot be followed"):
            await place.run("true", workspace_write(), **options)
