"""Expectations added to a document, so that an ordinary run fails for the same cause.

Rules judge every run. Problems that only the search can see are written as expectations: values of
an answer (`where`), a result in place of any answer, contents of a model call or an item.
"""

import copy

from harness.protocol.spec.book import Book
from harness.protocol.values import arr, obj
from harness.search.fuzz.sessions.checks import REFUSED
from harness.search.fuzz.sessions.cuts import split_step
from harness.search.fuzz.sessions.play import Problem, needed_capabilities
from harness.search.fuzz.sessions.turns import Json


def add_demands(document: Json, problem: Problem, book: Book) -> Json:
    """Return a copy with the cause as title, its needs, and expectations for missing values."""
    new_document: Json = {"title": f"Found by fuzzing: {problem.cause}"}
    needs = needed_capabilities(document, book)
    new_document |= {"needs": needs} if needs else {}
    new_document |= {
        name: value for name, value in copy.deepcopy(document).items() if name != "title"
    }
    if (problem.where or problem.cause == REFUSED) and problem.step:
        _demand_answer(new_document, problem)
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


def _demand_answer(document: Json, problem: Problem) -> None:
    """Expect a result from the problem's request, with the problem's values, in place."""
    steps = document["client"]
    if problem.step > len(steps):
        return
    kind, body = split_step(steps[problem.step - 1])
    if kind != "request" or body.get("wait") is False:
        return
    body.pop("expect", None)
    if problem.where:
        body["where"] = dict(problem.where)
