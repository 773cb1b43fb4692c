"""The rule on our own side: blame must never fall on a target for what the harness sent.

Here: own frames against the book. Not here: anything that the target wrote.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.rules.base import Monitor, Outcomes, Violation, Witness, on_own, rule
from harness.rules.shapes import explained
from harness.rules.verdict import Level
from harness.trace.frame import Frame, Kind


@rule("harness.own-frame", title="The harness's own messages are right", level=Level.MUST)
class OwnFrame(Monitor):
    """Judges what the harness sent: well-formed, and params as the book's schemas want them.

    A finding blames the harness (verdict ERROR): a server must not be judged by a wrong question.
    Left open: messages that a scenario made wrong on purpose, methods that the book does not know
    or whose params it does not show, and our answers to server requests.
    """

    @on_own
    def own(self, frame: Frame) -> Outcomes:
        if frame.deliberate:
            return None
        if frame.kind is Kind.MALFORMED:
            return self._ours(frame, "one of the four message forms", frame.text(160))
        if frame.kind is not Kind.REQUEST or self.book.method(frame.method) is None:
            return None
        errors = self.book.validate_params(frame.method, frame.params)
        if errors:
            return self._ours(frame, *explained(errors))
        return [Witness(f"own {frame.method}", (frame,))]

    def _ours(self, frame: Frame, expected: str, actual: str) -> Outcomes:
        subject = f"own {frame.method or 'message'}"
        return [Violation(subject, (frame,), expected, actual, blame_harness=True)]
