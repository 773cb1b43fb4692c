"""The words of a model, as a mark of a trace.

A run of the harness writes none: there the script is known, and `ModelEnd` says what rules ask for.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from harness.trace.marks import MarkBody


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOutput(MarkBody):
    """The whole answer to a model call, written just before its `ModelEnd`.

    `call` is the number of the call as in `ModelCall`. `items` are the output items of the answer
    in order, each the JSON text of one, with secrets masked. `usage` are the tokens that were
    reported: input, of them cached, output, of them for reasoning; empty for none.
    """

    kind: ClassVar[str] = "model-said"
    call: int = 0
    items: tuple[str, ...] = ()
    usage: tuple[int, ...] = ()


MODEL_BODIES: Final[tuple[type[MarkBody], ...]] = (ModelOutput,)
