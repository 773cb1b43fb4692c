"""A witness of a rule during a set-up step is repeated after that step."""

from harness.judge.judge import judge
from harness.judge.rules.discovery import all_rules
from harness.judge.verdict import Verdict
from harness.protocol.spec.loading import load_book
from harness.trace.frame import Direction
from harness.trace.marks import Setup
from harness.trace.recorder import Recorder
from harness.trace.trace import End


def test_rules_that_speak_once_speak_after_the_setup() -> None:
    recorder = Recorder()
    changed = b'{"method":"thread/archived","params":{"threadId":"thr_1"}}'

    def exchange(number: int) -> None:
        request = b'{"method":"thread/read","id":%d,"params":{"threadId":"thr_1"}}' % number
        recorder.record(request, Direction.TO_TARGET)
        recorder.record(b'{"id":%d,"error":{}}' % number, Direction.FROM_TARGET)
        recorder.record(changed, Direction.FROM_TARGET)

    recorder.mark(Setup(active=True))
    exchange(1)
    recorder.mark(Setup(active=False))
    recorder.trace.end = End.QUIESCENT
    assert witnesses(recorder) == set()
    exchange(2)
    assert witnesses(recorder) == {"frame.well-formed", "shape.notification"}


def witnesses(recorder: Recorder) -> set[str]:
    chosen = [all_rules()[name] for name in ("frame.well-formed", "shape.notification")]
    rows = judge(load_book(), recorder.trace, rules=chosen)
    return {row.rule for row in rows if row.verdict is Verdict.PASS}
