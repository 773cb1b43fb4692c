"""A mark with the answer of a real model, for recordings.

A run of the harness has none: its script is known, and `ModelEnd` has the parts that rules read.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from harness.trace.marks import MarkBody


@dataclass(frozen=True, slots=True)
class ModelPiece:
    """A piece of an item: seconds since the one before it, or since the call, and its characters.

    An item without text is one piece of 0 characters.
    """

    seconds: float
    characters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutput(MarkBody):
    """The whole answer to a model call, written just before its `ModelEnd`.

    `call` is the number of the call as in `ModelCall`. `items` are the output items of the answer
    in order, each as JSON text with secrets masked. `usage` are the reported numbers of tokens:
    input, cached input, output, reasoning output; empty if none were reported. `pieces` are how
    each item came.
    """

    kind: ClassVar[str] = "model-said"
    call: int = 0
    items: tuple[str, ...] = ()
    usage: tuple[int, ...] = ()
    pieces: tuple[tuple[ModelPiece, ...], ...] = ()


MODEL_BODIES: Final[tuple[type[MarkBody], ...]] = (ModelOutput,)
