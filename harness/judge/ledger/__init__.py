"""The ledger: choices of a server where the specification leaves them open."""
