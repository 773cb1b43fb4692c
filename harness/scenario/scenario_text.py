"""Text of a scenario file for a generated scenario."""

import re
from typing import Any

import yaml

from harness.protocol.escapes import visible_lines
from harness.scenario.yaml12 import plain_scalar

_WIDTH = 100
_UNPRINTABLE = re.compile(r"[^ -~\n]")


class _Dumper(yaml.SafeDumper):
    """YAML dumper that indents lists and quotes texts that YAML 1.2 would read as another type."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        return super().increase_indent(flow, False)

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: a repeated value is written again, since the loader rejects anchors."""
        return True


def _represent_text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    # YAML cannot escape a lone surrogate: its Python escape is written as text.
    value = value.encode("utf-8", "backslashreplace").decode()
    style = "|" if value.count("\n") > 1 and value.endswith("\n") else None
    is_odd = not value.replace("\n", "").isprintable()
    if is_odd or (style is None and ("\n" in value or plain_scalar(value) != value)):
        style = '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style)  # pyright: ignore[reportUnknownMemberType]


_Dumper.add_representer(str, _represent_text)  # pyright: ignore[reportUnknownMemberType]


def scenario_text(value: dict[str, Any], origin: str, *, short: bool = False) -> str:
    """Return the text of a file with this value; `origin` names its source in a comment.

    With `short`, collections without inner collections are on one line.
    """
    body: str = yaml.dump(
        value,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        width=_WIDTH,
        default_flow_style=None if short else False,
    )
    # Texts with unprintable characters are quoted by now; the dumper leaves some unescaped.
    body = _UNPRINTABLE.sub(_escape, body)
    comment = visible_lines(f"# {origin}").split("\n")
    head = "\n".join(line if line.startswith("#") else f"# {line}" for line in comment)
    return f"{head}\n{body}"


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
