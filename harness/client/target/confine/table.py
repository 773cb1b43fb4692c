"""The table `[confine]` of a profile: what a confined server may use beyond its own folders."""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_UNITS = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3}


def parse_bytes(text: str) -> int:
    """Return the bytes of a text like "2G". Raises `ValueError`."""
    match = re.fullmatch(r"([0-9]+)([KMG]?)", text)
    if match is None or int(match[1]) == 0:
        raise ValueError(f'{text!r} is not a size; write "512M" or "2G"')
    return int(match[1]) * _UNITS[match[2]]


def _check_size(text: str) -> str:
    parse_bytes(text)
    return text


class Confine(BaseModel):
    """Further folders and the bounds of a confined server; paths begin in the current folder.

    `memory` and `processes` bound the server with all that it starts, `descriptors` each process.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    writable: list[str] = Field(default_factory=list[str])
    readable: list[str] = Field(default_factory=list[str])
    memory: Annotated[str, AfterValidator(_check_size)] = "4G"
    processes: int = Field(default=512, ge=1)
    descriptors: int = Field(default=4096, ge=16)
