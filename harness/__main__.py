"""The `harness` command, and `python -m harness`: Ctrl-C ends it quietly from its first moment."""

import sys


def main() -> None:
    """Run the console script."""
    if sys.version_info < (3, 11):  # noqa: UP036 - before any import of ours or of a library
        sys.stderr.write(
            f"harness: Python 3.11 or newer is needed, this is {sys.version.split()[0]}\n"
        )
        raise SystemExit(2)
    from harness.console import exit_quietly_on_interrupt

    exit_quietly_on_interrupt()
    from harness.cli.main import main as command  # Takes a while.

    command()


if __name__ == "__main__":
    main()
