"""The reference server: the whole protocol, built on `harness.wire` and nothing else of the judge.

The path of a message: transport (bytes to messages) -> connection -> server -> router -> handler ->
session and engine -> outbox -> transport. `harness.backend` and `harness.scenario` are imported
only for `--scenario`.
"""

VERSION = "0.1.0"
