"""Reviews: the model reviews changes, in a conversation separate from the thread's.

The specification has only the items (session-protocol "ThreadItem": enteredReviewMode, a short
label; exitedReviewMode, the full plain-text review). The rest follows the shipping server, except
that the reviewer's JSON answer is not sent as a message. The plain text of the review is added to
the thread's own conversation.
"""

from typing import Any

from harness.protocol.wire.item import EnteredReviewModeItem, ExitedReviewModeItem
from harness.protocol.wire.review import (
    BaseBranch,
    Commit,
    CustomTarget,
    ReviewTarget,
    UncommittedChanges,
)
from reference_server.engine.failure import MODEL_CALLS_LIMIT, too_many_calls
from reference_server.engine.items import GrowingMessage
from reference_server.engine.prompt import request_body
from reference_server.engine.review_text import SCHEMA, review_text
from reference_server.engine.sampling import Visibility
from reference_server.engine.turn_context import TurnContext
from reference_server.words import assistant_message

Fields = dict[str, Any]

INSTRUCTIONS = (
    "You review changes that somebody else has made. Read them and what they touch; change "
    "nothing. Give what the author should fix, the worst first: defects that these changes bring "
    "in, each with the file and the lines. No findings is a good answer where there is nothing to "
    "fix. Answer in JSON alone."
)
UNFINISHED = "The review did not come to an end."


class Review:
    """One review. The constructor raises ValueError, for the client, if the target is empty."""

    def __init__(self, target: ReviewTarget) -> None:
        self.label, self._task = _describe_target(target)

    async def run(self, turn: TurnContext) -> None:
        """Have the model review, send the items, add the result to the thread's history.

        Raises ModelError or OSError, after exitedReviewMode is completed.
        """
        log, thread = turn.log, turn.thread
        entered = EnteredReviewModeItem(id=thread.new_item_id(), review=self.label)
        log.start_item(entered)
        log.complete_item(entered)
        text = UNFINISHED
        try:
            text = review_text(await self._answer(turn))
        finally:
            # A client that was sent enteredReviewMode is sent exitedReviewMode in any case.
            exited = ExitedReviewModeItem(id=thread.new_item_id(), review=text)
            log.start_item(exited)
            log.complete_item(exited)
        message = GrowingMessage(log, None)
        message.add(text)
        message.complete()
        turn.remember([_note(self.label), assistant_message(text)])

    async def _answer(self, turn: TurnContext) -> str:
        calls = turn.own_calls()
        history = [_message("user", self._task)]
        for _ in range(MODEL_CALLS_LIMIT):
            await calls.prepare()
            body = request_body(turn.thread.settings, history, calls.offers(), SCHEMA, INSTRUCTIONS)
            answer = await turn.ask(lambda body=body: body, Visibility.WORK)
            turn.count(answer)
            history += answer.history
            if not answer.calls:
                return answer.texts[-1] if answer.texts else ""
            await calls.carry_out(answer.calls, history.extend)
        raise too_many_calls("reviewer", "review")


def _describe_target(target: ReviewTarget) -> tuple[str, str]:
    """Return a target's label and the reviewer's task. Raises ValueError if a member is empty."""
    match target:
        case UncommittedChanges():
            return "current changes", (
                "Review what the working tree has and no commit: staged, unstaged and new files."
            )
        case BaseBranch(branch=branch):
            branch = _check_named("branch", branch)
            return f"changes against '{branch}'", (
                f"Review what this branch changes since it left the branch {branch}: compare with "
                f"the merge base of the two, not with the end of {branch}."
            )
        case Commit(sha=sha, title=title):
            sha = _check_named("sha", sha)
            title_suffix = f": {title}" if title else ""
            in_brackets = f" ({title})" if title else ""
            return (
                f"commit {sha[:7]}{title_suffix}",
                f"Review what the commit {sha}{in_brackets} changes.",
            )
        case CustomTarget(instructions=instructions):
            instructions = _check_named("instructions", instructions)
            return instructions, instructions


def _check_named(member: str, value: str) -> str:
    if not value.strip():
        raise ValueError(f"target.{member}: must not be empty")
    return value.strip()


def _note(label: str) -> Fields:
    return _message("developer", f"The user had a review made: {label}. Its result follows.")


def _message(role: str, text: str) -> Fields:
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}
