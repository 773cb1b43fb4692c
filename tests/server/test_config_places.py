"""Places of keys and values in the text of config.toml."""

import tomllib
from collections.abc import Iterator
from typing import Any, cast

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from reference_server.config.places import Places, Steps

# Two lines of each text say where the keys (k) and values (v) of the line above begin.
MARKED = """
# model = "no"
a = 1  # b = 2
k   v
"quoted key" . x = 'it'
k              k   v
b = \"\"\"
k   v
c = 1
""\\\\\"\"\"\"
d = [1, # [two
k   vv
  "x]", {e = 1, f.g = [2]},
  v     vk   v  k k   vv
]
[t . "u"]
 k   k
v = 2020-01-01 10:00:00
k   v
[[arr]]
  k
k = '''
k   v
k = 1'''
[[arr.in]]
      k
[arr.tab]
     k
q = +1e3
k   v
[[arr]]
  k
[[arr.in]]
      k
z={}
k v
"""


def unmarked() -> tuple[str, set[tuple[int, int]], set[tuple[int, int]]]:
    """The text without its marks, and the lines and columns of keys and of values."""
    lines: list[str] = []
    keys: set[tuple[int, int]] = set()
    values: set[tuple[int, int]] = set()
    for line in MARKED.splitlines()[1:]:
        if line and set(line) <= set("kv "):
            for column, mark in enumerate(line, 1):
                if mark != " ":
                    (keys if mark == "k" else values).add((len(lines), column))
        else:
            lines.append(line)
    return "\n".join(lines) + "\n", keys, values


def ways(value: object, steps: Steps = ()) -> Iterator[tuple[Steps, object]]:
    """The way to each value of a document."""
    if steps:
        yield steps, value
    if isinstance(value, dict):
        for key, inner in cast("dict[str, object]", value).items():
            yield from ways(inner, (*steps, key))
    elif isinstance(value, list):
        for index, inner in enumerate(cast("list[object]", value)):
            yield from ways(inner, (*steps, index))


def test_each_key_and_value_is_found_where_it_stands() -> None:
    text, keys, values = unmarked()
    places = Places(text)
    found = [places[steps] for steps, _ in ways(tomllib.loads(text))]
    at_keys = {places.line_and_column(one.key) for one in found}
    at_values = {places.line_and_column(one.value) for one in found}
    assert at_keys | at_values == keys | values
    assert keys <= at_keys
    assert values <= at_values


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_kind_of_line_ends_changes_no_line_and_no_column(newline: str) -> None:
    text, _, _ = unmarked()
    places = Places(text.replace("\n", newline))
    one = places["arr", 1, "in", 0, "z"]
    assert places.line_and_column(one.key) == (text[: text.index("z={}")].count("\n") + 1, 1)
    assert places.line_and_column(one.value)[1] == 3


scalars = st.one_of(
    st.text(max_size=8),
    st.integers(-9, 9),
    st.booleans(),
    st.floats(allow_nan=False, allow_infinity=False, width=16),
    st.dates(),
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), values, max_size=4))
def test_whatever_a_writer_writes_is_found(document: dict[str, Any]) -> None:
    text = tomlkit.dumps(document)
    places = Places(text)
    for steps, value in ways(tomllib.loads(text)):
        at = places[steps]
        if text[: at.key].rpartition("\n")[2].startswith("["):
            # Tables, and arrays of them, have a heading of their own there.
            assert isinstance(value, dict | list)
            continue
        # A value within an array has no key.
        key = steps[-1] if isinstance(steps[-1], str) else "it"
        begins = "" if isinstance(steps[-1], str) else "it = "
        rest = text[at.key :]
        ends = range(1, len(rest) + 1)
        assert any(_reads_as(begins + rest[:end], {key: value}) for end in ends)


def _reads_as(text: str, wanted: object) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False
