"""The judge's book and the wire models agree, place by place, but for differences with a reason.

A difference that is not listed fails, and so does a listed one that is gone. The book was made from
the text alone: where the two differ, the clause or the open point named here settles it.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest

from agreement.facts import book_facts, differences, wire_facts
from harness.spec.book import load_book
from harness.spec.rows import MethodRow
from harness.spec.schemas import FILES, SchemaBook
from harness.spec.yamlfile import load_schemas
from harness.wire.methods import METHODS, Direction, MethodSpec

BOOK = load_book()

# Where the two differ for a good reason. Key: the difference; value: what in the book settles it,
# a requirement or (with "?") a point that the text leaves open.
EXPLAINED = {
    # The text has words only; the shipping server's clients send the amendment itself. Both work.
    "CommandApprovalResult.decision: book string; wire object|string": (
        "?approval.amendment-content"
    ),
    "CommandApprovalResult.decision.acceptWithExecpolicyAmendment: only in the wire": (
        "?approval.amendment-content"
    ),
    "CommandApprovalResult.decision.applyNetworkPolicyAmendment: only in the wire": (
        "?approval.amendment-content"
    ),
    # A policy is refused that is not understood: it might allow less.
    "SandboxPolicy.access.type: book open; wire {fullAccess}": "?sandbox-policy.read-only-access",
    # Models do not say what depends on another member.
    "Thread.path where ephemeral is True: only in the book": "thread.path-ephemeral",
    # Half a thread is no page size.
    "ThreadListParams.limit: book null|number; wire integer|null": "?thread-list.limit-range",
    # The one model of a thread always writes its turns, and reads none as no turns.
    "ThreadRollbackResult.thread.turns: book required; wire optional": "thread-rollback.result",
    # What the text needs and does not show.
    "ThreadStartParams.dynamicTools: only in the wire": "?item.dynamic-tool-flow",
    "WebSearchAction.pattern: only in the wire": "?item.web-search-payloads",
    "WebSearchAction.url: only in the wire": "?item.web-search-payloads",
}

# Methods that the text does not name, but that something in it cannot be without.
NOT_IN_THE_BOOK = {
    "initialized": "?rpc.handshake",
    "review/start": "?item.review-begins",
    "item/tool/call": "?item.dynamic-tool-flow",
}


def messages(schemas: SchemaBook) -> set[str]:
    """The differences over all messages that both sides have and the text shows."""
    found: set[str] = set()
    for spec in METHODS:
        row = BOOK.method(spec.method) or BOOK.event(spec.method)
        if row is None:
            continue
        result = row.result if isinstance(row, MethodRow) else None
        for reference, model in ((row.params, spec.params), (result, spec.result)):
            if reference is not None and model is not None:
                found |= differences(book_facts(schemas, reference), wire_facts(model))
    return found


def test_the_two_differ_only_where_a_reason_is_given():
    found = messages(BOOK.schemas)
    assert found - set(EXPLAINED) == set()
    assert set(EXPLAINED) - found == set()


def test_every_reason_is_in_the_book():
    points = {f"?{point.id}" for point in BOOK.unspecified}
    for reason in (*EXPLAINED.values(), *NOT_IN_THE_BOOK.values()):
        assert reason in points or BOOK.requirement(reason)


@pytest.mark.parametrize("spec", METHODS, ids=lambda spec: spec.method)
def test_every_method_of_the_wire_has_its_row_on_the_same_side(spec: MethodSpec):
    method, event = BOOK.method(spec.method), BOOK.event(spec.method)
    if spec.method in NOT_IN_THE_BOOK:
        assert method is None
        assert event is None
    elif spec.direction is Direction.SERVER_NOTIFICATION:
        assert method is None
        assert event is not None
    else:
        assert event is None
        assert method is not None
        from_client = spec.direction is Direction.CLIENT_REQUEST
        assert method.direction == ("client-to-server" if from_client else "server-to-client")


Files = dict[str, Any]


def rename_member(files: Files) -> None:
    properties = files["turn.json"]["$defs"]["Turn"]["properties"]
    properties["elements"] = properties.pop("items")


def drop_member(files: Files) -> None:
    del files["thread.json"]["$defs"]["Thread"]["properties"]["cwd"]


def make_optional(files: Files) -> None:
    files["thread.json"]["$defs"]["Thread"]["required"].remove("modelProvider")


def change_type(files: Files) -> None:
    files["item.json"]["$defs"]["AgentMessageItem"]["properties"]["text"]["type"] = "array"


def forbid_null(files: Files) -> None:
    files["thread.json"]["$defs"]["Thread"]["properties"]["path"]["type"] = "string"


def respell_value(files: Files) -> None:
    files["turn.json"]["$defs"]["TurnStatus"]["enum"][0] = "in_progress"


def drop_value(files: Files) -> None:
    files["enums.json"]["$defs"]["ApprovalPolicy"]["enum"].remove("reject")


def drop_variant(files: Files) -> None:
    union = files["input.json"]["$defs"]["UserInput"]
    union["properties"]["type"]["enum"].remove("mention")
    union["allOf"] = [one for one in union["allOf"] if "mention" not in str(one["if"])]


def change_element(files: Files) -> None:
    summary = files["item.json"]["$defs"]["ReasoningItem"]["properties"]["summary"]
    summary["items"]["type"] = "object"


def change_nested(files: Files) -> None:
    files["error.json"]["$defs"]["TurnError"]["properties"]["message"]["type"] = "number"


@pytest.mark.parametrize(
    ("plant", "expected"),
    [
        (rename_member, {"Turn.elements: only in the book", "Turn.items: only in the wire"}),
        (drop_member, {"Thread.cwd: only in the wire"}),
        (make_optional, {"Thread.modelProvider: book optional; wire required"}),
        (change_type, {"AgentMessageItem.text: book array; wire string"}),
        (forbid_null, {"Thread.path: book string; wire null|string"}),
        (
            respell_value,
            {
                "Turn.status: book {completed,failed,in_progress,interrupted}; "
                "wire {completed,failed,inProgress,interrupted}"
            },
        ),
        (drop_value, {"wire {never,on-failure,on-request,reject,untrusted}"}),
        (drop_variant, {"UserInput.<mention>: only in the wire"}),
        (change_element, {"ReasoningItem.summary[]: book object; wire string"}),
        (change_nested, {"TurnError.message: book number; wire string"}),
    ],
    ids=lambda value: value.__name__ if callable(value) else "",
)
def test_a_planted_difference_is_found(plant: Callable[[Files], None], expected: set[str]):
    files = copy.deepcopy(load_schemas(FILES))
    plant(files)
    found = messages(SchemaBook(files)) - set(EXPLAINED)
    for text in expected:
        assert [one for one in found if one.endswith(text)], (text, sorted(found))
