"""A document that demands what did not come, so that it fails in an ordinary run for its cause.

A rule judges every run. What only the search could see is written into the document: what an answer
must show (`where`), that a request must be granted, what a model call or an item must hold.
"""

import copy

from harness.protocol.spec.book import Book
from harness.protocol.values import arr, obj
from harness.search.fuzz.sessions.cuts import only
from harness.search.fuzz.sessions.looks import REFUSED
from harness.search.fuzz.sessions.play import Problem, needed
from harness.search.fuzz.sessions.turns import Json


def demanding(document: Json, problem: Problem, book: Book) -> Json:
    """A copy with a title that names the cause, and with what the problem says was missing."""
    new_document: Json = {"title": f"Found by fuzzing: {problem.cause}"}
    needs = needed(document, book)
    new_document |= {"needs": needs} if needs else {}
    new_document |= {
        name: value for name, value in copy.deepcopy(document).items() if name != "title"
    }
    if (problem.where or problem.cause == REFUSED) and problem.step:
        _answer(new_document, problem)
    output = problem.output
    if output is not None and output.index < 0 and output.thread is None:
        item = {"commandExecution": {"aggregatedOutput": {"contains": output.nonce}}}
        new_document["expect"] = {"items": [item]}
    elif output is not None:
        scripts = obj(new_document.get("model"))
        script = arr(scripts.get(output.thread or next(iter(scripts), "")))
        if 0 <= output.index < len(script):
            script[output.index]["expect"] = {"input_contains": [output.nonce]}
    return new_document


def _answer(document: Json, problem: Problem) -> None:
    """Demand that the request of a step is granted, and what its answer shows."""
    steps = document["client"]
    if problem.step > len(steps):
        return
    kind, body = only(steps[problem.step - 1])
    if kind != "request" or body.get("wait") is False:
        return
    body.pop("expect", None)
    if problem.where:
        body["where"] = dict(problem.where)
