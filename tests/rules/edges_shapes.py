"""Edges of the rules on shapes, frames, parameters that are refused, settings."""

from tests.rules.edge import Illegal, Legal

LEGAL: list[Legal] = []
ILLEGAL: list[Illegal] = []
