"""Facts about the server, shared by the sessions of one process.

Lanes share it: what one of them found out, such as a capability that is missing, no other finds out
again. Nothing here depends on which lane came first.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field

from harness.client.target.profile import Profile
from harness.play.session.capability_prober import CapabilityProber
from harness.play.session.first_turn import FirstTurn
from harness.play.session.silence import Silences
from harness.report.results.outcome import Finding, ScenarioOutcome
from harness.trace.marks import ToldBySession


@dataclass
class Knowledge:
    """Shared by the sessions of one process; hold `lock` while something is found out for all.

    `told` maps the id of a scenario to what its session told, `plain` to its outcome without a
    race. `confirmed` counts the scenarios in which a failure was seen again on a fresh process.
    `blocked` is why no plain turn can be had, None where one can. `findings` are those that no
    scenario owns.
    """

    profile: Profile
    lock: threading.RLock = field(default_factory=threading.RLock)
    silences: Silences = field(default_factory=Silences)
    first_turn: FirstTurn = field(default_factory=FirstTurn)
    session_turns: dict[str, list[ToldBySession]] = field(default_factory=dict[str, list[ToldBySession]])
    plain_outcomes: dict[str, ScenarioOutcome] = field(default_factory=dict[str, ScenarioOutcome])
    blocker: Finding | None = None
    confirmed_failures: Counter[str] = field(default_factory=Counter[str])
    findings: list[Finding] = field(default_factory=list[Finding])

    def __post_init__(self) -> None:
        self.prober = CapabilityProber(self.profile)
