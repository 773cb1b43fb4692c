"""Reviews: the request that starts one.

The document has the items of a review and no request for one (session-protocol "ThreadItem":
enteredReviewMode, exitedReviewMode); this is the shipping server's.
"""

from typing import Annotated, Literal

from pydantic import Field

from harness.protocol.wire.base import WireModel
from harness.protocol.wire.turn import Turn


class UncommittedChanges(WireModel):
    """Uncommitted changes of the working tree."""

    type: Literal["uncommittedChanges"] = "uncommittedChanges"


class BaseBranch(WireModel):
    """Changes of the current branch that `branch` does not have."""

    type: Literal["baseBranch"] = "baseBranch"
    branch: str


class Commit(WireModel):
    """Changes of one commit; `title` is for people."""

    type: Literal["commit"] = "commit"
    sha: str
    title: str | None = None


class CustomTarget(WireModel):
    """A target that the instructions describe."""

    type: Literal["custom"] = "custom"
    instructions: str


ReviewTarget = Annotated[
    UncommittedChanges | BaseBranch | Commit | CustomTarget, Field(discriminator="type")
]
ReviewDelivery = Literal["inline", "detached"]
"""`inline` (the default) runs in the thread itself, `detached` in a new one."""


class ReviewStartParams(WireModel):
    """Params of `review/start`."""

    thread_id: str
    target: ReviewTarget
    delivery: ReviewDelivery | None = None


class ReviewStartResult(WireModel):
    """Result of `review/start`: the turn of the review, and the thread it runs in."""

    turn: Turn
    review_thread_id: str
