"""Edits of config.toml: adding or removing a table changes no other byte."""

import re
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reference_server.agent_mcp.edits import ServerExists, add_server, remove_server
from reference_server.agent_mcp.new_server import NewServer
from reference_server.config.editing import Unwritable
from reference_server.config.load import ConfigError
from reference_server.config.text_edits import format_value, quote, remove_values, same_values

FILE = Path("config.toml")
PROGRAM = NewServer("new", ("serve", "--all", 'a "b"\\', "\x1b\x7f\u202e"), {"KEY": "v", "ä b": ""})
ADDRESS = NewServer("new", url="https://x.invalid/mcp", token_variable="TOKEN")

# Ways to write a server, each with the comment that stands in it.
FORMS = [
    '[mcp_servers.{0}]\ncommand = "{0}" # in {0}\n',
    '[mcp_servers.{0}]\n# in {0}\ntransport = {{ type = "stdio", command = "c" }}\nenv.A = "b"\n',
    '[ mcp_servers . "{0}" ]\nurl = "http://x.invalid" # in {0}\nscopes = [\n  "a", # one\n]\n',
    '[mcp_servers.{0}.transport]\ncommand = "c"\n# in {0}\n\n[mcp_servers.{0}.env]\nA = "b"\n',
    '[mcp_servers.{0}] # in {0}\n  [mcp_servers.{0}.transport]\n  command = """\n[x]\n# c\n"""\n',
]
OTHERS = [
    "[[skills.config]]\npath = '/a' # {0}\nenabled = false\n",
    "[other{0}] # it\na.b.c = [1, nan, {{ d = 2020-01-01 }}]\n",
    "[other{0}.\"mcp_servers.x\"]\nkey = '''\n[mcp_servers.new]\n'''\n",
]
BETWEEN = ["", "\n", "# keep {0}\n", "\n# keep {0}\n\n", "  \n\t# keep {0}\n", "\n\n\n"]
ROOT_OF_SERVERS = [
    "",
    'mcp_servers.d1 = {{ command = "x", args = [] }} # keep d\n',
    '[mcp_servers]\nd1.command = "x" # keep d\nd2 = {{url="http://d.invalid"}}\n',
    'mcp_servers = {{ d1 = {{ command = "x" }}, d2.command = "y", d2.args = ["z"] }} # keep d\n',
    "mcp_servers = {{}}\n",
    "[mcp_servers] # keep d\n",
]


@st.composite
def configs(draw: st.DrawFn) -> str:
    """A config.toml as somebody might have written it, in any order, with any line ends."""
    is_inline = False
    parts = [draw(st.sampled_from(BETWEEN)), 'model = "m" # keep m\n']
    if root := draw(st.sampled_from(ROOT_OF_SERVERS)):
        is_inline = root.startswith("mcp_servers = ")
        parts.append(root)
    choices = OTHERS if is_inline else [*OTHERS, *FORMS]
    for number in range(draw(st.integers(0, 4))):
        parts.append(draw(st.sampled_from(BETWEEN)).replace("{0}", f"b{number}"))
        parts.append(draw(st.sampled_from(choices)).replace("{0}", f"n{number}"))
    parts.append(draw(st.sampled_from(BETWEEN)).replace("{0}", "end"))
    text = "".join(parts).replace("{{", "{").replace("}}", "}")
    if draw(st.booleans()):
        text = text.rstrip("\n")
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def servers(text: str) -> dict[str, object]:
    return tomllib.loads(text).get("mcp_servers", {})


def rest(text: str) -> dict[str, object]:
    return {key: value for key, value in tomllib.loads(text).items() if key != "mcp_servers"}


def kept_comments(text: str) -> list[str]:
    return [line[line.index("# keep") :].rstrip() for line in text.split("\n") if "# keep" in line]


def inner_comments(text: str) -> list[str]:
    return re.findall(r"# in \w+", text)


def test_the_generator_makes_what_is_meant() -> None:
    """A text that is no TOML would prove nothing; this counts what there is."""
    for form in [*FORMS, *OTHERS, *ROOT_OF_SERVERS]:
        tomllib.loads(form.replace("{0}", "x").replace("{{", "{").replace("}}", "}"))


@given(configs(), st.sampled_from([PROGRAM, ADDRESS]))
@example("", PROGRAM)
@example("\n", PROGRAM)
@example("# only", ADDRESS)
@example("a = 1\n  ", PROGRAM)
@example("a = 1\r\nb = 2", ADDRESS)
def test_adding_and_removing_leaves_the_same_bytes(text: str, server: NewServer) -> None:
    made = add_server(FILE, text, server, replace=False)
    assert set(servers(made)) == {*servers(text), "new"}
    assert remove_server(FILE, made, "new") == text


@given(configs(), st.data())
def test_a_server_that_is_removed_takes_nothing_else_with_it(
    text: str, data: st.DataObject
) -> None:
    names = sorted(servers(text))
    if not names:
        assert remove_server(FILE, text, "n0") == text
        return
    name = data.draw(st.sampled_from(names))
    made = remove_server(FILE, text, name)
    assert servers(made) == {key: it for key, it in servers(text).items() if key != name}
    assert same_values(rest(made), rest(text))
    gone = set(kept_comments(text)) - set(kept_comments(made))
    # A comment in the line of a server is that server's.
    assert gone <= {"# keep d"}
    assert not gone or name.startswith("d")
    assert inner_comments(made) == [one for one in inner_comments(text) if one != f"# in {name}"]
    assert (made.count("\r\n") == made.count("\n")) is (
        text.count("\r\n") == text.count("\n") or "\n" not in made
    )


@given(configs(), st.data())
def test_a_server_that_is_replaced_keeps_what_add_does_not_write(
    text: str, data: st.DataObject
) -> None:
    names = sorted(servers(text))
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    given_now = NewServer(name, ("other",), {"B": "c"})
    made = add_server(FILE, text, given_now, replace=True)
    old, new = tomllib.loads(text)["mcp_servers"][name], tomllib.loads(made)["mcp_servers"][name]
    assert new == {
        **{key: it for key, it in old.items() if key == "scopes"},
        "enabled": True,
        "transport": {"type": "stdio", "command": "other", "args": []},
        "env": {"B": "c"},
    }
    assert same_values(rest(made), rest(text))
    if name.startswith("n"):
        assert kept_comments(made) == kept_comments(text)
    assert add_server(FILE, made, given_now, replace=True) == made


@pytest.mark.parametrize(
    ("text", "name", "left"),
    [
        ("# a\n\n[mcp_servers.x]\ncommand='c'\n\n# b\n[o]\n", "x", "# a\n\n# b\n[o]\n"),
        ("# a\n[mcp_servers.x]\ncommand='c'\n[o]\n", "x", "# a\n[o]\n"),
        ("[mcp_servers.x]\ncommand='c'\n\n[mcp_servers.y]\ncommand='c'\n", "x", None),
        ("[mcp_servers]\nx.command='c'\ny.command='d'\n", "x", "[mcp_servers]\ny.command='d'\n"),
        ("mcp_servers = {x = {command='c'}}", "x", "mcp_servers = {}"),
        ("mcp_servers = {x = {command='c'} , y = {}} # z", "x", "mcp_servers = {y = {}} # z"),
        ("mcp_servers = {y = {}, x.command='c', x.args=[]}", "x", "mcp_servers = {y = {}}"),
        ("mcp_servers = {y = {}, x = {}, z = {}}", "x", "mcp_servers = {y = {}, z = {}}"),
        # What is wrong can be removed, also what has a name that no server may have.
        ('[mcp_servers."a b"]\nurl = 1\n', "a b", ""),
        ("mcp_servers.x = 3\n", "x", ""),
        ("[[mcp_servers.x]]\na = 1\n\n[[mcp_servers.x]]\n", "x", ""),
    ],
)
def test_a_server_is_removed_however_it_is_written(text: str, name: str, left: str | None) -> None:
    found = remove_server(FILE, text, name)
    assert found == (left if left is not None else "\n[mcp_servers.y]\ncommand='c'\n")


def test_tables_nested_in_arrays_stay_with_their_own() -> None:
    text = "[[s.c]]\na = 1\n[s.c.t]\nb = 2\n[[s.c]]\na = 3\n[s.c.t]\nb = 4\n"
    assert remove_values(text, ("s", "c", 0)) == "[[s.c]]\na = 3\n[s.c.t]\nb = 4\n"
    assert remove_values(text, ("s", "c", 1)) == "[[s.c]]\na = 1\n[s.c.t]\nb = 2\n"


@given(st.text())
def test_any_text_is_written_so_that_it_is_read_again(text: str) -> None:
    assert tomllib.loads(f"a = {quote(text)}") == {"a": text}


scalars = st.one_of(
    st.text(), st.integers(), st.booleans(), st.floats(), st.dates(), st.times(), st.datetimes()
)


@given(st.dictionaries(st.text(), st.one_of(scalars, st.lists(scalars, max_size=3)), max_size=4))
def test_any_value_is_written_so_that_it_is_read_again(value: dict[str, object]) -> None:
    assert same_values(tomllib.loads(f"a = {format_value(value)}"), {"a": value})


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (1, 1.0), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ({"a": 1}, {}), ("a", "b")],
)
def test_different_texts_do_not_mean_the_same(one: object, other: object) -> None:
    assert not same_values(one, other)
    assert not same_values({"a": [one]}, {"a": [other]})


def test_a_server_that_is_there_is_told_with_its_place() -> None:
    with pytest.raises(ServerExists, match=r"config\.toml:3:14"):
        add_server(FILE, "a = 1\n\n[mcp_servers.new]\ncommand = 'x'\n", PROGRAM, replace=False)


@pytest.mark.parametrize("replace", [True, False])
def test_server_is_added_beside_one_that_is_wrong(replace: bool) -> None:
    wrong = "[mcp_servers.bad]\ncommand = 'x'\nurl = 'http://x'\n"
    made = add_server(FILE, wrong, PROGRAM, replace=replace)
    assert made.startswith(wrong)
    assert set(servers(made)) == {"bad", "new"}


def test_server_of_the_name_that_is_wrong_is_an_error() -> None:
    wrong = "[mcp_servers.new]\ncommand = 'x'\nurl = 'http://x'\n"
    with pytest.raises(ConfigError, match=r"config\.toml:1:14: `new` must be a table of one kind"):
        add_server(FILE, wrong, PROGRAM, replace=False)


def test_a_wrong_server_is_replaced() -> None:
    wrong = "[mcp_servers.new]\ncommand = 'x'\nurl = 'http://x' # mine\n"
    made = add_server(FILE, wrong, ADDRESS, replace=True)
    assert servers(made) == {
        "new": {
            "enabled": True,
            "transport": {"type": "streamable_http", "url": "https://x.invalid/mcp"},
            "bearer_token_env_var": "TOKEN",
        }
    }


@pytest.mark.parametrize("depth", range(100, 1000, 30))
def test_however_deeply_a_value_is_nested_it_is_changed_or_refused(depth: int) -> None:
    deep = f"a = {'[' * depth}{']' * depth}\n[mcp_servers.x]\ncommand = 'x'\n"
    with suppress(ConfigError, Unwritable):
        assert remove_server(FILE, deep, "x") == deep[: deep.index("[mcp")]
    with suppress(ConfigError, Unwritable):
        assert add_server(FILE, deep, PROGRAM, replace=False).startswith(deep)
