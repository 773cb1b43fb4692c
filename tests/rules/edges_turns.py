"""Edges of the rules on turns: ids, order, status, compaction, reads, steering."""

from tests.rules.edge import Illegal, Legal

LEGAL: list[Legal] = []
ILLEGAL: list[Illegal] = []
