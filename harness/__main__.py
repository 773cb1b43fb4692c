"""The `harness` command, and `python -m harness`: Ctrl-C ends it quietly from its first moment."""


def main() -> None:
    """The console script."""
    from harness.console import exit_quietly_on_interrupt

    exit_quietly_on_interrupt()
    from harness.cli.main import main as command  # Takes a while.

    command()


if __name__ == "__main__":
    main()
