"""Reference server of the whole protocol; it shares `harness.protocol.wire` with the harness.

The path of a message: transport (bytes to messages) -> connection -> server -> router -> handler ->
session and engine -> outbox -> transport. `harness.model` and `harness.scenario` are imported
only for `--scenario`.
"""

VERSION = "0.1.0"
