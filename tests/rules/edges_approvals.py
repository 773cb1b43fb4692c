"""Edges of the rules on approvals and their policies."""

from tests.rules.edge import Illegal, Legal

LEGAL: list[Legal] = []
ILLEGAL: list[Illegal] = []
