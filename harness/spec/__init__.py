"""The judge's book: schemas, method and event tables, requirements, state tables.

Read it through `harness.spec.book.load_book`. Transcribed from the text of the specification alone:
nothing here may come from `harness.wire` or from any server. Imports: standard library, PyYAML,
jsonschema_rs.
"""
