"""Skills and lists of skills in cases of which the text says nothing."""

from collections.abc import Iterator
from typing import Any, Final

from harness.judge.base import listen, on_answer
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import outcome, word
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Place
from harness.trace.trace import Mark

# The scenario whose skills are named for what is odd about them.
SCENARIO: Final = "choices/skills"


def _skills(result: Any) -> dict[str, Any]:
    return {
        text(dig(skill, "name")): skill
        for entry in arr(dig(result, "data"))
        for skill in arr(dig(entry, "skills"))
    }


@observes(
    "skill.front-matter",
    "skill.missing-sections",
    "skill.config-keys",
    "skill.broken-companion",
    "skills-list.nested",
    "skills-list.cache-life",
)
class Written(Observer):
    """Skills that the scenario has written, as a list shows them."""

    @on_answer("skills/list")
    def on_skills_list_answer(self, frame: Frame) -> Iterator[Choice]:
        """A list, and what was asked for it."""
        asked = self.scene.asked(frame)
        if asked is None or frame.kind is not Kind.RESPONSE or self.scene.scenario != SCENARIO:
            return
        params, skills = obj(asked.params), _skills(frame.result)
        if not params.get("cwds") or "twin" not in skills:
            return
        if not params.get("forceReload"):
            said = "until a reload is asked for"
            yield Choice("skills-list.cache-life", "not" if "later" in skills else said, frame)
            return
        for name in ("named-by-front-matter", "named-by-heading"):
            if name in skills:
                yield Choice("skill.front-matter", name, frame)
        said = "listed" if "bare" in skills else "not listed"
        yield Choice("skill.missing-sections", said, frame)
        shown = dig(skills.get("keys"), "interface", "displayName")
        yield Choice("skill.config-keys", word(shown), frame, "the display name")
        said = "listed" if "broken-companion" in skills else "not listed"
        yield Choice("skill.broken-companion", said, frame)
        for name, about in (("deep-two", "two folders deep"), ("deep-four", "four folders deep")):
            said = "listed" if name in skills else "not listed"
            yield Choice("skills-list.nested", said, frame, about)


@observes("skills-list.session-cwd", "skills-list.same-cwd", "skills-list.relative-root")
class Folders(Observer):
    """Entries of a list for the folders that were asked for."""

    def begin(self) -> None:
        """Nothing was seen yet."""
        self._places: dict[str, str] = {}

    @listen(("mark", Place.kind))
    def on_place(self, mark: Mark[Place]) -> None:
        """The folders of the run."""
        self._places = {folder: name for name, folder in mark.body.named().items() if folder}

    @on_answer("skills/list")
    def on_skills_list_answer(self, frame: Frame) -> Iterator[Choice]:
        """A list, and what was asked for it."""
        asked = self.scene.asked(frame)
        if asked is None:
            return
        cwds = [text(one) for one in arr(obj(asked.params).get("cwds"))]
        entries = [text(dig(entry, "cwd")) for entry in arr(dig(frame.result, "data"))]
        roots = [
            text(root)
            for one in arr(obj(asked.params).get("perCwdExtraUserRoots"))
            for root in arr(dig(one, "extraUserRoots"))
        ]
        if any(root[:1] != "/" for root in roots):
            yield Choice("skills-list.relative-root", outcome(frame), frame)
        elif not cwds and not self.scene.facts.threads:
            named = [self._places.get(one, "another folder") for one in entries]
            yield Choice("skills-list.session-cwd", ", ".join(named) or "no entry", frame)
        elif len(set(cwds)) < len(cwds):
            said = f"{len(entries)} entries for {len(cwds)}"
            yield Choice("skills-list.same-cwd", said, frame, "asked for twice")
        elif len(cwds) == 1 and cwds[0][:1] != "/":
            yield self._one(frame, cwds[0], entries, "relative")
        elif len(cwds) == 1 and cwds[0].endswith("nowhere"):
            yield self._one(frame, cwds[0], entries, "not there")

    @staticmethod
    def _one(frame: Frame, cwd: str, entries: list[str], about: str) -> Choice:
        said = outcome(frame)
        if frame.kind is Kind.RESPONSE:
            said = "an entry as it was asked" if entries == [cwd] else "another entry"
            said = said if entries else "no entry"
        return Choice("skills-list.same-cwd", said, frame, about)
