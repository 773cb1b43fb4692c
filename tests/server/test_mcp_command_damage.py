"""`agent mcp` with an invalid config.toml, home or output.

Whatever it is, there is one line that names file and place, an exit status that says whose mistake
it is, and the file is as it was.
"""

import os
import subprocess
from pathlib import Path

import pytest
from agent_mcp import Home

from tests.processes import COMMANDS, Said

COMMANDS_OF_EACH = (["list"], ["get", "x"], ["add", "x", "--", "c"], ["remove", "x"])
NOT_A_FILE = "{file}:1:1: is not a file; remove it, or put a file in its place"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def a_folder(home: Home) -> str:
    home.config.mkdir()
    return NOT_A_FILE


def a_pipe(home: Home) -> str:
    os.mkfifo(home.config)
    return NOT_A_FILE


def a_device(home: Home) -> str:
    home.config.symlink_to("/dev/zero")
    return NOT_A_FILE


def a_circle(home: Home) -> str:
    home.config.symlink_to(home.config)
    return "{file}:1:1: cannot be read: Too many levels of symbolic links"


def no_text(home: Home) -> str:
    home.write(b"a = '\xff'\n")
    return "{file}:1:1: is not UTF-8; save it in that encoding"


def a_huge_one(home: Home) -> str:
    home.write("a = 1\n")
    os.truncate(home.config, 1 << 36)
    return "{file}:1:1: is larger than 1024 KiB; shorten it"


def no_toml(home: Home) -> str:
    home.write('a = 1\n[mcp_servers.x\ncommand = "c"\n')
    return "{file}:2:15: Expected ']' at the end of a table declaration"


def no_table(home: Home) -> str:
    home.write("mcp_servers = 3\n")
    return "{file}:1:15: `mcp_servers` must be a table, not 3"


def a_home_that_is_a_file(home: Home) -> str:
    home.config.parent.rmdir()
    home.config.parent.write_text("")
    return "the home {home} is no folder; set HOME to one"


@pytest.mark.parametrize(
    "damage",
    [
        *(
            a_folder,
            a_pipe,
            a_device,
            a_circle,
            no_text,
            a_huge_one,
            no_toml,
            no_table,
        ),
        a_home_that_is_a_file,
    ],
)
def test_a_file_that_cannot_be_used_is_told_in_one_line(home: Home, damage) -> None:
    home.config.parent.mkdir()
    told = damage(home).format(file=home.config, home=home.config.parent)
    before = contents(home.config)
    for words in COMMANDS_OF_EACH:
        said = home.call(*words)
        words_told = told
        if damage is no_table and words[0] in ("add", "remove"):
            words_told = told.removesuffix(", not 3")
        status = 2 if damage is a_home_that_is_a_file else 1
        assert said == Said(status, "", f"agent mcp {words[0]}: {words_told}\n")
    assert contents(home.config) == before


def contents(file: Path) -> object:
    """Return size and time of a file; of a missing one the names in its folder, None without it."""
    if file.is_file():
        return file.stat().st_size, file.stat().st_mtime_ns
    return sorted(os.listdir(file.parent)) if file.parent.is_dir() else None


BAD = """\
# mine
[mcp_servers.good]
command = "c"

[mcp_servers.bad]
url = "https://me:pw-secret@bad.invalid"
args = []
env = { KEY = "v-secret" }
"""


def test_a_wrong_server_is_named_beside_the_others_and_can_be_removed(home: Home) -> None:
    home.write(BAD)
    place = f"{home.config}:5:14: `bad` must be a table of one kind"
    for words in (["list"], ["get", "good"], ["get", "bad"]):
        said = home.call(*words)
        assert said.status == (1 if words[-1] == "bad" else 0)
        assert ("good" in said.out) == (words[-1] != "bad")
        first = said.err.splitlines()[0]
        assert first.startswith(place)
        assert first.endswith("; this MCP server is left out")
        assert "secret" not in said.err
    assert home.call("add", "x", "--", "c").status == 0
    assert home.call("remove", "x").status == 0
    assert home.call("remove", "bad").status == 0
    assert home.config.read_text() == '# mine\n[mcp_servers.good]\ncommand = "c"\n'
    assert list(home.servers()) == ["good"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[mcp_servers.x]\nurl = "ftp://me:v-secret@h"', ":2:7: `url` of the MCP server `x` must"),
        ('[mcp_servers.x]\ncommand = "c"\nenv.K = 77777', ":3:9: `K` of the MCP server `x` must"),
        ('[mcp_servers.x]\ncommand = ["v-secret"]', ":2:11: `command` of the MCP server `x` must"),
        (
            '[mcp_servers.x]\nurl = "http://h"\nbearer_token_env_var = "sk-77777 v"',
            ":3:24: `bearer",
        ),
        ("[mcp_servers.'a b']\ncommand = 'c'", ":1:14: `a b` must be a name of letters, digits"),
        ("[mcp_servers.'\\u001b[2J']\n", ":1:14: `\\u001b[2J` must be a name"),
        ('[mcp_servers."\\u001b[2J"]\n', ":1:14: `\\x1b[2J` must be a name"),
    ],
)
def test_a_wrong_value_is_told_with_file_line_and_server_but_no_secret(
    home: Home, text: str, told: str
) -> None:
    home.write(text)
    said = home.call("list")
    assert said.status == 0
    assert f"{home.config}{told}" in said.err
    assert said.err[:-1].isprintable()
    assert "v-secret" not in said.err
    assert "77777" not in said.err


def test_mistakes_elsewhere_in_the_file_do_not_matter(home: Home) -> None:
    home.write("model = 3\n")
    assert home.call("add", "x", "--", "c").status == 0
    assert "\nx  " in home.call("list").out


def test_a_key_without_effect_is_told_beside_the_list(home: Home) -> None:
    home.write("[mcp_servers.x]\ncommand = 'c'\nenviron = {A = 'b'}\n")
    said = home.call("list", "--json")
    assert said.status == 0
    assert said.err.startswith(f"{home.config}:3:1: there is no key `environ` here")


def test_a_folder_in_the_place_of_the_lock_is_named(home: Home) -> None:
    home.config.parent.mkdir()
    (home.config.parent / "config.lock").mkdir()
    words = f"agent mcp add: {home.config.parent}/config.lock: Is a directory\n"
    assert home.call("add", "x", "--", "c") == Said(1, "", words)


def test_a_link_into_a_folder_that_is_not_there_is_named(home: Home, tmp_path: Path) -> None:
    home.config.parent.mkdir()
    home.config.symlink_to(tmp_path / "none" / "agent.toml")
    said = home.call("add", "x", "--", "c")
    assert said.status == 1
    assert f"{tmp_path}/none/agent.toml: cannot be written: No such file or directory" in said.err


def piped(home: Home, script: str, **environment: str) -> Said:
    """Run a shell script that calls `agent`, and return its output."""
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {script}"],
        env={"HOME": str(home.folder), "PATH": f"{COMMANDS}:{os.environ['PATH']}", **environment},
        cwd=home.folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    return Said(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.socket
def test_a_reader_that_leaves_is_no_mistake(home: Home) -> None:
    args = ", ".join(f'"{"x" * 90}"' for _ in range(10_000))
    home.write(f"[mcp_servers.x]\ncommand = 'c'\nargs = [{args}]\n")
    assert piped(home, "agent mcp list | head -c 1") == Said(0, "N", "")


@pytest.mark.slow
@pytest.mark.socket
def test_an_output_that_is_full_is_told(home: Home) -> None:
    words = "agent mcp list: standard output: No space left on device\n"
    assert piped(home, "agent mcp list > /dev/full") == Said(1, "", words)


@pytest.mark.slow
@pytest.mark.socket
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_no_mistake(home: Home, closed: str) -> None:
    assert piped(home, f"agent mcp add x -- c {closed}").status == 0
    assert list(home.servers()) == ["x"]
    assert home.config.read_text().startswith("[mcp_servers.x]")


@pytest.mark.slow
@pytest.mark.socket
def test_an_output_that_lacks_letters_gets_others_in_their_place(home: Home) -> None:
    home.write("[mcp_servers.x]\ncommand = 'é'\n")
    said = piped(home, "agent mcp get x", PYTHONIOENCODING="ascii")
    assert "  command: \\xe9\n" in said.out


@pytest.mark.slow
@pytest.mark.socket
def test_in_any_locale_names_are_what_they_are(home: Home) -> None:
    assert piped(home, "agent mcp add x -- é", LC_ALL="C").status == 0
    assert home.servers()["x"]["transport"]["command"] == "é"


def test_byte_order_mark_is_read_over_and_kept(home: Home) -> None:
    home.write("\ufeff[mcp_servers.x]\ncommand = 'c'\n")
    assert "\nx  " in home.call("list").out
    assert home.call("add", "y", "--", "d").status == 0
    assert list(home.servers()) == ["x", "y"]
    assert home.config.read_bytes().startswith(b"\xef\xbb\xbf[mcp_servers.x]")
    assert home.call("remove", "x").status == home.call("remove", "y").status == 0
    assert home.config.read_bytes().startswith(b"\xef\xbb\xbf")
    home.write("\ufeffmodel = 'm'\n[mcp_servers.x]\ncomand = 'c'\n")
    assert ":3:1: there is no key `comand`" in home.call("list").err
