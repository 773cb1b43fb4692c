"""Edges of the rules on what is shown: the model's answer, diffs, output, errors."""

from tests.rules.edge import Illegal, Legal

LEGAL: list[Legal] = []
ILLEGAL: list[Illegal] = []
