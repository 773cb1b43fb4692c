"""Tables that hypothesis makes before its first example, made once for all forks of a process.

They are the constants in the sources of our modules, and the kinds of characters: 3.5 s of CPU if
no folder has them yet, as in each run of `harness fuzz`, which keeps files of hypothesis apart.
"""

import warnings
from functools import cache

from hypothesis import configuration
from hypothesis.internal import charmap
from hypothesis.internal.conjecture import providers


@cache
def make_tables() -> None:
    """Make the tables; where hypothesis keeps its files is still for the forks to say."""
    with warnings.catch_warnings():
        # Of files that are read before any test runs.
        warnings.simplefilter("ignore")
        providers._get_local_constants()  # pyright: ignore[reportPrivateUsage]
        charmap.charmap()
        charmap.intervals_from_codec("utf-8")
    configuration.set_hypothesis_home_dir(None)
    # A later fork may start pytest, whose plugin of hypothesis would warn of what was read here.
    configuration.notice_initialization_restarted(warn=False)
