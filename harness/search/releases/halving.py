"""The release at which an answer changes, found by halving a list of releases.

Releases that cannot be asked are skipped, and so is a third answer that is neither end's; then the
result is a range. Halving assumes one change: it finds one of several.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

# Plays of a release whose answer is flaky; the majority counts.
PLAYS_OF_FLAKY = 3


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one play. `problem` says why there is none, "" if there is.

    `is_flaky` is whether the play itself saw different results.
    """

    state: str = ""
    problem: str = ""
    is_flaky: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """One release asked: its answer, the answers of all plays, and why it was skipped."""

    version: str
    state: str
    plays: tuple[str, ...]
    skipped: str = ""


@dataclass(slots=True)
class Halving:
    """The result. `last_old` and `first_new` are the nearest releases with different answers.

    Both are "" if the ends answer alike, or if none could be asked.
    """

    versions: Sequence[str]
    steps: list[Step] = field(default_factory=list[Step])
    last_old: str = ""
    first_new: str = ""

    @property
    def is_found(self) -> bool:
        """Return whether two releases answer differently."""
        return bool(self.first_new)

    @property
    def play_count(self) -> int:
        """Return the number of plays, including those that gave no answer."""
        return sum(max(1, len(step.plays)) for step in self.steps)

    @property
    def skipped_between(self) -> list[str]:
        """Return the releases between the two that could not tell, so that the result is a range.

        In that case the change is in one of these, or in `first_new`.
        """
        first, last = (self.versions.index(name) for name in (self.last_old, self.first_new))
        return list(self.versions[first + 1 : last])

    def state_of(self, version: str) -> str:
        """Return the answer of a release that was asked, "" for any other."""
        return next((step.state for step in self.steps if step.version == version), "")


# Asks a release for the n-th time, from 1.
Ask = Callable[[str, int], Answer]


def halve(versions: Sequence[str], ask: Ask, say: Callable[[Step], None]) -> Halving:
    """Find the change in a list of releases, the oldest first; `say` is told of each step."""
    result = Halving(versions)

    def state_at(index: int, expected: Sequence[str] = ()) -> str:
        step = _ask_release(versions[index], ask)
        if not step.skipped and expected and step.state not in expected:
            words = f"{step.state}: neither {' nor '.join(expected)}"
            step = Step(step.version, step.state, step.plays, words)
        result.steps.append(step)
        say(step)
        return "" if step.skipped else step.state

    old = new = ""
    low, high = 0, len(versions) - 1
    while low <= high and not (old := state_at(low)):
        low += 1
    while low < high and not (new := state_at(high)):
        high -= 1
    if not new or old == new:
        return result
    untried = set(range(low + 1, high))
    while between := [index for index in untried if low < index < high]:
        # The middle of what lies between the two answers, or its nearest neighbour if skipped.
        centre = (low + high) / 2
        middle = min(between, key=lambda index: (abs(index - centre), index))
        untried.discard(middle)
        state = state_at(middle, (old, new))
        if state == old:
            low = middle
        elif state == new:
            high = middle
    result.last_old, result.first_new = versions[low], versions[high]
    return result


def _ask_release(version: str, ask: Ask) -> Step:
    """Ask a release, and if the answer is flaky, until a majority of the plays agree."""
    states: list[str] = []
    for number in range(1, PLAYS_OF_FLAKY + 1):
        answer = ask(version, number)
        if answer.problem:
            return Step(version, "", tuple(states), answer.problem)
        states.append(answer.state)
        if not answer.is_flaky and len(states) == 1:
            break
        if Counter(states).most_common(1)[0][1] > PLAYS_OF_FLAKY // 2:
            break
    state, count = Counter(states).most_common(1)[0]
    if len(states) > 1 and count == 1:
        return Step(version, "", tuple(states), f"flaky, without a majority: {', '.join(states)}")
    return Step(version, state, tuple(states))
