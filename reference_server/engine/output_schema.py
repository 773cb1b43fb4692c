"""outputSchema: the JSON Schema of a turn's final message.

Here lives whether a text fits it, and the words where it does not. Source: session-protocol
"turn/start" ("constraining the final assistant message"). What becomes of a message that does not
fit is not shown: the model is told once what is wrong, and if it fails again, so does the turn.
"""

import json
from typing import Any

from reference_server.model.errors import ModelError

Fields = dict[str, Any]
OBJECTION_LIMIT = 500
"""Characters of what is said to be wrong."""


class BadSchema(ValueError):
    """An object that is no JSON Schema; str() says why."""


class OutputSchema:
    """A schema, ready to judge by. References to other documents are not followed."""

    def __init__(self, schema: Fields) -> None:
        """Compile it. Raises BadSchema."""
        # Imported where it is needed: few turns have a schema.
        import jsonschema_rs

        self.schema = schema
        try:
            self._validator = jsonschema_rs.validator_for(schema, offline=True)
        except ValueError as error:
            raise BadSchema(str(error).splitlines()[0]) from None

    def objection(self, text: str) -> str:
        """Say what is wrong with a final message, "" if nothing is."""
        try:
            value: Any = json.loads(text)
        except (ValueError, RecursionError) as error:
            return f"it is not JSON: {error}"[:OBJECTION_LIMIT]
        try:
            error = next(iter(self._validator.iter_errors(value)), None)
        except ValueError as failure:
            # Too deep to be looked through, or text that has no UTF-8 form.
            return f"it cannot be judged by the schema: {failure}"[:OBJECTION_LIMIT]
        if error is None:
            return ""
        where = "/".join(map(str, error.instance_path))
        return f"at /{where}: {error.message}"[:OBJECTION_LIMIT]


def correction(objection: str) -> Fields:
    """Tell the model what is wrong with its answer."""
    text = (
        f"Your answer does not fit the JSON Schema that was asked for: {objection}. Answer again."
    )
    return {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": text}],
    }


def schema_unmet(objection: str) -> ModelError:
    """Give the failure of a turn whose final message does not fit."""
    return ModelError("The final message does not fit outputSchema", "Other", objection)
