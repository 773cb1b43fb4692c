"""Files of a scenario's workspace: their form in YAML, and writing them."""

import base64
import binascii
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, Discriminator, Field, Tag

from harness.model.strict import Strict, single_key


def _check_in_workspace(path: str) -> str:
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts:
        raise ValueError(f"the path {path!r} is not inside the workspace; expected a relative one")
    return path


WorkspacePath = Annotated[str, AfterValidator(_check_in_workspace)]


def _check_mode(mode: str) -> str:
    if len(mode) != 3 or set(mode) - set("01234567"):
        raise ValueError(f'found {mode!r}; expected three octal digits in quotes, such as "755"')
    return mode


FileMode = Annotated[str, AfterValidator(_check_mode)]


def _check_base64(value: str) -> str:
    try:
        base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"found what is no base64: {error}") from None
    return value


class EncodedFile(Strict):
    """`{base64: "iVBORw0K…"}`: the bytes of a binary file."""

    base64: Annotated[str, AfterValidator(_check_base64)]


class CopiedFile(Strict):
    """`{from: tiny_mcp.py}`: a copy of a file beside the scenario's own."""

    source: WorkspacePath = Field(alias="from")


class LinkedFile(Strict):
    """`{link: notes.txt}`: a symbolic link; its target is relative to the folder of the link."""

    link: WorkspacePath


Content = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[EncodedFile, Tag("base64")]
    | Annotated[CopiedFile, Tag("from")]
    | Annotated[LinkedFile, Tag("link")],
    Discriminator(single_key),
]

ExpectedContent = Annotated[
    Annotated[str, Tag("text")]
    | Annotated[EncodedFile, Tag("base64")]
    | Annotated[LinkedFile, Tag("link")],
    Discriminator(single_key),
]


@dataclass(frozen=True, slots=True)
class WorkspaceFile:
    """A file to write: its bytes, or the target of a link; `mode` None means the default mode."""

    content: bytes = b""
    link: str | None = None
    mode: int | None = None


class Workspace(Strict):
    """Files of the private workspace before the first step: relative path -> content.

    `modes`: relative path of one of the files -> its mode in octal digits. `pipes`: named pipes,
    each a gate for commands. One that the client's side waits for is written by a command; from any
    other a command reads a line, which comes when the gate is opened.
    """

    files: dict[WorkspacePath, Content] = Field(default_factory=dict[str, Content])
    modes: dict[WorkspacePath, FileMode] = Field(default_factory=dict[str, str])
    pipes: list[WorkspacePath] = Field(default_factory=list[str])

    def contents(self, folder: Path) -> dict[str, WorkspaceFile]:
        """Return each file to write, copies from `folder`. Raises `OSError` if one is missing."""
        return {name: self._file(name, content, folder) for name, content in self.files.items()}

    def _file(self, name: str, content: Content, folder: Path) -> WorkspaceFile:
        mode = int(self.modes[name], 8) if name in self.modes else None
        match content:
            case LinkedFile():
                return WorkspaceFile(link=content.link)
            case CopiedFile():
                return WorkspaceFile((folder / content.source).read_bytes(), mode=mode)
            case _:
                return WorkspaceFile(bytes_of(content), mode=mode)


def bytes_of(content: str | EncodedFile) -> bytes:
    """Return the bytes of a text or of a file in base64."""
    return content.encode() if isinstance(content, str) else base64.b64decode(content.base64)


def furnish_workspace(
    cwd: Path, files: Mapping[str, WorkspaceFile], fill_name: Callable[[str], str] = str
) -> None:
    """Write a scenario's files into its workspace; `fill_name` replaces placeholders in names."""
    for name, file in files.items():
        path = cwd / fill_name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if file.link is not None:
            path.symlink_to(file.link)
            continue
        path.write_bytes(file.content)
        if file.mode is not None:
            os.chmod(path, file.mode)
