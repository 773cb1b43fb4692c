"""Runs pytest for `harness run`, in a process of its own."""

import gc
import sys
from pathlib import Path

from harness.console import exit_quietly_on_interrupt, guard_output, hold_interrupt


def main() -> None:
    """Run pytest on the arguments of the command line. Raises `SystemExit` with its status."""
    # Of what is loaded before the first scenario nearly everything stays: to look through it again
    # and again for garbage takes an eighth of the start. The plugin turns the collector on again.
    gc.disable()
    exit_quietly_on_interrupt()
    hold_interrupt(blocked=False)
    import pytest  # Takes a while; by now Ctrl-C ends the process quietly.

    guard_output(exits=False)
    arguments = sys.argv[1:]
    status = pytest.main([*_cache(arguments), *arguments])
    sys.stdout.flush()
    raise SystemExit(status)


def _cache(arguments: list[str]) -> list[str]:
    """Options for pytest's cache, which `--lf` uses: beside the traces, one per profile."""
    from harness.client.target.place import base_folder
    from harness.errors import UsageError

    target = arguments[arguments.index("--harness-target") + 1]
    try:
        base = base_folder()
    except UsageError:
        return ["-p", "no:cacheprovider"]  # The plugin reports the error.
    return ["-o", f"cache_dir={base / 'cache' / Path(target).stem}"]


if __name__ == "__main__":
    main()
