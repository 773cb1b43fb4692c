"""Dialects: how the releases of a shipping server differ from the specification, as data.

`codex.toml` is the table. A row is written once, with its evidence, and read in two ways: a server
can speak a release by it, and profiles read the names of that release. It has no behaviour, so that
the judge and a server that reads it still share none (docs/adr/0048-a-dialect-is-a-table.md).
"""
