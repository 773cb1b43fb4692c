"""A generated scenario as the text of a file, to read or to start a new one from."""

from typing import Any

import yaml

from harness.scenario.yaml12 import plain_scalar

_WIDTH = 100


class _Dumper(yaml.SafeDumper):
    """Quotes texts that YAML 1.2 would read as another type; short collections on one line."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: a repeated value is written out, since the loader rejects anchors."""
        return True


def _represent_text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if value.count("\n") > 1 and value.endswith("\n") else None
    if style is None and ("\n" in value or plain_scalar(value) != value):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)  # pyright: ignore[reportUnknownMemberType]


_Dumper.add_representer(str, _represent_text)  # pyright: ignore[reportUnknownMemberType]


def scenario_text(value: dict[str, Any], origin: str, *, short: bool = False) -> str:
    """Return the text of a file with this value; `origin` names its source in a comment.

    With `short`, collections without inner collections are on one line, as people write them.
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
