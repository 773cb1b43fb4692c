"""Options of every command that override config.toml: `--config`, `--enable`, `--disable`.

They may stand before the command too, as in `agent --config model=x app-server`.
"""

from argparse import ArgumentParser
from collections.abc import Sequence

OPTIONS = {"-c": "{}", "--config": "{}", "--enable": "features.{}=true"}
OPTIONS["--disable"] = "features.{}=false"


class WrongOption(ValueError):
    """A wrong option before the command; str() says why."""


def add_settings_options(parser: ArgumentParser) -> None:
    """Add the options to the parser of a command; `config` gets their values as `key=value`."""
    parser.add_argument(
        "-c",
        "--config",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a setting that takes the place of what config.toml says, such as "
        "model_providers.mine.request_max_retries=2; may be given more than once",
    )
    # Read before the command is chosen; here for its --help.
    parser.add_argument(
        "--dialect",
        metavar="NAME",
        help="speak as a release of Codex: codex-0.107, codex-0.169, one between them, or codex "
        "for the newest",
    )
    for option, value in (("--enable", "true"), ("--disable", "false")):
        parser.add_argument(
            option,
            action="append",
            dest="config",
            type=OPTIONS[option].format,
            metavar="FEATURE",
            help=f"the same as --config features.FEATURE={value}",
        )


def split_leading_options(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options before the command as `--config=KEY=VALUE`, and the words after them.

    Raises WrongOption for an unknown option or a missing value.
    """
    settings: list[str] = []
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option, value = _split_option(rest.pop(0))
        if option not in OPTIONS:
            raise WrongOption(f"there is no option {option} before the command")
        if value is None:
            if not rest:
                raise WrongOption(f"{option}: expected one argument")
            value = rest.pop(0)
        settings.append(f"--config={OPTIONS[option].format(value)}")
    return settings, rest


def _split_option(word: str) -> tuple[str, str | None]:
    """Return the name of an option, and its value if the same word holds it."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    return word[:2], word[2:].removeprefix("=") or None
