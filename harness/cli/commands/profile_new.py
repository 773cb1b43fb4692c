"""`harness profile new`: doctor's checks, a look at the server, and the file."""

import re
import tempfile
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from harness.cli.commands.doctor import examine
from harness.cli.commands.profile_draft import (
    Answers,
    default_name,
    draft_lines,
    family_hint,
    head_lines,
    observe,
    settings_lines,
)
from harness.client.target.profile import parse_profile
from harness.client.target.tomltext import steps_of
from harness.errors import UsageError
from harness.play.config import Config, configure
from harness.play.session.capability_prober import load_probes
from harness.play.session.setup_diagnosis import Check
from harness.protocol.spec.loading import load_book

Ask = Callable[[str], str]

_MODEL = "calls the model"
# The settings of `spec`, which a server with a file of its own does not read.
_OWN_FILE = 'without = ["home"]'


def write_profile(
    server_cmd: str,
    output: Path | None,
    *,
    settings: str,
    model_key: str,
    home_env: str,
    force: bool,
    ask: Ask | None,
    say: Callable[[str], None],
) -> int:
    """Write a first profile and return the exit status: 0 if the server can be judged, else 1.

    `ask` asks a person, None if there is nobody. Raises `UsageError` for what is missing then, and
    for a file that exists.
    """
    command = server_cmd or (ask("the server's command") if ask else "")
    if not command:
        raise UsageError("no server is known; give --server-cmd 'program arguments'")
    if bool(settings) != bool(model_key):
        raise UsageError("--settings FILE and --model-key KEY belong together; give both")
    name = output.stem if output else default_name(command)
    path = output or Path(f"{name}.toml")
    if path.exists() and not force:
        raise UsageError(f"{path} exists; --force writes over it, -o names another")
    answers = Answers(name, command, settings, model_key, home_env)
    config, checks = _examine(answers, say)
    if ask is not None and not settings and _lacks_model(checks):
        answers = ask_for_settings(answers, ask)
        if answers.settings:
            config, checks = _examine(answers, say)
    observed = observe(config, probes=())
    healthy = all(check.good is not False for check in checks)
    capabilities = [one.id for one in load_book().capabilities]
    text = _text(draft_lines(answers, observed, capabilities), answers)
    if observed.has_called_model:
        say("--   what it offers is tried now, for up to a minute")
        # The probes of commands and patches call the server's own tools by the rows of the draft.
        with _configure(text, answers) as config:
            observed = observe(config, probes=load_probes())
        text = _text(draft_lines(answers, observed, capabilities), answers)
    parse_profile(text, str(path), folder=path.parent)
    path.write_text(text, encoding="utf-8")
    if hint := family_hint(answers, observed):
        say(f"--   {hint}")
    say(f"{path} written; {'judge it' if healthy else 'then ask again'}:")
    say(f"     -> harness {'run' if healthy else 'doctor'} --target {path}")
    return 0 if healthy else 1


def _examine(answers: Answers, say: Callable[[str], None]) -> tuple[Config, list[Check]]:
    """Return the options of a run with the profile so far, and doctor's checks, which are said."""
    text = _text([*head_lines(answers), *settings_lines(answers)], answers)
    with _configure(text, answers) as config:
        # Its advice on what to do next is about the temporary file.
        checks = [check for check in examine(config) if not check.text.startswith("next: ")]
    for check in checks:
        say(str(check))
    return config, checks


@contextmanager
def _configure(text: str, answers: Answers) -> Generator[Config]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{answers.name}.toml"
        path.write_text(text, encoding="utf-8")
        yield configure(target=str(path))


def _text(lines: Iterable[str], answers: Answers) -> str:
    """Return the file of a profile, without the settings of `spec` if it has its own."""
    listed = list(lines)
    if answers.settings:
        first = next(index for index, line in enumerate(listed) if line.startswith("command ="))
        listed.insert(first + 1, _OWN_FILE)
    return "\n".join(listed) + "\n"


def _lacks_model(checks: Iterable[Check]) -> bool:
    return not any(check.good and _MODEL in check.text for check in checks)


def ask_for_settings(answers: Answers, ask: Ask) -> Answers:
    """Return the answers with the settings file that a person names; `UsageError` if not valid."""
    file = ask("it did not call the model; its settings file, within its home (empty: none)")
    if not file:
        return answers
    key = ask("the key in it for the model's address, such as llm.baseUrl")
    home = ask(f"the variable that names its home (empty: {answers.home_env or 'AGENT_HOME'})")
    if home and not re.fullmatch(r"\w+", home):
        raise UsageError(f"{home!r} is not the name of a variable")
    try:
        steps_of(key)
    except ValueError as error:
        raise UsageError(str(error)) from error
    return replace(answers, settings=file, model_key=key, home_env=home or answers.home_env)
