"""The process in which `harness run` runs pytest."""

import gc
import sys
from pathlib import Path

from harness.console import block_interrupt, exit_quietly_on_interrupt, guard_output


def main() -> None:
    """Run pytest on the arguments of the command line. Raises `SystemExit` with its status."""
    # Nearly everything loaded before the first scenario stays; collecting garbage meanwhile takes
    # an eighth of the start. The plugin enables the collector again.
    gc.disable()
    exit_quietly_on_interrupt()
    block_interrupt(blocked=False)
    import pytest  # Slow; from here on Ctrl-C ends the process quietly.

    guard_output(exits=False)
    arguments = sys.argv[1:]
    status = pytest.main([*_cache(arguments), *arguments])
    sys.stdout.flush()
    # All commands exit with 2 for a usage error, for which pytest exits with 4.
    # An internal error of pytest's (3) is an ERROR, as any other trouble of the harness.
    statuses: dict[int, int] = {pytest.ExitCode.USAGE_ERROR: 2, pytest.ExitCode.INTERNAL_ERROR: 1}
    raise SystemExit(statuses.get(int(status), status))


def _cache(arguments: list[str]) -> list[str]:
    """Return the options for pytest's cache, used by `--lf`: beside the traces, one per profile."""
    from harness.client.target.run_folders import base_folder
    from harness.errors import UsageError

    target = arguments[arguments.index("--harness-target") + 1]
    try:
        base = base_folder()
    except UsageError:
        return ["-p", "no:cacheprovider"]  # The plugin reports the error.
    return ["-o", f"cache_dir={base / 'cache' / Path(target).stem}"]


if __name__ == "__main__":
    main()
