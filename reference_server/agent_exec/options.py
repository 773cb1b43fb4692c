"""The command line of `agent exec`.

Only the syntax is checked: a mistake ends the command with status 2 and one line. Options may stand
before and after `resume ID`, as the SDK orders them.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, get_args

from harness.protocol.wire.settings import SandboxMode
from reference_server.agent_exec.ending import WrongUsage
from reference_server.brief import brief
from reference_server.config.arguments import add_settings_options

DESCRIPTION = """\
Run one turn without a user: the prompt is the argument, or what comes on standard input. The
progress goes to standard error, the final message to standard output. Nobody can be asked, so what
needs an approval is declined.
"""
RESUME = "resume"
SANDBOXES = tuple(mode for mode in get_args(SandboxMode) if "-" in mode)
COLORS = ("auto", "always", "never")


@dataclass(frozen=True, slots=True)
class Options:
    """Parsed command line. `prompt` is None or "-" if it comes from standard input."""

    prompt: str | None = None
    resume: str | None = None
    last: bool = False
    json: bool = False
    config: tuple[str, ...] = ()
    model: str | None = None
    sandbox: str | None = None
    cd: str | None = None
    add_dirs: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    schema: str | None = None
    last_message: str | None = None
    skip_git_repo_check: bool = False
    ephemeral: bool = False
    color: str = "auto"
    scenario: Path | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise WrongUsage(f"agent exec: {message}; see agent exec --help")


def parse(arguments: Sequence[str]) -> Options:
    """Parse the arguments after `exec`. Raises WrongUsage, and SystemExit after `--help`."""
    words, verbatim = _split_at_dashes(arguments)
    parser = _parser()
    parsed = parser.parse_intermixed_args(words)
    positional: list[str] = parsed.words
    resumed = bool(positional) and positional[0] == RESUME
    thread, prompt = _split_positional(positional, verbatim, resumed=resumed, last=parsed.last)
    if parsed.ephemeral and resumed:
        raise WrongUsage("agent exec: --ephemeral is for a new thread; the one resumed is on disk")
    if parsed.last and parsed.experimental_json:
        # A program passes a thread's id as an argument; an "id" `--last` must not select another.
        raise WrongUsage("agent exec: --last is no id of a thread; --experimental-json needs one")
    return Options(
        prompt=prompt,
        resume=thread,
        last=parsed.last,
        json=parsed.json or parsed.experimental_json,
        config=tuple(parsed.config),
        model=parsed.model,
        sandbox=parsed.sandbox,
        cd=parsed.cd,
        add_dirs=tuple(parsed.add_dir),
        images=tuple(parsed.image),
        schema=parsed.output_schema,
        last_message=parsed.output_last_message,
        skip_git_repo_check=parsed.skip_git_repo_check,
        ephemeral=parsed.ephemeral,
        color=parsed.color,
        scenario=parsed.scenario,
    )


def _split_at_dashes(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments before the first `--` and those after it, which are no options."""
    words = list(arguments)
    if "--" not in words:
        return words, []
    place = words.index("--")
    return words[:place], words[place + 1 :]


def _split_positional(
    positional: list[str], verbatim: list[str], *, resumed: bool, last: bool
) -> tuple[str | None, str | None]:
    """Return the id of the thread to resume, or None, and the prompt. Raises WrongUsage."""
    if last and not resumed:
        raise WrongUsage("agent exec: --last belongs to resume: agent exec resume --last")
    rest = [*positional, *verbatim]
    thread = None
    if resumed:
        rest = rest[1:]
        if not last:
            if not rest:
                raise WrongUsage(
                    "agent exec resume: which thread? Give its id, or --last for the newest one"
                )
            thread, rest = rest[0], rest[1:]
    if len(rest) > 1:
        raise WrongUsage(
            f"agent exec: the prompt is one argument, and {brief(rest[1])} is one more; put it in "
            "quotes"
        )
    return thread, rest[0] if rest else None


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="agent exec",
        usage="agent exec [OPTION...] [resume ID | resume --last] [PROMPT | -]",
        description=DESCRIPTION,
        allow_abbrev=False,
    )
    parser.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    add = parser.add_argument
    add("--json", action="store_true", help="write each event as a line of JSON to standard output")
    add("--experimental-json", action="store_true", help="the same; the word that the SDK uses")
    add("-m", "--model", metavar="MODEL", help="the model to ask")
    add("-s", "--sandbox", choices=SANDBOXES, metavar="MODE", help=", ".join(SANDBOXES))
    add("-C", "--cd", metavar="FOLDER", help="the working directory of the thread")
    add(
        "--add-dir",
        action="append",
        default=[],
        metavar="FOLDER",
        help="a folder that may be written too, under workspace-write; may be repeated",
    )
    add(
        "-i",
        "--image",
        action="append",
        default=[],
        metavar="FILE",
        help="an image to send with the prompt; may be repeated",
    )
    add_settings_options(parser)
    add("--output-schema", metavar="FILE", help="the JSON Schema that the final message must fit")
    add("-o", "--output-last-message", metavar="FILE", help="write the final message here too")
    add("--skip-git-repo-check", action="store_true", help="work in a folder without git too")
    add("--ephemeral", action="store_true", help="keep nothing of the thread on disk")
    add("--last", action="store_true", help="with resume: the newest thread of this folder")
    add("--color", choices=COLORS, default="auto", metavar="WHEN", help=", ".join(COLORS))
    add(
        "--scenario",
        type=Path,
        metavar="FILE|ID",
        help="play the model's side from this file, or "
        "from this bundled scenario: no model and no network are needed",
    )
    for accepted in ("--thread-source", "--cyber-access-program"):
        add(accepted, metavar="WORD", help="has no effect; newer SDKs send it")
    return parser
