"""Bugs about file changes: wrong effects of a patch, wrong diffs of a turn."""

from __future__ import annotations

from collections.abc import Callable
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
    """A patch that comes as a command is reported as a completed file change, but not made."""
    instead_of_applying(lambda plan, apply: None)


@bug(reds={"files/add": "scenario.expectation: made.txt is absent"})
def a_file_is_added_where_its_folder_is_not() -> None:
    """A file in missing folders is added outside them, under its name alone."""

    def make(plan: Any, apply: Any) -> None:
        apply()
        for change in plan.changes:
            place = Path(change.place.path)
            place.rename(place.parents[2] / place.name)

    instead_of_applying(make)


@bug(reds={"files/delete": "scenario.expectation: notes.txt exists"})
def a_deleted_file_is_emptied() -> None:
    """A deleted file stays, without content."""

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
    """A patch whose lines are not found adds the new ones, though it is reported as failed."""
    _made_though_it_failed("notes.txt")


@bug(reds={"files/no-such-file": "scenario.expectation: missing.txt exists"})
def a_missing_file_is_made() -> None:
    """A patch of a missing file makes it, though it is reported as failed."""
    _made_though_it_failed("missing.txt")


def _made_though_it_failed(name: str) -> None:
    def make(folder: Path) -> None:
        with (folder / name).open("a") as file:
            file.write("new\n")

    _changed_though_it_failed(make)


def _changed_though_it_failed(change: Callable[[Path], None]) -> None:
    """Let `change` work on the folder when a patch is refused."""

    def plan(original: Any) -> Any:
        def tried(text: str, cwd: str, *others: Any) -> Any:
            try:
                return original(text, cwd, *others)
            except Exception:
                change(Path(cwd))
                raise

        return tried

    swap(f"{PATCH}:_plan_patch", plan)


KEPT = "files/kept"


def _changed_after_the_patch(change: Callable[[bytes], bytes]) -> None:
    """Let `change` work on the bytes of each file that a patch has changed."""

    def make(plan: Any, apply: Any) -> None:
        apply()
        for place in (Path(one.place.path) for one in plan.changes):
            place.write_bytes(change(place.read_bytes()))

    instead_of_applying(make)


@bug(reds={f"{KEPT}/line-endings": "scenario.expectation: windows.txt: line 1, byte 1"})
def line_endings_become_those_of_unix() -> None:
    """A changed file has its CR LF replaced by LF in all lines."""
    _changed_after_the_patch(lambda content: content.replace(b"\r\n", b"\n"))


@bug(reds={f"{KEPT}/byte-order-mark": "scenario.expectation: notes.txt: line 1, byte 0"})
def byte_order_mark_is_lost() -> None:
    """A changed file has no byte order mark any more."""
    _changed_after_the_patch(lambda content: content.removeprefix(b"\xef\xbb\xbf"))


@bug(reds={f"{KEPT}/no-final-newline": "scenario.expectation: notes.txt: line 2, byte 3"})
def final_newline_is_added_in_silence() -> None:
    """A changed file gets a newline at its end, which no diff shows."""
    _changed_after_the_patch(lambda content: content.rstrip(b"\n") + b"\n")

    def hide(params: Message) -> None:
        shown = "-a\n-b\n\\ No newline at end of file\n+A\n+b\n"
        silent = "-a\n+A\n b\n\\ No newline at end of file\n"
        assert shown in params["diff"], "the bug finds nothing to hide"
        params["diff"] = params["diff"].replace(shown, silent)

    told("turn/diff/updated", hide)


@bug(reds={f"{KEPT}/encoding": "scenario.expectation: latin.txt: line 1, byte 3"})
def other_encodings_are_lost() -> None:
    """Bytes that are not UTF-8 are replaced by the replacement character."""

    def reread(folder: Path) -> None:
        file = folder / "latin.txt"
        file.write_text(file.read_text("utf-8", "replace"), "utf-8")

    _changed_though_it_failed(reread)


@bug(reds={f"{KEPT}/mode": "scenario.expectation: run.sh: mode: expected 755; found 644"})
def modes_are_lost() -> None:
    """A changed file has the mode of a new one."""

    def make(plan: Any, apply: Any) -> None:
        apply()
        for one in plan.changes:
            Path(one.place.path).chmod(0o644)

    instead_of_applying(make)


@bug(reds={f"{KEPT}/link": "scenario.expectation: link.txt is a file of its own"})
def link_becomes_a_file() -> None:
    """A link is replaced by a file with the content of its target."""

    def replace(folder: Path) -> None:
        content = (folder / "link.txt").read_bytes()
        (folder / "link.txt").unlink()
        (folder / "link.txt").write_bytes(content)

    _changed_though_it_failed(replace)


@bug(reds={f"{KEPT}/deleted-link": "scenario.expectation: notes.txt is absent"})
def target_of_a_link_is_deleted() -> None:
    """Instead of a link its target is deleted."""
    _changed_though_it_failed(lambda folder: (folder / "notes.txt").unlink())


@bug(reds={"files/two-in-a-turn": "turn.diff-after-change"})
def only_the_first_file_change_is_followed_by_a_diff() -> None:
    """The diff of a turn is reported after its first file change, but not after the second."""
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
