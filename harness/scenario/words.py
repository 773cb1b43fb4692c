"""Protocol names: methods of the wire models' table, item types of the specification's schemas.

Playing only the model's side never imports this module.
"""

from harness.protocol.spec.schemas import SchemaBook
from harness.protocol.wire.methods import METHODS, Direction
from harness.scenario.lexicon import Kind

ITEM = "item.json#/$defs/ThreadItem"
_DIRECTIONS: dict[Kind, Direction] = {
    "request": Direction.CLIENT_REQUEST,
    "notification": Direction.CLIENT_NOTIFICATION,
    "request of the server": Direction.SERVER_REQUEST,
    "notification of the server": Direction.SERVER_NOTIFICATION,
}


def protocol_words(kind: Kind, schemas: SchemaBook) -> list[str]:
    """Return the methods or item types of that kind."""
    if kind == "item type":
        return schemas.place(ITEM)[0]["properties"]["type"]["enum"]
    return [row.method for row in METHODS if row.direction is _DIRECTIONS[kind]]
