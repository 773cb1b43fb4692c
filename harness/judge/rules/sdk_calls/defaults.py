"""Rules on what holds where an option is left out: the agent's binary, the current directory.

That skipGitRepoCheck is false where it is left out is judged by sdk-child.switches, since it must
differ from true.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, rule
from harness.judge.rules.shared.sdk_turns import SdkRule, given, option, reached
from harness.judge.rules.shared.violations import absent, whole, wrong
from harness.judge.verdict import Level
from harness.protocol.values import obj, text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.surface.sdk import Call


@rule(
    "sdk-child.found-on-path",
    title="Without agentPathOverride the agent is found on PATH",
    level=Level.SHOULD,
    surface="sdk",
)
class FoundOnPath(SdkRule):
    """Judges the first turn of a thread whose client was not told where the binary is.

    The scripted agent is then the first program named agent on the PATH of the driver. The text
    says only that the option is for a binary that is not on PATH: SHOULD. Left open: turns that
    were aborted beforehand, and clients with an env of their own, which may have another PATH.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        if option(call, "agent", "agentPathOverride") is not None or call.number != 1:
            return
        if obj(call.asked.json).get("abort") == "before" or option(call, "agent", "env"):
            return
        if call.started:
            yield Witness(call.subject, call.frames)
            return
        expected = "the program agent on PATH was started"
        end = whole(over, "over")
        yield absent(call.subject, call.frames, expected, "it never was", end)


@rule(
    "sdk-child.current-directory",
    title="Without workingDirectory the thread works in the current directory",
    level=Level.MUST,
    surface="sdk",
)
class CurrentDirectory(SdkRule):
    """Judges the first turn of a thread without workingDirectory: the agent is where the driver is.

    Or it is told of that folder, in its words, its variables or its input. Left open: how it is
    told, later turns, resumed threads.
    """

    def turn(self, call: Call, over: Frame) -> Outcomes:
        start, driver = given(call), obj(call.driver.json)
        here = text(driver.get("cwd"))
        if start is None or not here or call.number != 1 or driver.get("resume") is not None:
            return
        if option(call, "thread", "workingDirectory") is not None:
            return
        if reached(call, here):
            yield Witness(call.subject, call.frames)
            return
        asked = whole(call.driver, "cwd")
        expected = f"{literal(here)}, the driver's own, or a word that names it"
        yield wrong(call.subject, call.frames, start.part("cwd"), expected, also=(asked,))
