"""A conversation at a terminal: prompt under the messages, completion, keys for approvals."""

import shutil
import signal
import sys
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.patch_stdout import patch_stdout
from prompt_toolkit.shortcuts import CompleteStyle

from harness.cli.connect.actions import Actions, is_question, question_line
from harness.cli.connect.completion import LineCompleter
from harness.cli.connect.conversation import hold_conversation
from harness.cli.connect.display import Display
from harness.cli.connect.live_server import ConnectOptions, LiveServer
from harness.cli.connect.talk import Judging
from harness.errors import TargetError, UsageError
from harness.protocol.escapes import visible
from harness.trace.frame import Frame

KEYS = {"a": "accept", "s": "acceptForSession", "d": "decline", "c": "cancel"}
"""Keys that answer an approval while the prompt is empty."""
_END_SIGNALS = (signal.SIGTERM, signal.SIGHUP)


def _write(line: str) -> None:
    # `patch_stdout` prints it above the prompt.
    sys.stdout.write(f"{line}\n")


def _width() -> int:
    return shutil.get_terminal_size().columns


async def at_terminal(options: ConnectOptions, judging: Judging, base: Path) -> int:
    """Hold the conversation at a prompt; return the exit status.

    Raises `UsageError` if the server cannot be started or reached, or its model cannot listen.
    """

    async def lines(serves: LiveServer, actions: Actions) -> bool:
        await Prompt(serves, actions, base).loop()
        return True

    with patch_stdout(raw=True):
        display = Display(
            _write, judging.book, colour=True, width=_width, deviations=judging.profile.deviations
        )
        return await hold_conversation(
            options, judging, base, display, lines, patient=False, ends=_END_SIGNALS
        )


class Prompt:
    """The prompt of one conversation."""

    def __init__(self, server: LiveServer, actions: Actions, base: Path) -> None:
        self._server = server
        self._actions = actions
        self._prefilled = ""
        self._session: PromptSession[str] = PromptSession(
            history=_history(base),
            completer=LineCompleter(server.talk.fields, self._ids_in_use),
            complete_style=CompleteStyle.MULTI_COLUMN,
            complete_while_typing=False,
            key_bindings=self._keys(),
            bottom_toolbar=self._toolbar,
        )
        server.talk.recorder.listeners.append(self._on_frame)

    async def loop(self) -> None:
        """Prompt for lines and execute them until the user ends it."""
        _write("Tab completes, :help lists the commands, Ctrl-D ends")
        _write(f"the model is at {self._server.model.url}")
        while not self._actions.has_ended:
            try:
                line = await self._session.prompt_async("> ", default=self._prefilled)
            except EOFError:
                return
            except KeyboardInterrupt:
                self._prefilled = ""
                continue
            self._prefilled = ""
            try:
                self._prefilled = await self._actions.do(line)
            except UsageError as error:
                self._server.display.note(f"  {error}", "red")

    def _ids_in_use(self) -> dict[str, str]:
        talk = self._server.talk
        ids = {"threadId": talk.thread, "turnId": talk.turn, "expectedTurnId": talk.turn}
        return {name: value for name, value in ids.items() if value}

    def _on_frame(self, frame: Frame) -> None:
        if is_question(frame):
            allowed = self._server.talk.fields.decisions(frame.method)
            self._server.display.note(question_line(frame, _with_keys(allowed)), "yellow")
        if self._session.app.is_running:
            self._session.app.invalidate()

    def _toolbar(self) -> str:
        talk, hidden = self._server.talk, self._server.display.hidden_count
        if talk.questions:
            question = talk.questions[0]
            allowed = talk.fields.decisions(question.method)
            return f" {question.method}: {'  '.join(_with_keys(allowed)) or ':answer JSON'}"
        parts = [talk.thread or "no thread yet"]
        parts += [f"{talk.turn} runs"] if talk.turn else []
        parts += [f"{len(talk.recorder.trace.frames)} messages"]
        parts += [f"{hidden} not shown, Enter goes on"] if hidden else []
        parts += [f"{len(talk.findings)} findings"] if talk.findings else []
        parts += ["the server is gone, :restart"] if talk.is_closed else []
        return visible(" " + "  |  ".join(parts))

    def _keys(self) -> KeyBindings:
        bindings = KeyBindings()

        def bind(key: str, decision: str) -> None:
            def is_answerable() -> bool:
                talk = self._server.talk
                typed = self._session.default_buffer.text
                return bool(
                    not typed
                    and talk.questions
                    and decision in talk.fields.decisions(talk.questions[0].method)
                )

            @bindings.add(key, filter=Condition(is_answerable))
            def _decide(event: KeyPressEvent) -> None:
                event.app.create_background_task(self._decide(decision))

        for key, decision in KEYS.items():
            bind(key, decision)
        return bindings

    async def _decide(self, decision: str) -> None:
        try:
            await self._actions.decide(decision)
        except (UsageError, TargetError) as error:
            self._server.display.note(f"  {error}", "red")


def _with_keys(allowed: list[str]) -> list[str]:
    """Return the decisions, each with its key: `[a] accept`."""
    keys = {decision: key for key, decision in KEYS.items()}
    return [
        f"[{keys[decision]}] {decision}" if decision in keys else decision for decision in allowed
    ]


def _history(base: Path) -> History:
    """Return the history of typed lines in `base`; one in memory if it cannot be written."""
    file = base / "connect-history"
    try:
        file.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(file))
