"""A scenario of a table as the text of a file, to be read or to begin one's own with."""

from typing import Any

import yaml

from harness.scenario.yaml12 import plain_scalar

_WIDTH = 100


class _Dumper(yaml.SafeDumper):
    """Quotes a text that YAML 1.2 would take for something else, short collections in one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        """A value that stands twice is written out twice: the loader takes no anchors."""
        return True


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if value.count("\n") > 1 and value.endswith("\n") else None
    if style is None and ("\n" in value or plain_scalar(value) != value):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)  # pyright: ignore[reportUnknownMemberType]


_Dumper.add_representer(str, _text)  # pyright: ignore[reportUnknownMemberType]


def as_text(value: dict[str, Any], origin: str, *, short: bool = False) -> str:
    """The text of a file with this value; `origin` says in a comment where it comes from.

    With `short`, what holds no other collection stands in one line, as people write scenarios.
    """
    body: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
        default_flow_style=None if short else False,
    )
    return f"# {origin}\n{body}"
