"""What a model call asked for, as far as rules judge it: the data of the mark `model-call`.

Here: a few small values out of a call's body, in the words of the Responses API. Not here: whether
they are right (rules), and the body itself, which may be large and stays with the audit.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from harness.trace.values import dig, obj, text

# Of the user's texts, the last ones and their beginnings tell whether an input arrived.
MAX_TEXTS = 8
MAX_CHARACTERS = 200


def asked(body: Mapping[str, Any], user_texts: Sequence[str]) -> dict[str, Any]:
    """The model's name, the user's last texts, effort, summary ("" for none), and `schema`.

    `schema` is whether the call wants its answer in the form of a JSON Schema.
    """
    reasoning = obj(body.get("reasoning"))
    return {
        "model": text(body.get("model")),
        "user_texts": [said[:MAX_CHARACTERS] for said in user_texts[-MAX_TEXTS:]],
        "effort": text(reasoning.get("effort")),
        "summary": text(reasoning.get("summary")),
        "schema": dig(obj(body.get("text")), "format", "type") == "json_schema",
    }
