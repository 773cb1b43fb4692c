"""The nouns of the protocol: one pydantic model per message, one table row per method.

No I/O and no behaviour: ids, order, state and persistence belong to each side's own code, and the
judge reads raw JSON against `harness.protocol.spec` instead. Imports: standard library, pydantic.
"""
