"""The judge's book: schemas, method and event tables, requirements, state tables.

Read it through `harness.protocol.spec.book.load_book`. Transcribed from the text of the
specification alone: nothing here may come from `harness.protocol.wire` or from any server. Imports:
standard library, PyYAML, jsonschema_rs.
"""
