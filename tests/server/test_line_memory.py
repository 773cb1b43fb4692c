"""Memory that the longest line of a client takes, measured in processes of their own."""

import pytest
from peaks import peak_of

from reference_server.transport.lines import LINE_LIMIT
from tests.sampling import one_in

pytestmark = [pytest.mark.slow, pytest.mark.socket]
MAX_MIB = 500
"""MiB beyond what a process has that has imported the same and read nothing."""

READING = """
import contextlib
from reference_server.refusal import Refusal
from harness.protocol.wire.methods import BY_METHOD
from reference_server.envelope import decode
from reference_server.router import check_params
from reference_server.transport.lines import LineSplitter

unit, size = sys.argv[1].encode(), int(sys.argv[2])
# Something that is looked for in lines, lest one half of a character comes in.
text = '{"type":"text","text":"\\\\ud83d\\\\ude00"}'
start = '{"id":1,"method":"turn/start","params":{"threadId":"t","input":[%s],' % text
head = start.encode() + b'"outputSchema":{"x":['
block = unit * (65536 // len(unit))
begin()
splitter = LineSplitter()
splitter.feed(head)
for _ in range((size - len(head) - 8) // len(block)):
    assert splitter.feed(block) == []
[line] = splitter.feed(b"0]}}}" + bytes([10]))
request = decode(line)
# Its lists are longer than any that are taken; what counts is what it takes to find out.
with contextlib.suppress(Refusal):
    check_params(BY_METHOD["turn/start"].params, request.params)
end(type(request).__name__)
"""

UNITS = {
    "arrays": "[],",
    "objects": "{},",
    "objects in objects": '{"":' * 99 + "0" + "}" * 99 + ",",
    "strings": '"ab",',
    "characters in two halves": r'"\ud83d\ude00",',
}


@pytest.mark.parametrize("unit", one_in(5, UNITS, pytest.mark.attacks))
def test_the_longest_line_takes_less_than_500_mib(unit: str) -> None:
    [kind], peak = peak_of(READING, UNITS[unit], str(LINE_LIMIT))
    assert kind == "IncomingRequest"
    assert peak < MAX_MIB
