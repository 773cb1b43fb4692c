"""Bugs about the calls of the model: commands, patches, plans, images, searches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.conformance.bugs.planting import Message, items, sent, swap, told, untold
from tests.conformance.bugs.registry import bug
from tests.conformance.bugs.tables.files import instead_of_applying

TOOLBOX = "reference_server.engine.tools.toolbox:Toolbox"


def answers(change: Any) -> None:
    """Change the output of tool calls that the model gets."""

    def carry_out(original: Any) -> Any:
        async def changed(*of_call: Any) -> Message:
            answer: Message = await original(*of_call)
            answer["output"] = change(answer["output"])
            return answer

        return changed

    swap(f"{TOOLBOX}.carry_out", carry_out)


@bug(
    reds={
        "tools/run-command": "scenario.expectation: does not contain 'old news'",
        "reviews/runs-a-command": "scenario.expectation: does not contain 'one'",
    }
)
def the_model_is_not_told_what_a_command_printed() -> None:
    """The model gets only the exit code of a command, without its output."""
    answers(lambda output: output.partition("Output:\n")[0])


@bug(reds={"tools/run-command-fails": "scenario.expectation: failed"})
def the_model_is_told_that_a_failed_command_succeeded() -> None:
    """The exit code that the model gets is always 0."""
    answers(lambda output: output.replace("Exit code: 3", "Exit code: 0"))


@bug(reds={"tools/command-output": "item.command-output"})
def an_item_has_the_last_piece_of_output() -> None:
    """The item of a command has only the last line of its output."""

    def keep_the_last(_: str, item: Message) -> None:
        if "aggregatedOutput" in item:
            item["aggregatedOutput"] = item["aggregatedOutput"].splitlines(True)[-1]

    items("commandExecution", keep_the_last)


@bug(reds={"tools/decline-command": "scenario.expectation: made.txt exists"})
def what_is_declined_runs_all_the_same() -> None:
    """A declined command is reported as declined, but run."""

    def denied(original: Any) -> Any:
        def run(command: Any, decision: Any) -> str:
            (Path(command._call.cwd) / "made.txt").touch()
            return original(command, decision)

        return run

    swap("reference_server.engine.tools.shell:_CommandRun._decline", denied)


@bug(reds={"tools/other-folder": "turn.cwd-applies"})
def the_folder_of_a_turn_is_not_heeded() -> None:
    """The cwd of a turn/start has no effect."""

    def settings(original: Any) -> Any:
        def changed(settings: Any, params: Any) -> Any:
            return original(settings, params.model_copy(update={"cwd": None}))

        return changed

    swap("reference_server.engine.start:settings_of_turn", settings)


@bug(reds={"tools/patch": "scenario.expectation: spare.txt exists"})
def a_patch_deletes_nothing() -> None:
    """A patch adds and changes files, and those it deletes stay."""

    def make(plan: Any, apply: Any) -> None:
        places = [Path(change.place.path) for change in plan.changes]
        before = {place: place.read_text() for place in places if place.exists()}
        apply()
        for place, text in before.items():
            if not place.exists():
                place.write_text(text)

    instead_of_applying(make)


@bug(reds={"tools/reroute": "turn.reroute-told"})
def a_reroute_is_not_told() -> None:
    """A reroute to another model is not reported."""
    untold("model/rerouted")


@bug(reds={"tools/update-plan": "turn.plan-told"})
def the_last_step_of_a_plan_is_not_told() -> None:
    """The last step of the model's plan is not reported."""
    told("turn/plan/updated", lambda params: params["plan"].pop())


@bug(reds={"tools/web-search": "scenario.expectation: webSearch"})
def one_search_of_an_answer_is_shown() -> None:
    """Only the first of several searches in one answer is shown."""
    seen: dict[str, str] = {}

    def edit(method: str, message: Message) -> list[Message]:
        if method in ("item/started", "item/completed"):
            params = message["params"]
            item = params["item"]
            if item["type"] == "webSearch" and item["id"] != seen.setdefault(
                params["turnId"], item["id"]
            ):
                return []
        return [message]

    sent(edit)


@bug(reds={"tools/view-image": "scenario.expectation: imageView"})
def an_image_that_is_looked_at_is_not_shown() -> None:
    """An image that the model gets is not reported to the client."""
    untold("item/started", _is_image)
    untold("item/completed", _is_image)


def _is_image(params: Message) -> bool:
    return params["item"]["type"] == "imageView"


@bug(
    reds={
        "tools/steer": "steer.input-arrives",
        "tools/dynamic/steered": "steer.input-arrives",
        "tools/mcp/steered": "steer.input-arrives",
    }
)
def added_input_waits_for_the_next_turn() -> None:
    """Input added to a running turn is sent to the model only in the next turn."""

    def waiting(_: Any) -> Any:
        return property(lambda steering: False)

    swap("reference_server.engine.steering:Steering.has_waiting", waiting)
    swap(
        "reference_server.engine.steering:Steering.join",
        lambda join: lambda steering: join(steering) if steering._log.thread.turn is None else None,
    )
