"""Functions are called by a verb and its object, values by a noun.

A name that is a bare participle or adverb (`told`, `given`, `over`) says neither what is done nor
what there is; so says plain-words.md. The lists of exceptions only get shorter.
"""

import ast
import re
from collections.abc import Iterator

from source_tree import OURS, parsed, python_files, relative

PRODUCT = (*OURS, "sdk/python", "tools")
PARTICIPLE = re.compile(r"[a-z]+(ed|ing)")
IRREGULAR = re.compile(
    "begun|broken|brought|built|caught|chosen|done|drawn|driven|eaten|forgotten|found|"
    "given|gone|grown|heard|held|hidden|kept|known|left|lost|made|meant|said|seen|sent|"
    "shaken|shown|spent|spoken|stolen|struck|stuck|taken|thought|thrown|told|understood|"
    "written"
)
ADVERBS = re.compile(
    "about|again|alone|always|apart|around|aside|behind|beside|here|inside|instead|late|"
    "never|now|off|out|outside|over|since|soon|then|there|together|until|up|within|unless"
)
# Nouns and verbs that end as participles do.
NOUNS = re.compile(
    "binding|bring|building|embed|encoding|ending|exceed|feed|finding|greeting|heading|"
    "landing|listing|meaning|need|ping|proceed|reasoning|red|ring|seed|setting|speed|"
    "spelling|string|thing|timing|warning|wording"
)
# Names that stand for nothing: a parameter has the noun of its type.
NAMELESS = re.compile("asked|found|given|it|known|made|mine|one|said|shown|told|wanted")
# Public names of the SDK, which its users know from other SDKs.
PUBLIC = frozenset(["sdk/python/agent_sdk/abort.py aborted"])


def is_bare(name: str) -> bool:
    """Return whether a name is one word, and that a participle or an adverb."""
    word = name.strip("_")
    if NOUNS.fullmatch(word) or name.startswith("__"):
        return False
    return any(words.fullmatch(word) for words in (PARTICIPLE, IRREGULAR, ADVERBS))


def definitions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield each function of the product, with its place."""
    for package in PRODUCT:
        for path in python_files(package):
            for node in ast.walk(parsed(path)):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{relative(path)}:{node.lineno}", node


def test_functions_are_called_by_a_verb_and_its_object() -> None:
    bare = [
        f"{place}: {node.name}"
        for place, node in definitions()
        if is_bare(node.name) and f"{place.split(':')[0]} {node.name}" not in PUBLIC
    ]
    assert bare == []


def test_parameters_are_called_by_a_noun() -> None:
    nameless = [
        f"{place}: {node.name}({parameter.arg})"
        for place, node in definitions()
        for parameter in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        if NAMELESS.fullmatch(parameter.arg.strip("_"))
    ]
    assert nameless == []


def test_a_bare_participle_is_known_as_one() -> None:
    assert all(map(is_bare, ("told", "_given", "over", "ended", "lacking")))
    assert not any(map(is_bare, ("has_ended", "feed", "listing", "on_turn_started", "parse")))
