"""Evidence of absence that the run of a scenario can give, by its steps.

A refusal shows nothing if the scenario allows it, silence nothing if nothing was to be said.
"""

from harness.scenario.client_steps import AnswerStep, RequestStep, WaitStep
from harness.scenario.loader import Loaded
from harness.trace.views import Conversation

COMMAND_APPROVAL = "item/commandExecution/requestApproval"
FILE_CHANGE_APPROVAL = "item/fileChange/requestApproval"
_QUESTIONS = {"command-approval": COMMAND_APPROVAL, "file-change-approval": FILE_CHANGE_APPROVAL}


def refusal_shows_absence(loaded: Loaded, method: str) -> bool:
    """Return False if the scenario allows each of its requests of this method to be refused.

    A server may refuse the arguments; then the scenario goes on, and judges it.
    """
    expected = [
        step.request.expect
        for step in loaded.scenario.steps
        if isinstance(step, RequestStep) and step.request.method == method
    ]
    return not expected or "result" in expected


def silence_shows_absence(loaded: Loaded, need: str, conversation: Conversation) -> bool:
    """Return whether messages that did not come show that a capability is absent.

    They come in turns, so a scenario without one shows nothing. A missing question shows it
    only if the script waits for the question: elsewhere the server may be right not to ask, or the
    missing question is the violation that the scenario is about.
    """
    method = _QUESTIONS.get(need)
    if method is None:
        return loaded.scenario.starts_turns or bool(conversation.turns)
    return any(
        (isinstance(step, AnswerStep) and step.answer.to == method and not step.answer.standing)
        or (isinstance(step, WaitStep) and step.wait.request == method)
        for step in loaded.scenario.steps
    )
