"""Causes of the harness's CPU time: each sampled stack has one.

Any stack with an import counts as imports. Otherwise the innermost function in `_SPECIFIC` decides,
else the innermost one in `_GENERAL`, whose functions also work on behalf of specific ones.
"""

from collections.abc import Sequence

IMPORTS, COLLECTION, PLAYING, MODEL = "imports", "collection", "playing", "the scripted model"
JUDGING, RECORDING, STORING = "judging", "choices and messages", "storing traces"
WATCHING, PROCESSES, REPORT = "process watching", "starting and ending servers", "merge and report"
PYTEST, ELSE = "pytest, with its workers", "all else"

# Substring of `path:function`, and its cause.
_SPECIFIC = (
    ("harness/judge/judge.py:judge", JUDGING),
    ("harness/judge/ledger/record.py:recorded", RECORDING),
    ("harness/trace/store.py:save", STORING),
    ("harness/client/target/run_folders.py:keep_trace", STORING),
    ("harness/client/target/process_tree.py", WATCHING),
    ("harness/client/target/descriptors.py", WATCHING),
    ("harness/play/session/process_watch.py", WATCHING),
    ("harness/client/target/process.py", PROCESSES),
    ("harness/client/target/launch.py", PROCESSES),
    ("harness/client/target/run_folders.py:furnish", PROCESSES),
    ("harness/scenario/loader.py", COLLECTION),
    ("harness/scenario/families.py", COLLECTION),
    ("harness/cli/suite/collection.py", COLLECTION),
    ("harness/cli/suite/items.py:collect", COLLECTION),
    ("_pytest/main.py:perform_collect", COLLECTION),
    ("harness/report/results/", REPORT),
    ("harness/report/", REPORT),
    ("harness/cli/suite/reporting.py", REPORT),
    ("harness/cli/suite/junit.py", REPORT),
)
_GENERAL = (
    ("harness/model/", MODEL),
    ("/uvicorn/", MODEL),
    ("harness/play/", PLAYING),
    ("harness/scenario/", PLAYING),
    ("harness/client/", PLAYING),
    ("harness/client/transport/", PLAYING),
    ("/asyncio/", PLAYING),
    ("/_pytest/", PYTEST),
    ("/pluggy/", PYTEST),
)


def cause_of(stack: Sequence[str]) -> str:
    """Return the cause of a stack, given as `path:function`, innermost first."""
    if any("importlib._bootstrap" in name for name in stack):
        return IMPORTS
    for places in (_SPECIFIC, _GENERAL):
        for name in stack:
            for place, cause in places:
                if place in name:
                    return cause
    return ELSE
