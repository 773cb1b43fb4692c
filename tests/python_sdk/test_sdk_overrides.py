"""`config` as `--config` arguments: their TOML values equal the given ones."""

import tomllib
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_sdk import Agent, ConfigError
from agent_sdk.overrides import overrides


def _read(words: list[str]) -> dict[str, Any]:
    return tomllib.loads("\n".join(words))


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, []),
        ({"show_raw_agent_reasoning": True}, ["show_raw_agent_reasoning=true"]),
        (
            {"sandbox_workspace_write": {"network_access": True, "writable_roots": ["/a"]}},
            [
                "sandbox_workspace_write.network_access=true",
                'sandbox_workspace_write.writable_roots=["/a"]',
            ],
        ),
        ({"a": {}}, ["a={}"]),
        ({"a": {"b": {}}}, ["a.b={}"]),
        ({"n": 1, "f": 1.5, "g": 1e100, "s": 'q"\\'}, ["n=1", "f=1.5", "g=1e+100", 's="q\\"\\\\"']),
        ({"a": [1, "x", {"k": 1, "a b": 2}]}, ['a=[1, "x", {k = 1, "a b" = 2}]']),
        ({"a.b": {"c": 1}, "sp ace": 2}, ['"a.b".c=1', '"sp ace"=2']),
        ({"p": Path("/x y")}, ['p="/x y"']),
        ({"t": (1, 2)}, ["t=[1, 2]"]),
        ({"o": OrderedDict(a=1)}, ["o.a=1"]),
    ],
)
def test_a_configuration_becomes_words(config: dict[str, Any], words: list[str]) -> None:
    assert overrides(config) == words


_VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab .\"'\x7f\n", min_size=1), inner)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text("ab .=[]#é", min_size=1), _VALUES, max_size=3))
def test_the_words_say_in_toml_what_was_given(config: dict[str, Any]) -> None:
    assert _read(overrides(config)) == config


def _nested(levels: int) -> dict[str, Any]:
    config: dict[str, Any] = {"a": 1}
    for _ in range(levels):
        config = {"a": config}
    return config


def _cycle() -> list[Any]:
    config: list[Any] = []
    config.append(config)
    return config


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"a": None}, "`a`"),
        ({"a": {"b": None}}, "`a.b`"),
        ({"a": [{"b": None}]}, r"`a.\[\].b`"),
        ({"a": float("nan")}, "`a`"),
        ({"a": {"b": float("inf")}}, "`a.b`"),
        ({"a": 2**63}, "`a`"),
        ({"a": b"x"}, "`a`"),
        ({"a": {1, 2}}, "`a`"),
        ({"a": object()}, "`a`"),
        ({"a": "\ud800"}, "`a`"),
        ({"": 1}, "the top"),
        ({"a": {"": 1}}, "`a`"),
        ({1: 2}, "the top"),
        (_nested(100), "deep"),
        ({"a": _cycle()}, "deep"),
        ([("a", 1)], "mapping"),
        ("a=1", "mapping"),
    ],
)
def test_values_without_a_toml_form_are_refused_with_their_path(config: Any, path: str) -> None:
    with pytest.raises(ConfigError, match=path):
        Agent(config=config)
