"""Meanings of capabilities, bundled scenarios, verdicts and levels, for `harness explain`."""

import textwrap
from collections.abc import Iterator

from harness.judge.missing_messages import Treatment
from harness.judge.verdict import Level, Verdict
from harness.protocol.spec.loading import load_book
from harness.protocol.spec.rows import Capability
from harness.scenario.bundled import bundled_files, bundled_scenario, bundled_with
from harness.scenario.identity import file_of

VERDICTS: dict[Verdict, tuple[str, str]] = {
    Verdict.PASS: ("judged at least once and kept each time; there is a witness", "passed"),
    Verdict.FAIL: (
        "broken; the report shows the messages that prove it",
        "failed; a SHOULD or INFO is a warning",
    ),
    Verdict.KNOWN: ("broken, as a profile or a baseline predicts", "xfailed"),
    Verdict.NOT_EXERCISED: (
        "nothing in this run could be judged by it",
        "skipped, with the reason",
    ),
    Verdict.NOT_APPLICABLE: (
        "the server does not offer the feature, or this machine cannot run it",
        "skipped, with the reason",
    ),
    Verdict.ERROR: (
        "the rule crashed, or the harness sent something wrong: a defect of the harness",
        "failed",
    ),
}
"""Meanings of the verdicts, and their outcomes in pytest, as in docs/reports.md."""

LEVELS: dict[Level, tuple[str, str]] = {
    Level.MUST: (
        "stated in the text, or derived from clauses that speak of the same situation",
        "always",
    ),
    Level.SHOULD: ("derived", "with `--strict`"),
    Level.INFO: ("chosen by this project where the text is silent", "never"),
}
"""The basis of each level, and when it counts, as in docs/reports.md."""

MISSING_MESSAGES: dict[Treatment, str] = {
    Treatment.JUDGED: "a message that never came is a violation: the harness saw the server idle, "
    "--settled says that it was, or the recording shows that the model and all work had ended "
    "before a silence",
    Treatment.SUSPECTED: "a message that never came is reported as INFO, and fails nothing: the "
    "recording was silent before it ended, but what the model did is not in it",
    Treatment.NOT_JUDGED: "a message that never came is not reported: it may have come after the "
    "recording ended",
}
"""Meanings of the ways to treat missing messages in a recording, as in docs/reports.md."""

# A plural explains all names of a kind.
KINDS = ("capabilities", "verdicts", "levels")
_MAX_SCENARIOS_NAMED = 8


def names() -> list[str]:
    """Return every name that is explained here."""
    # Verdicts have no truth value, which a caller may ask of a name, so their values are listed.
    verdicts = [verdict.value for verdict in VERDICTS]
    levels = [level.value for level in LEVELS]
    treatments = [str(treatment) for treatment in Treatment]
    return [*KINDS, *verdicts, *levels, *treatments, *_capabilities(), *bundled_files()]


def explain_word(name: str) -> Iterator[str]:
    """Yield the lines that explain one of the `names`."""
    plain = name.upper()
    if name == "capabilities":
        width = max(map(len, _capabilities()))
        yield from (
            f"{capability.id:{width}}  {capability.title}"
            for capability in _capabilities().values()
        )
        yield ""
        yield "more on one of them: harness explain ID"
    elif name == "verdicts":
        for verdict, (means, _) in VERDICTS.items():
            yield f"{verdict.value:14}  {means}"
    elif name == "levels":
        for level, (basis, counts) in LEVELS.items():
            yield f"{level.value:6}  {basis}; counts {counts}"
    elif name in _capabilities():
        yield from _capability_lines(_capabilities()[name])
    elif name in bundled_files():
        yield from _scenario_lines(name)
    elif name in MISSING_MESSAGES:
        yield from _wrap(f"{name} (missing messages): {MISSING_MESSAGES[Treatment(name)]}")
        yield "harness check --settled judges them; more: harness docs reports#recordings"
    elif plain in [level.value for level in Level]:
        basis, counts = LEVELS[Level(plain)]
        yield f"{plain} (level): {basis}"
        yield f"counts: {counts}"
    else:
        means, pytest = VERDICTS[Verdict(plain)]
        yield f"{plain} (verdict): {means}"
        yield f"in pytest: {pytest}"
        yield "more: harness docs reports#verdicts"


def _capabilities() -> dict[str, Capability]:
    return {capability.id: capability for capability in load_book().capabilities}


def _capability_lines(capability: Capability) -> Iterator[str]:
    yield f"{capability.id} (capability): {capability.title}"
    yield ""
    yield from _wrap(capability.description)
    yield from _wrap(f"how it is asked for: {capability.probe}")
    if methods := load_book().methods_of(capability.id):
        yield from _wrap(f"methods: {', '.join(methods)}")
    needing = [
        name
        for name in bundled_with(capability.id)
        if capability.id in bundled_scenario(name).scenario.needs
    ]
    if not needing:
        yield "no bundled scenario names it in its needs"
        return
    more = (
        f" … and {len(needing) - _MAX_SCENARIOS_NAMED} more"
        if len(needing) > _MAX_SCENARIOS_NAMED
        else ""
    )
    listed = ", ".join(needing[:_MAX_SCENARIOS_NAMED])
    yield from _wrap(f"bundled scenarios that need it: {len(needing)}: {listed}{more}")
    yield f"play them: harness run --tag {capability.id}"


def _scenario_lines(name: str) -> Iterator[str]:
    scenario = bundled_scenario(name).scenario
    yield f"{name} (bundled scenario): {scenario.title}"
    yield ""
    yield from _wrap(f"needs: {', '.join(scenario.needs) or 'core alone'}")
    yield from _wrap(f"covers: {', '.join(scenario.covers) or 'no rule by name'}")
    yield f"file: {file_of(bundled_files()[name])}"
    yield f"its text: harness scenario show {name}"


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(text, 96, break_on_hyphens=False, break_long_words=False)
