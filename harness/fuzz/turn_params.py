"""Generated parameters of `turn/start`: right ones, nearly right ones, and nonsense.

Here: hypothesis strategies, made from the table of the method in the specification ("turn/start"),
not from any server. Not here: sending them (live), judging.
"""

from typing import Any

from hypothesis import strategies as st

Json = dict[str, Any]

_TEXTS = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["", " ", "\n", "\u2028", "\u0000", "𝄞", "a" * 5000, "$skill", "{model_url}"]),
)
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53), 2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    _TEXTS,
)
_NONSENSE = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)

# Values that the table allows, whatever a server makes of them.
INPUT_ITEMS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": _TEXTS}),
    st.fixed_dictionaries({"type": st.just("image"), "url": st.just("data:image/png;base64,AA==")}),
    st.fixed_dictionaries({"type": st.just("localImage"), "path": st.just("/nonexistent.png")}),
    st.fixed_dictionaries(
        {"type": st.just("skill"), "name": _TEXTS, "path": st.just("/nonexistent/SKILL.md")}
    ),
    st.fixed_dictionaries(
        {"type": st.just("mention"), "name": _TEXTS, "path": st.just("app://none")}
    ),
)
SANDBOX_POLICIES = st.one_of(
    st.just({"type": "dangerFullAccess"}),
    st.just({"type": "readOnly", "access": {"type": "fullAccess"}}),
    st.fixed_dictionaries(
        {
            "type": st.just("workspaceWrite"),
            "writableRoots": st.lists(st.just("/tmp"), max_size=2),
            "networkAccess": st.booleans(),
        }
    ),
    st.just({"type": "externalSandbox", "networkAccess": "enabled"}),
)
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "approvalPolicy": st.sampled_from(["never", "untrusted", "on-request", "on-failure", "reject"]),
    "sandboxPolicy": SANDBOX_POLICIES,
    "model": st.sampled_from(["mock-model", "another-model"]),
    "effort": st.sampled_from(["low", "medium", "high"]),
    "summary": st.sampled_from(["concise", "verbose"]),
    "outputSchema": st.just({"type": "object", "properties": {}}),
}


@st.composite
def right(draw: st.DrawFn) -> Json:
    """Parameters that the table allows, without `threadId`."""
    text = draw(st.fixed_dictionaries({"type": st.just("text"), "text": st.just("go")}))
    given: Json = {"input": [text, *draw(st.lists(INPUT_ITEMS, max_size=2))]}
    for name, values in OPTIONAL.items():
        if draw(st.booleans()):
            given[name] = draw(values)
    return given


@st.composite
def nearly_right(draw: st.DrawFn) -> Json:
    """Right parameters with one thing wrong: a member gone, of another type, or added."""
    given = draw(right())
    name = draw(st.sampled_from([*sorted(given), "threadId", "cwd", "extra"]))
    match draw(st.sampled_from(["drop", "replace", "nest"])):
        case "drop":
            given.pop(name, None)
        case "nest":
            given[name] = [given.get(name)]
        case _:
            given[name] = draw(_NONSENSE)
    return given


def turn_params() -> st.SearchStrategy[Json]:
    """Parameters of `turn/start`; `threadId` is added by the sender unless they name one."""
    return st.one_of(right(), nearly_right(), st.dictionaries(st.text(max_size=8), _NONSENSE))
