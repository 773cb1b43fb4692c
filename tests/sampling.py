"""Sampling of test cases: some run in `make test`, the others only under a mark's make target."""

from collections.abc import Iterable
from typing import Any

import pytest
from _pytest.mark import ParameterSet


def one_in(many: int, cases: Iterable[Any], mark: pytest.MarkDecorator) -> list[ParameterSet]:
    """Return parameters for a test; all but the first of every `many` cases have the mark.

    A case of several values is a tuple.
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=[mark] if number % many else []
        )
        for number, case in enumerate(cases)
    ]
