"""Evidence of missing capabilities that a scenario's run can give, depending on its steps.

A rejection shows nothing if the scenario allows it, nor does silence without a reason for messages.
"""

from harness.scenario.client_steps import AnswerStep, RequestStep, WaitStep
from harness.scenario.loader import Loaded
from harness.trace.views import Conversation

COMMAND_APPROVAL = "item/commandExecution/requestApproval"
FILE_CHANGE_APPROVAL = "item/fileChange/requestApproval"
_QUESTIONS = {"command-approval": COMMAND_APPROVAL, "file-change-approval": FILE_CHANGE_APPROVAL}


def refusal_shows_absence(loaded: Loaded, method: str) -> bool:
    """Return False if every request of this method may be answered by an error.

    A server may reject the arguments; then the scenario continues, and judges it.
    """
    expected = [
        step.request.expect
        for step in loaded.scenario.steps
        if isinstance(step, RequestStep) and step.request.method == method
    ]
    return not expected or "result" in expected


def silence_shows_absence(loaded: Loaded, need: str, conversation: Conversation) -> bool:
    """Return whether missing messages show that a capability is absent.

    They come in turns, so a scenario without one shows nothing. A missing server request shows it
    only if the script waits for that request: elsewhere the server may be right not to send it, or
    its absence is the violation that the scenario is about.
    """
    method = _QUESTIONS.get(need)
    if method is None:
        return loaded.scenario.starts_turns or bool(conversation.turns)
    return any(
        (isinstance(step, AnswerStep) and step.answer.to == method and not step.answer.standing)
        or (isinstance(step, WaitStep) and step.wait.request == method)
        for step in loaded.scenario.steps
    )
