"""Bugs about file changes: what is made of a patch, and the diff of the turn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tests.conformance.bugs.planting import Message, sent, swap, told
from tests.conformance.bugs.registry import bug

PATCH = "reference_server.engine.tools.patch"


def instead_of_applying(change: Any) -> None:
    """Let `change(plan, original)` make a patch."""

    def apply(original: Any) -> Any:
        def changed(plan: Any, journal: Any) -> None:
            change(plan, lambda: original(plan, journal))

        return changed

    swap(f"{PATCH}:apply_plan", apply)


@bug(reds={"files/through-the-shell": "scenario.expectation: made.txt is absent"})
def a_patch_through_a_shell_is_only_shown() -> None:
    """A patch that comes as a command is told as a file change that was made, and is not made."""
    instead_of_applying(lambda plan, apply: None)


@bug(reds={"files/add": "scenario.expectation: made.txt is absent"})
def a_file_is_added_where_its_folder_is_not() -> None:
    """Of a path through folders that are not there only the file's name is taken."""

    def make(plan: Any, apply: Any) -> None:
        apply()
        for change in plan.changes:
            place = Path(change.place.path)
            place.rename(place.parents[2] / place.name)

    instead_of_applying(make)


@bug(reds={"files/delete": "scenario.expectation: notes.txt exists"})
def a_deleted_file_is_emptied() -> None:
    """A file that is to be deleted is left without content."""

    def make(plan: Any, apply: Any) -> None:
        apply()
        for change in plan.changes:
            Path(change.place.path).write_text("")

    instead_of_applying(make)


@bug(reds={"files/move": "scenario.expectation: notes.txt exists"})
def a_moved_file_is_copied() -> None:
    """A file that is moved stays where it was, too."""

    def make(plan: Any, apply: Any) -> None:
        before = {change.place.path: Path(change.place.path).read_text() for change in plan.changes}
        apply()
        for path, text in before.items():
            Path(path).write_text(text)

    instead_of_applying(make)


@bug(reds={"files/update": "scenario.expectation: notes.txt: line"})
def changed_lines_go_to_the_end() -> None:
    """Lines that take the place of others are put at the end of the file."""

    def make(plan: Any, apply: Any) -> None:
        apply()
        for change in plan.changes:
            place = Path(change.place.path)
            place.write_text("".join(sorted(place.read_text().splitlines(True), key=str.isupper)))

    instead_of_applying(make)


@bug(reds={"files/context-not-found": "scenario.expectation: notes.txt: line"})
def lines_that_are_not_there_are_added() -> None:
    """A patch whose lines are not found adds the new ones, though it is told to have failed."""
    _made_though_it_failed("notes.txt")


@bug(reds={"files/no-such-file": "scenario.expectation: missing.txt exists"})
def a_missing_file_is_made() -> None:
    """A patch of a file that is not there makes it, though it is told to have failed."""
    _made_though_it_failed("missing.txt")


def _made_though_it_failed(name: str) -> None:
    def plan(original: Any) -> Any:
        def tried(text: str, cwd: str, *others: Any) -> Any:
            try:
                return original(text, cwd, *others)
            except Exception:
                with open(os.path.join(cwd, name), "a") as file:
                    file.write("new\n")
                raise

        return tried

    swap(f"{PATCH}:_plan_patch", plan)


@bug(reds={"files/two-in-a-turn": "turn.diff-after-change"})
def only_the_first_file_change_is_followed_by_a_diff() -> None:
    """The diff of a turn is told after its first file change, and not after the second."""
    seen: set[str] = set()

    def edit(method: str, message: Message) -> list[Message]:
        if method == "turn/diff/updated":
            turn = message["params"]["turnId"]
            if turn in seen:
                return []
            seen.add(turn)
        return [message]

    sent(edit)


@bug(reds={"files/two-turns": "scenario.expectation: diff of turn v"})
def the_diff_of_a_thread_grows_with_its_turns() -> None:
    """The diff of a turn has the changes of the turns before it, too."""
    whole = ""

    def grow(params: Message) -> None:
        nonlocal whole
        whole += params["diff"]
        params["diff"] = whole

    told("turn/diff/updated", grow)
