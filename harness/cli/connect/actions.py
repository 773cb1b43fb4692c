"""Actions of typed lines; a mistake of the user is reported in one line and changes nothing."""

import os
from pathlib import Path
from typing import Any

from harness.cli.connect.display import Display
from harness.cli.connect.line_parser import (
    COMMANDS,
    SHORT,
    Answer,
    Command,
    Raw,
    Request,
    parse_line,
)
from harness.cli.connect.live_server import LiveServer
from harness.cli.connect.talk import Rest, Talk, question_subject
from harness.errors import TargetError, TargetGone, UsageError
from harness.scenario.model_script import load_model_script
from harness.trace.frame import Direction, Frame, Kind
from harness.trace.marks import RecorderNote
from harness.trace.nearest import did_you_mean
from harness.trace.store import save

# The last messages that :show shows.
_MAX_LAST_SHOWN = 20


class Actions:
    """Executor of typed lines. With `patient`, as for scripts, each request is awaited.

    `timeouts` counts the waits that were given up.
    """

    def __init__(self, server: LiveServer, *, patient: bool) -> None:
        self.has_ended = False
        self.timeouts = 0
        self._server = server
        self._patient = patient

    @property
    def talk(self) -> Talk:
        """The conversation."""
        return self._server.talk

    @property
    def _display(self) -> Display:
        return self._server.display

    async def do(self, line: str) -> str:
        """Execute a line; return a template for the user to edit and send, "" for none.

        Raises `UsageError` for a mistake in it.
        """
        self._display.user_spoke()
        meant = parse_line(line, self.talk.fields)
        try:
            match meant:
                case Request(method=method, params=params):
                    return await self._request(method, params)
                case Raw(raw=raw):
                    await self._after_send(await self.talk.send_raw(raw))
                case Answer():
                    await self._answer(meant)
                case Command(name=name, rest=rest):
                    await self._command(name, rest)
                case None:
                    pass
        except TargetGone as gone:
            advice = "; :restart starts it again" if not self._server.options.address else ""
            raise UsageError(f"{gone}{advice}") from gone
        return ""

    async def decide(self, decision: str) -> None:
        """Answer the oldest question. Raises `UsageError` if there is none, or for a wrong word."""
        self._display.user_spoke()
        await self._answer(Answer(decision=decision))

    async def _request(self, method: str, given_params: dict[str, Any] | None) -> str:
        params = self.talk.fill_params(method, given_params)
        missing = self.talk.missing_members(method, params)
        if missing and given_params is None:
            template = self.talk.template(method, params)
            if self._patient:
                raise UsageError(f"{method} needs {', '.join(missing)}: {method} {template}")
            return f"{method} {template}"
        if method not in self.talk.fields.methods:
            near = did_you_mean(method, self.talk.fields.methods)
            self._display.note(f"  {method} is not in the book{near}", "yellow")
        await self._after_send(await self.talk.send_request(method, params))
        return ""

    async def _after_send(self, frame: Frame) -> None:
        for wrong in self.talk.schema_errors(frame):
            self._display.note(f"  you sent what the book does not allow: {wrong}", "yellow")
        if self._patient and frame.kind is Kind.REQUEST:
            bound = self._server.options.bounds.step
            if await self.talk.wait_answer(frame, bound) is None:
                self._note_timeout(f"no answer to {frame.method} within {bound:g} s")

    async def _answer(self, answer: Answer) -> None:
        question = next(iter(self.talk.questions), None)
        if question is None and self._patient:
            question = await self.talk.wait_question(self._server.options.bounds.step)
        if question is None:
            raise UsageError("the server asks nothing now")
        if answer.refusal:
            await self.talk.refuse(question, answer.refusal)
            return
        result = answer.result
        if answer.decision:
            allowed = self.talk.fields.decisions(question.method)
            if answer.decision not in allowed:
                allowed_words = ", ".join(allowed) or "none by one word"
                raise UsageError(
                    f"{question.method} takes no {answer.decision}: by the book {allowed_words}; "
                    ":answer JSON sends what you like"
                )
            result = {"decision": answer.decision}
        await self.talk.answer(question, result)

    async def _command(self, name: str, argument: str) -> None:
        match name:
            case ":fields":
                self._show_fields(argument)
            case ":gate":
                self._open_gate(argument)
            case ":model":
                self._set_model(argument)
            case ":quit":
                self.has_ended = True
            case ":restart":
                await self._restart()
            case ":save":
                self._save(argument)
            case ":show":
                self._show(argument)
            case ":stderr":
                lines = self._server.stderr_lines(30)
                for line in lines or ["nothing was written to standard error"]:
                    self._display.note(f"  | {line}")
            case ":wait":
                await self.wait()
            case _:
                self._help()

    async def wait(self) -> Rest:
        """Wait until nothing is under way or someone must act; note and return which it is."""
        bounds = self._server.options.bounds
        state = await self.talk.wait_rest(bounds.settle, bounds.step)
        if state is Rest.SILENT:
            open_ = "; ".join(self.talk.open_duties[:3]) or "nothing"
            self._note_timeout(f"nothing came for {bounds.step:g} s, and it owes: {open_}")
        elif state is Rest.ASKS and self._patient:
            for question in self.talk.questions:
                self._display.note(f"  waits for an answer to {question.method}", "yellow")
        elif state is Rest.HELD:
            self._display.note("  an answer of the model is held; :gate NAME opens a gate")
        return state

    def _note_timeout(self, words: str) -> None:
        self.timeouts += 1
        self._display.note(f"  {words}", "red")

    def _show_fields(self, method: str) -> None:
        fields = self.talk.fields
        if method not in fields.methods:
            raise UsageError(f":fields wants a method, such as turn/start; {method!r} is none")
        members = fields.members(method)
        for member in members:
            must = " (must be there)" if member.required else ""
            self._display.note(f"  {member.name}: {member.type}{must}", "")
        if not members:
            self._display.note("  the text shows no params")

    def _open_gate(self, name: str) -> None:
        gates = self._server.model.gates
        if name:
            gates.open(name)
            return
        self._display.note(f"  waited at: {', '.join(gates.waiting) or 'none'}")

    def _set_model(self, argument: str) -> None:
        model = self._server.model
        word, _, words = argument.partition(" ")
        match word:
            case "":
                pass
            case "say":
                model.say(words or "Hello.")
            case "run":
                if not words:
                    raise UsageError(":model run COMMAND: name the command")
                model.run(words)
            case _:
                script = load_model_script(argument)
                model.script(script.scripts, script.name)
        for line in model.state():
            self._display.note(f"  {line}")

    async def _restart(self) -> None:
        try:
            await self._server.restart()
        except TargetError as error:
            raise UsageError(str(error)) from error

    def _save(self, path: str) -> None:
        if not path:
            raise UsageError(":save FILE: name the file")
        file = Path(os.path.expanduser(path))
        # This mark ends the silence that follows the last message.
        self.talk.recorder.mark(RecorderNote("saved"))
        try:
            if file.is_dir():
                raise UsageError(f"{path} is a folder; name a file")
            save(self.talk.recorder.trace, file)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
        count = len(self.talk.recorder.trace.frames)
        self._display.note(f"  {count} messages saved: harness check {path}", "")

    def _show(self, argument: str) -> None:
        trace, display = self.talk.recorder.trace, self._display
        if not argument:
            display.show_last(trace, _MAX_LAST_SHOWN)
        elif argument == "findings":
            for row, known_reason in self.talk.findings:
                display.show_finding(row, known_reason, in_full=True)
            display.note(f"  {len(self.talk.findings)} finding(s)")
        elif argument.lstrip("#").isdecimal() and int(argument.lstrip("#")) < len(trace.frames):
            display.show_whole(trace.frames[int(argument.lstrip("#"))])
        else:
            last = len(trace.frames) - 1
            raise UsageError(
                f":show {argument}: expected a message's number up to {last}, or findings"
            )

    def _help(self) -> None:
        say = self._display.note
        say("  METHOD {JSON}, or METHOD name=value …; Tab completes, and proposes members", "")
        short = "; ".join(f"{name}=… is {means}" for name, means in SHORT.items())
        say(f"  {short}", "")
        say("  a thread, a turn and a folder that are left out are those in use", "")
        say("  {…} is sent as it is; accept, acceptForSession, decline, cancel answer", "")
        for name, means in COMMANDS.items():
            say(f"  {name} {means}", "")


def question_line(question: Frame, decisions: list[str]) -> str:
    """Return the line that shows a server's question and the words that answer it."""
    words = ", ".join(decisions) or ":answer JSON"
    return f"  ? {question_subject(question)}: {words}"


def is_question(frame: Frame) -> bool:
    """Return whether a message is a request of the server."""
    return frame.kind is Kind.REQUEST and frame.direction is Direction.FROM_TARGET
