"""Rule on directions: only the client requests the operations of the specification."""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from harness.judge.base import Monitor, Outcomes, Witness, on_kind, rule
from harness.judge.rules.shared.violations import root_member, unexpected_member
from harness.judge.verdict import Level
from harness.trace.frame import Frame, Kind

_CLIENTS = "client-to-server"


@rule(
    "method.right-direction",
    title="The server requests none of the client's operations",
    level=Level.MUST,
    needs=("command-approval",),
)
class RightDirection(Monitor):
    """Judges that no request of the server has the name of an operation of the specification.

    These requests go from the client to the server; a client, which keeps no threads, could not
    carry them out. Left open: names that the specification does not list, and notifications, which
    request nothing.
    """

    @on_kind(Kind.REQUEST)
    def on_request(self, frame: Frame) -> Outcomes:
        row = self.book.method(frame.method)
        if row is None:
            return None
        subject = f"method {frame.method}"
        if row.direction != _CLIENTS:
            return [Witness(subject, (frame,))]
        expected = f"{frame.method} from the client alone, whose operation it is"
        return [unexpected_member(subject, (frame,), root_member(frame, "method"), expected)]
