"""Bugs about skills: the folders, the settings that last, and the use of skills."""

from __future__ import annotations

from typing import Any

from tests.conformance.bugs.planting import Message, instead, items, received, replied, swap
from tests.conformance.bugs.registry import bug

LIBRARY = "reference_server.skills.library:Library"


@bug(reds={"skills/no-skills": "skills.entry-per-cwd"})
def what_has_no_skills_is_not_listed() -> None:
    """A directory without skills of its own has no entry."""

    def left_out(result: Message) -> None:
        result["data"] = [
            one for one in result["data"] if one["cwd"] in str([s["path"] for s in one["skills"]])
        ]

    replied("skills/list", left_out)


@bug(reds={"skills/reload": "skills.reload-rescans"})
def what_was_listed_once_is_listed_for_ever() -> None:
    """A forced reload returns the stored listing."""

    def entries(original: Any) -> Any:
        async def remembered(library: Any, cwds: Any, extra: Any, *, reload: bool) -> Any:
            return await original(library, cwds, extra, reload=False)

        return remembered

    swap(f"{LIBRARY}.entries", entries)


@bug(reds={"skills/scopes": "skills.user-listed"})
def a_project_with_skills_hides_those_of_the_user() -> None:
    """The skills of the user are missing in every listing."""

    def roots(original: Any) -> Any:
        def some(library: Any, cwd: str, extra: Any) -> Any:
            found = original(library, cwd, extra)
            return [one for one in found if one[1] != "user"]

        return some

    swap(f"{LIBRARY}._roots", roots)


@bug(reds={"skills/extra-roots": "skills.own-directory"})
def extra_roots_are_for_all() -> None:
    """Extra roots of one directory are scanned for every directory."""

    def entries(original: Any) -> Any:
        async def shared(library: Any, cwds: Any, extra: Any, **how: Any) -> Any:
            every = [root for roots in extra.values() for root in roots]
            return await original(library, cwds, dict.fromkeys(cwds, every), **how)

        return shared

    swap(f"{LIBRARY}.entries", entries)


@bug(reds={"skills/list-and-disable": "skills.config-one-skill"})
def skills_are_disabled_by_name() -> None:
    """Every skill in a folder of that name is disabled, wherever it lies."""

    def holds(original: Any) -> Any:
        def alike(disabled: Any, skill: Any) -> bool:
            folders = {path.split("/")[-2] for path in disabled._paths}
            return skill.path.split("/")[-2] in folders

        return alike

    swap("reference_server.skills.switches:Disabled.holds", holds)


@bug(reds={"skills/disabled-for-good": "skills.config-lasts"})
def what_is_disabled_is_kept_in_memory() -> None:
    """A restarted server does not know which skills were disabled."""
    paths: set[str] = set()

    def keep(_: Any, path: str, *, enabled: bool) -> None:
        (paths.discard if enabled else paths.add)(path)

    def read(original: Any) -> Any:
        def remembered(disabled: Any, _: Any) -> Any:
            return disabled(set(paths))

        return classmethod(remembered)

    instead("reference_server.skills.switches:Switches.set", keep)
    swap("reference_server.skills.switches:Disabled.read", read)


@bug(reds={"skills/broken": "skills.listed-despite-errors"})
def one_bad_skill_spoils_all() -> None:
    """A skill that cannot be read fails the whole listing."""
    from reference_server.refusal import invalid_request

    def tell(_: Any, path: str, message: str) -> None:
        raise invalid_request(f"{path} {message}")

    instead("reference_server.skills.scan:_Walk._add_problem", tell)


@bug(reds={"skills/of-the-session": "skills.session-directory"})
def without_a_folder_the_root_is_scanned() -> None:
    """A listing that names no directory is one of the root of the file system."""

    def everywhere(method: str, message: Message) -> Message:
        if method == "skills/list" and not message["params"].get("cwds"):
            message["params"]["cwds"] = ["/"]
        return message

    received(everywhere)


@bug(reds={"skills/companions": "skills.companions-shown"})
def what_lies_beside_a_skill_is_passed_over() -> None:
    """A skill has no interface."""
    instead("reference_server.skills.scan:read_companions", lambda folder: (None, []))


@bug(
    reds={
        "skills/invoke": "skills.invocation-taken",
        "skills/mention": "turn.mention-taken",
    }
)
def words_are_all_that_is_taken() -> None:
    """A turn whose input has more than texts is refused."""

    def refused(method: str, message: Message) -> Message:
        for part in message.get("params", {}).get("input", []):
            if part["type"] != "text":
                part["type"] = "unheard-of"
        return message

    received(refused)


@bug(reds={"skills/by-name": "scenario.expectation: turn/start was answered by"})
def a_skill_that_nobody_has_is_refused() -> None:
    """A turn is rejected if its text has an unknown name after a dollar sign."""

    def refused(method: str, message: Message) -> Message:
        if method == "turn/start" and "$fnord" in str(message["params"]["input"]):
            message["params"]["input"] = "no such skill"
        return message

    received(refused)


@bug(reds={"skills/turn-after-turn": "user-message.echo"})
def a_name_makes_way_for_the_skill() -> None:
    """The user's message is shown with a skill's text instead of its name."""

    def shown(_: str, item: Message) -> None:
        for part in item["content"]:
            if part["type"] == "text":
                part["text"] = part["text"].replace("$tally", "Count the things one by one.")

    items("userMessage", shown)
