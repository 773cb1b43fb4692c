"""The report on one connection of a client: order and length."""

from harness.play.client_duties.verdicts import DutyVerdict
from harness.play.client_tests.connection import ConnectionResult
from harness.play.client_tests.problems import refused_requests
from harness.play.client_tests.report import lines_of
from tests.clients.wire_talk import Wire

PROBLEMS = tuple(f"problem {number}" for number in range(1, 6))
REFUSED = tuple(f'#{number} thread/read -32600 "no"' for number in range(1, 8))


def lines(*levels: str, refused: tuple[str, ...] = (), verdict: str = "FAIL") -> list[str]:
    duties = tuple(DutyVerdict(f"duty.{level}", level, verdict, "", "x", "y") for level in levels)
    result = ConnectionResult("1", "mine", PROBLEMS, duties, refused=refused)
    first, *others = [line for line in lines_of(result) if not line.startswith("    ")]
    assert first == "connection 1 (mine): RED"
    return [line.strip() for line in others]


def test_duties_that_count_come_first_and_the_problems_are_cut_after_them() -> None:
    assert lines("INFO", "SHOULD", "MUST") == [
        "MUST duty.MUST: expected x; found y",
        "SHOULD duty.SHOULD: expected x; found y",
        *PROBLEMS[:3],
        "and 2 more problem(s), which may follow from the above",
        "INFO duty.INFO: expected x; found y",
    ]


def test_problems_are_not_cut_if_only_an_info_is_recorded() -> None:
    assert lines("INFO") == [*PROBLEMS, "INFO duty.INFO: expected x; found y"]
    assert lines("MUST", verdict="PASS") == [*PROBLEMS]


def test_rule_that_crashed_comes_first_whatever_its_level() -> None:
    assert lines("INFO", verdict="ERROR")[0] == "INFO duty.INFO: expected x; found y"


def test_refused_requests_precede_the_problems_at_most_five() -> None:
    assert lines(refused=REFUSED) == [
        *(f"refused: {line}" for line in REFUSED[:5]),
        "refused: 2 more request(s)",
        *PROBLEMS,
    ]


def test_refused_requests_of_a_green_connection_are_in_its_json_alone() -> None:
    result = ConnectionResult("1", "mine", refused=REFUSED[:1])
    assert list(lines_of(result)) == ["connection 1 (mine): GREEN"]
    assert result.to_json()["refused"] == [*REFUSED[:1]]


def test_refusal_has_number_method_code_and_message_and_equal_ones_are_counted() -> None:
    wire = Wire()
    for number in (2, 3):
        wire.asks("turn/start", threadId="thr_9", input=[])
        wire.server({"id": number, "error": {"code": -32600, "message": "there is no thr_9\x1b"}})
    wire.asks("odd\n").server({"id": 4, "error": "no"})
    wire.asked().client({"id": 0, "error": {"code": 1, "message": "not I"}})
    wire.server({"id": None, "error": {"code": -32700, "message": "no JSON"}})
    assert list(refused_requests(wire.judge.trace)) == [
        '#3 turn/start -32600 "there is no thr_9\\u001b" (2 times)',
        "#7 odd\\n nothing nothing",
    ]
