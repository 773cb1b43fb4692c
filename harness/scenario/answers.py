"""`answers:` of a scenario for a client under test: given answers to requests of the client."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from harness.model.parts import DelayBody
from harness.model.strict import Strict

Problem = tuple[tuple[str | int, ...], str]
OUTCOMES = ("result", "error", "hold")
"""The keys of which an answer has exactly one."""
# Methods that a client sends as notifications, which have no answer.
_WITHOUT_ANSWER = ("initialized",)


class ErrorAnswer(Strict):
    """The error of an answer, as JSON-RPC has it."""

    code: int
    message: str
    data: Any = None


class FollowingNotification(Strict):
    """A notification that the client gets after the answer."""

    method: Annotated[str, Field(min_length=1)]
    params: dict[str, Any] = Field(default_factory=dict[str, Any])


class GivenAnswer(Strict):
    """One answer: a `result`, an `error`, or none as long as a gate is closed (`hold`).

    `delay` is the time before it, `notifications` follow it.
    """

    result: Any = None
    error: ErrorAnswer | None = None
    hold: Annotated[str, Field(min_length=1)] | None = None
    delay: DelayBody | None = None
    notifications: list[FollowingNotification] = Field(default_factory=list[FollowingNotification])

    @property
    def delay_seconds(self) -> float:
        """Return the seconds before the answer."""
        return 0.0 if self.delay is None else self.delay.seconds

    @property
    def is_held(self) -> bool:
        """Return whether the request stays without an answer."""
        return self.hold is not None

    @property
    def body(self) -> dict[str, Any]:
        """Return the members of the answer beside its id."""
        if self.error is None:
            return {"result": self.result}
        return {"error": self.error.model_dump(exclude_unset=True)}

    @property
    def notifications_after(self) -> list[dict[str, Any]]:
        """Return the notifications after the answer, as messages."""
        return [{"method": each.method, "params": each.params} for each in self.notifications]


def _tag(value: object) -> str:
    return "several" if isinstance(value, list) else "one"


GivenAnswers = Annotated[
    Annotated[GivenAnswer, Tag("one")]
    | Annotated[list[GivenAnswer], Field(min_length=1), Tag("several")],
    Discriminator(_tag),
]
Answers = dict[Annotated[str, Field(min_length=1)], GivenAnswers]


def answers_of(
    answers: Mapping[str, GivenAnswer | list[GivenAnswer]],
) -> dict[str, Sequence[GivenAnswer]]:
    """Return method -> answers, in the order in which they are given."""
    return {
        method: given if isinstance(given, list) else [given] for method, given in answers.items()
    }


def find_answer_mistake(
    answers: Mapping[str, GivenAnswer | list[GivenAnswer]],
) -> Problem | None:
    """Return the place and reason of the first mistake that types cannot express, or None."""
    for path, answer in _with_paths(answers):
        if path[1] in _WITHOUT_ANSWER:
            return path[:2], f"{path[1]} is a notification of the client, which has no answer"
        given = [key for key in OUTCOMES if key in answer.model_fields_set]
        if len(given) != 1:
            found = f"found {' and '.join(given)}" if given else "found none"
            return path, f"expected exactly one of {', '.join(OUTCOMES)}; {found}"
        for key in ("delay", "notifications"):
            if answer.is_held and key in answer.model_fields_set:
                return (*path, key), f"{key} goes with result or error: a held request has none"
    return None


def _with_paths(
    answers: Mapping[str, GivenAnswer | list[GivenAnswer]],
) -> Iterator[tuple[tuple[str | int, ...], GivenAnswer]]:
    for method, given in answers.items():
        if isinstance(given, list):
            for index, answer in enumerate(given):
                yield ("answers", method, index), answer
        else:
            yield ("answers", method), given
