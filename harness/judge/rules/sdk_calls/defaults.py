"""Rules on the defaults of options: the agent's binary, the current directory.

sdk-child.switches judges that skipGitRepoCheck is false by default, since it must differ from true.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Outcomes, Witness, rule
from harness.judge.rules.shared.sdk_turns import SdkRule, agent_start, option, reached_agent
from harness.judge.rules.shared.violations import absent, root_member, wrong
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
    """Judges the first turn of a thread whose client was given no path of the binary.

    The scripted agent must be started: it is the first program of its name on the driver's PATH.
    The specification says only that the option is for a binary that is not on PATH: SHOULD. Left
    open: turns that were aborted beforehand, and clients with an env of their own, which may have
    another PATH.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        if option(call, "agent", "agentPathOverride") is not None or call.number != 1:
            return
        if obj(call.request.json).get("abort") == "before" or option(call, "agent", "env"):
            return
        if call.starts:
            yield Witness(call.subject, call.frames)
            return
        name = text(obj(call.driver.json).get("agentName")) or "agent"
        expected = f"the program {literal(name)} on PATH was started"
        outcome = root_member(end, "over")
        yield absent(call.subject, call.frames, expected, "it never was", outcome)


@rule(
    "sdk-child.current-directory",
    title="Without workingDirectory the thread works in the current directory",
    level=Level.MUST,
    surface="sdk",
)
class CurrentDirectory(SdkRule):
    """Judges the first turn of a thread without workingDirectory: it runs in the driver's folder.

    It is enough if the agent gets that folder in its arguments, its variables or its input. Left
    open: how it gets it, later turns, resumed threads.
    """

    def judge_turn(self, call: Call, end: Frame) -> Outcomes:
        start, driver = agent_start(call), obj(call.driver.json)
        driver_folder = text(driver.get("cwd"))
        if (
            start is None
            or not driver_folder
            or call.number != 1
            or driver.get("resume") is not None
        ):
            return
        if option(call, "thread", "workingDirectory") is not None:
            return
        if reached_agent(call, driver_folder):
            yield Witness(call.subject, call.frames)
            return
        driver_member = root_member(call.driver, "cwd")
        expected = f"{literal(driver_folder)}, the driver's own, or a word that names it"
        yield wrong(call.subject, call.frames, start.part("cwd"), expected, also=(driver_member,))
