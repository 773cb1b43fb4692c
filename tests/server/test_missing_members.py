"""Members that a client leaves out, sets to null, or adds: rejections and defaults."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from model_side import says
from session_peer import session

from harness.protocol.wire.methods import METHODS, Direction
from reference_server.engine.tools.dynamic import read_answer
from reference_server.router import check_params

pytestmark = pytest.mark.anyio

SUBJECT = "names what the request is about"
CONTENT = "is the content itself"
REQUIRED = {
    # The text says "required", or shows no param of the method.
    **dict.fromkeys(
        (f"{method} threadId" for method in (
            "thread/resume", "thread/fork", "thread/read", "thread/archive", "thread/unarchive",
            "thread/name/set", "thread/unsubscribe", "thread/rollback", "thread/compact/start",
            "turn/start", "turn/interrupt", "turn/steer", "review/start",
        )),
        SUBJECT,
    ),
    "skills/config/write path": SUBJECT,
    "skills/config/write enabled": "required by the text",
    "skills/remote/export hazelnutId": SUBJECT,
    "skills/list perCwdExtraUserRoots[].cwd": "required by the text",
    "skills/list perCwdExtraUserRoots[].extraUserRoots": "required by the text",
    "turn/interrupt turnId": "required by the text",
    "turn/steer expectedTurnId": "required by the text",
    "turn/start input": "required by the text",
    "turn/steer input": "required by the text",
    # Nothing could be assumed that is safe.
    "thread/name/set name": "an empty one removes the name",
    "thread/rollback numTurns": "turns are lost",
    "thread/start dynamicTools[].name": SUBJECT,
    "turn/start sandboxPolicy<readOnly>.access.type": "an access that is not known may allow less",
    "review/start target": SUBJECT,
    "review/start target<baseBranch>.branch": SUBJECT,
    "review/start target<commit>.sha": SUBJECT,
    "review/start target<custom>.instructions": SUBJECT,
    **{
        f"{method} input[]<{kind}>.{name}": CONTENT
        for method in ("turn/start", "turn/steer")
        for kind, name in (
            ("text", "text"), ("image", "url"), ("localImage", "path"), ("skill", "name"),
            ("skill", "path"), ("mention", "name"), ("mention", "path"),
        )
    },
    # Answers of the client.
    "item/commandExecution/requestApproval decision": "nobody has consented",
    **{
        f"item/commandExecution/requestApproval decision.{place}": "nobody has consented to a rule"
        for place in (
            "acceptWithExecpolicyAmendment",
            "acceptWithExecpolicyAmendment.execpolicy_amendment",
            "applyNetworkPolicyAmendment",
            "applyNetworkPolicyAmendment.network_policy_amendment",
            "applyNetworkPolicyAmendment.network_policy_amendment.host",
            "applyNetworkPolicyAmendment.network_policy_amendment.action",
        )
    },
    "item/fileChange/requestApproval decision": "nobody has consented",
    "item/tool/call success": "a call that may have failed has not succeeded",
    "item/tool/call contentItems[]<inputText>.text": CONTENT,
    "item/tool/call contentItems[]<inputImage>.imageUrl": CONTENT,
}  # fmt: skip
"""Each member without which a message of a client is refused, and why nothing is assumed."""


def test_only_what_the_text_requires_or_nobody_may_guess_is_required() -> None:
    required = set[str]()
    for spec in METHODS:
        if spec.direction is Direction.CLIENT_REQUEST:
            model = spec.params
        elif spec.direction is Direction.SERVER_REQUEST and spec.result is not None:
            model = spec.result
        else:
            continue
        schema = model.model_json_schema(by_alias=True, mode="validation")
        required |= {f"{spec.method} {place}" for place in required_places(schema, schema, "")}
    assert required == set(REQUIRED), "add a row with a reason to REQUIRED, or make it optional"


def required_places(node: dict[str, Any], schema: dict[str, Any], place: str) -> Iterator[str]:
    """Yield the members without which a value of this schema is not valid."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    for name, member in node.get("properties", {}).items():
        inner = f"{place}.{name}" if place else name
        if name in node.get("required", ()):
            yield inner
        yield from required_places(member, schema, inner)
    if "items" in node:
        yield from required_places(node["items"], schema, f"{place}[]")
    kinds = node.get("discriminator", {}).get("mapping", {})
    for kind, reference in kinds.items():
        yield from required_places({"$ref": reference}, schema, f"{place}<{kind}>")
    for choice in node.get("anyOf", ()):
        yield from required_places(choice, schema, place)


DETAILS: dict[str, dict[str, Any]] = {
    "dangerFullAccess": {},
    "readOnly": {"access": {"type": "fullAccess"}},
    "workspaceWrite": {"writableRoots": [], "networkAccess": False},
    "externalSandbox": {"networkAccess": "restricted"},
}
"""The members of each policy, with the values that allow least."""


@pytest.mark.parametrize("kind", DETAILS)
async def test_sandbox_policy_of_a_type_alone_is_the_confined_one(
    tmp_path: Path, kind: str
) -> None:
    complete = {"type": kind, **DETAILS[kind]}
    nulls = dict.fromkeys(DETAILS[kind])
    several = [{"type": kind}, {"type": kind, **nulls}]
    several += [{"type": kind, name: value} for name, value in DETAILS[kind].items()]
    several += [{"type": kind, **DETAILS[kind], "excludeSlashTmp": True}]
    async with session(tmp_path, [says("done")] * len(several)) as peer:
        for policy in several:
            thread = await peer.start_thread()
            turn = await peer.run_turn(thread, sandboxPolicy=policy)
            assert turn["status"] == "completed"
            resumed = await peer.request("thread/resume", {"threadId": thread})
            assert resumed["result"]["sandbox"] == complete
            # As stored: a server that reads the thread again knows no other.
            await peer.request("thread/unsubscribe", {"threadId": thread})
            resumed = await peer.request("thread/resume", {"threadId": thread})
            assert resumed["result"]["sandbox"] == complete


@pytest.mark.parametrize(
    "policy",
    [
        {"type": "readOnly", "access": {"type": "restricted", "readableRoots": ["/w"]}},
        {"type": "readOnly", "access": "fullAccess"},
        {"type": "workspaceWrite", "networkAccess": "enabled"},
        {"type": "workspaceWrite", "writableRoots": "/w"},
        {"type": "externalSandbox", "networkAccess": True},
        {"access": {"type": "fullAccess"}},
    ],
)
async def test_sandbox_policy_that_is_not_understood_is_refused(
    tmp_path: Path, policy: dict[str, Any]
) -> None:
    async with session(tmp_path) as peer:
        thread = await peer.start_thread()
        params = {"threadId": thread, "input": [{"type": "text", "text": "hi"}]}
        answer = await peer.request("turn/start", {**params, "sandboxPolicy": policy})
    assert answer["error"]["code"] == -32602
    assert answer["error"]["message"].startswith("sandboxPolicy")


async def test_tool_of_a_client_needs_only_a_name(tmp_path: Path) -> None:
    tools = [{"name": "ping"}, {"name": "pong", "description": None, "inputSchema": None}]
    async with session(tmp_path, [says("done")]) as peer:
        thread = await peer.start_thread(dynamicTools=tools)
        assert (await peer.run_turn(thread))["status"] == "completed"
        offered = {tool.get("name"): tool for tool in peer.side.bodies[0]["tools"]}
    for name in ("ping", "pong"):
        assert offered[name]["description"] == ""
        assert offered[name]["parameters"] == {"type": "object", "properties": {}}


@pytest.mark.parametrize("content", [{}, {"contentItems": None}, {"contentItems": []}])
def test_tool_of_a_client_may_have_nothing_to_say(content: dict[str, Any]) -> None:
    for success in (True, False):
        answer = read_answer({"result": {"success": success, **content}})
        assert (answer.success, answer.content) == (success, [])


@pytest.mark.parametrize("result", [{"contentItems": []}, {"success": None}, {}, None])
def test_tool_of_a_client_that_does_not_say_success_has_failed(result: object) -> None:
    answer = read_answer({"result": result})
    assert not answer.success
    assert "must have `success`" in repr(answer.content)


@pytest.mark.parametrize(
    "client", [{}, {"name": None}, {"version": "2"}, {"name": "x"}, {"title": "X", "more": 1}]
)
async def test_handshake_needs_no_name_of_the_client(
    tmp_path: Path, client: dict[str, Any]
) -> None:
    async with session(tmp_path) as peer:
        answer = await peer.request("initialize", {"clientInfo": client})
        assert answer["result"]["userAgent"]
        assert await peer.start_thread()


@pytest.mark.parametrize(
    "spec", [one for one in METHODS if one.direction is Direction.CLIENT_REQUEST]
)
def test_additional_members_are_ignored_at_every_depth(spec: Any) -> None:
    schema = spec.params.model_json_schema(by_alias=True, mode="validation")
    params = example(schema, schema)
    assert check_params(spec.params, params) == check_params(spec.params, with_additions(params))


def example(node: dict[str, Any], schema: dict[str, Any]) -> Any:
    """Return a value of a schema with all members."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    if choices := node.get("oneOf") or node.get("anyOf"):
        return example(choices[-1 if "oneOf" in node else 0], schema)
    if "const" in node or "enum" in node:
        return node["const"] if "const" in node else node["enum"][0]
    match node.get("type"):
        case "object":
            members = node.get("properties", {}).items()
            return {name: example(member, schema) for name, member in members}
        case "array":
            kinds = node["items"].get("oneOf", [node["items"]])
            return [example(kind, schema) for kind in kinds]
        case "string":
            return "app://x" if "pattern" in node else "/x"
        case "boolean":
            return True
        case other:
            return 1 if other == "integer" else None


def with_additions(value: Any, *, top: bool = True) -> Any:
    """Return a value with one more member in each object, except in those of open content."""
    if isinstance(value, list):
        return [with_additions(element, top=False) for element in cast("list[Any]", value)]
    if not isinstance(value, dict) or not (value or top):
        return value
    members = cast("dict[str, Any]", value).items()
    inner = {name: with_additions(member, top=False) for name, member in members}
    return {**inner, "addition": {"more": [1]}}
