"""Skills and lists of skills in cases that the specification does not cover."""

from collections.abc import Iterator
from typing import Any, Final

from harness.judge.base import listen, on_answer
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.words import outcome, word
from harness.protocol.values import arr, dig, obj, text
from harness.trace.frame import Frame, Kind
from harness.trace.marks import Place
from harness.trace.trace import Mark

# The scenario with odd skills, each named for its oddity.
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
    """Odd skills that the scenario has written, as a list shows them."""

    @on_answer("skills/list")
    def on_skills_list_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield, for each odd skill, whether it is listed and how it is named."""
        request = self.scene.request_of(frame)
        if request is None or frame.kind is not Kind.RESPONSE or self.scene.scenario != SCENARIO:
            return
        params, skills = obj(request.params), _skills(frame.result)
        if not params.get("cwds") or "twin" not in skills:
            return
        if not params.get("forceReload"):
            value = "until a reload is asked for"
            yield Choice("skills-list.cache-life", "not" if "later" in skills else value, frame)
            return
        for name in ("named-by-front-matter", "named-by-heading"):
            if name in skills:
                yield Choice("skill.front-matter", name, frame)
        value = "listed" if "bare" in skills else "not listed"
        yield Choice("skill.missing-sections", value, frame)
        display_name = dig(skills.get("keys"), "interface", "displayName")
        yield Choice("skill.config-keys", word(display_name), frame, "the display name")
        value = "listed" if "broken-companion" in skills else "not listed"
        yield Choice("skill.broken-companion", value, frame)
        for name, situation in (
            ("deep-two", "two folders deep"),
            ("deep-four", "four folders deep"),
        ):
            value = "listed" if name in skills else "not listed"
            yield Choice("skills-list.nested", value, frame, situation)


@observes("skills-list.session-cwd", "skills-list.same-cwd", "skills-list.relative-root")
class Folders(Observer):
    """Entries of a list for the requested folders."""

    def begin(self) -> None:
        """Set up the state."""
        self._places: dict[str, str] = {}

    @listen(("mark", Place.kind))
    def on_place(self, mark: Mark[Place]) -> None:
        """Note the folders of the run."""
        self._places = {
            folder: name for name, folder in mark.body.folders_by_name().items() if folder
        }

    @on_answer("skills/list")
    def on_skills_list_answer(self, frame: Frame) -> Iterator[Choice]:
        """Yield the entries for missing, repeated, relative or nonexistent folders."""
        request = self.scene.request_of(frame)
        if request is None:
            return
        cwds = [text(cwd) for cwd in arr(obj(request.params).get("cwds"))]
        entries = [text(dig(entry, "cwd")) for entry in arr(dig(frame.result, "data"))]
        roots = [
            text(root)
            for entry in arr(obj(request.params).get("perCwdExtraUserRoots"))
            for root in arr(dig(entry, "extraUserRoots"))
        ]
        if any(root[:1] != "/" for root in roots):
            yield Choice("skills-list.relative-root", outcome(frame), frame)
        elif not cwds and not self.scene.facts.threads:
            places = [self._places.get(entry, "another folder") for entry in entries]
            yield Choice("skills-list.session-cwd", ", ".join(places) or "no entry", frame)
        elif len(set(cwds)) < len(cwds):
            value = f"{len(entries)} entries for {len(cwds)}"
            yield Choice("skills-list.same-cwd", value, frame, "asked for twice")
        elif len(cwds) == 1 and cwds[0][:1] != "/":
            yield self._entry_choice(frame, cwds[0], entries, "relative")
        elif len(cwds) == 1 and cwds[0].endswith("nowhere"):
            yield self._entry_choice(frame, cwds[0], entries, "not there")

    @staticmethod
    def _entry_choice(frame: Frame, cwd: str, entries: list[str], situation: str) -> Choice:
        value = outcome(frame)
        if frame.kind is Kind.RESPONSE:
            value = "an entry as it was asked" if entries == [cwd] else "another entry"
            value = value if entries else "no entry"
        return Choice("skills-list.same-cwd", value, frame, situation)
