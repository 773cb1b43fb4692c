"""Facts about a server, shared by the sessions of one process.

Once one lane has found a missing capability, the others do not probe it again. Nothing here depends
on which lane came first.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field

from harness.client.target.profile import Profile
from harness.play.session.capability_prober import CapabilityProber
from harness.play.session.first_turn import FirstTurn
from harness.play.session.repeated_timeouts import Silences
from harness.report.results.outcome import Finding, ScenarioOutcome
from harness.trace.marks import SessionReport


@dataclass
class Knowledge:
    """Facts shared by the sessions of one process; hold `lock` while determining one.

    `session_turns` maps the id of a scenario to the turns that its session reported,
    `plain_outcomes` to its outcome without a race. `confirmed_failures` counts, for each failure,
    the scenarios in which it was repeated on a fresh process. `blocker` is the finding that keeps
    every plain turn from working, if any. `findings` are those that belong to no scenario.
    """

    profile: Profile
    lock: threading.RLock = field(default_factory=threading.RLock)
    silences: Silences = field(default_factory=Silences)
    first_turn: FirstTurn = field(default_factory=FirstTurn)
    session_turns: dict[str, list[SessionReport]] = field(
        default_factory=dict[str, list[SessionReport]]
    )
    plain_outcomes: dict[str, ScenarioOutcome] = field(default_factory=dict[str, ScenarioOutcome])
    blocker: Finding | None = None
    confirmed_failures: Counter[str] = field(default_factory=Counter[str])
    findings: list[Finding] = field(default_factory=list[Finding])

    def __post_init__(self) -> None:
        self.prober = CapabilityProber(self.profile)
