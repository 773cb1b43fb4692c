"""Removing a deviation of a profile: what to do, and the lines to paste into a file."""

import json

from harness.client.target.profile import BUILT_IN_PREFIX, Deviation, Profile
from harness.client.target.tomltext import dotted_key


def removal_of(entry: Deviation, profile: Profile) -> tuple[str, str]:
    """Return how to remove an entry, and the lines of TOML to paste.

    Both are "" if the profile does not have it, the second if it stands in the profile's own file.
    """
    if entry not in profile.deviations:
        return "", ""
    index = profile.deviations.index(entry)
    place, own_file = profile.place("deviations", index, "rule"), profile.place("name").file
    if place.file == own_file and not own_file.startswith(BUILT_IN_PREFIX):
        return f"it is at {place}", ""
    without = _without_line([_selector(entry, profile)])
    edition = profile.edition
    if not own_file.startswith(BUILT_IN_PREFIX):
        if not profile.without:
            return f"it is inherited from {place}; write this at the top of {own_file}", without
        line = _without_line([*profile.without, _selector(entry, profile)])
        return f"it is inherited from {place}; write this in {own_file}", line
    family = own_file.removeprefix(BUILT_IN_PREFIX)
    extends = profile.name if edition is None or edition.is_named else family
    lines = [f'name = "{extends}-mine"', f'extends = "{extends}"']
    if edition is not None and edition.is_newer and not edition.is_named:
        lines += ["", "[[releases]]", f'since = "{edition.release}"']
    advice = f"it is built in ({place}); write these lines into a file, and give --target FILE"
    return advice, "\n".join([*lines, without])


def _selector(entry: Deviation, profile: Profile) -> str:
    """Return the shortest key that names this entry alone of the profile's."""
    columns = (entry.rule, entry.scenario, entry.pinned)
    rows = [(one.rule, one.scenario, one.pinned) for one in profile.deviations]
    for count in range(1, len(columns)):
        if sum(row[:count] == columns[:count] for row in rows) == 1:
            return dotted_key(("deviations", *columns[:count]))
    return dotted_key(("deviations", *columns))


def _without_line(keys: list[str]) -> str:
    return f"without = [{', '.join(map(_literal, keys))}]"


def _literal(key: str) -> str:
    """Return a dotted key as a string of TOML, without escapes if it needs none."""
    if "'" in key:
        return json.dumps(key, ensure_ascii=False)
    return f"'{key}'" if '"' in key else f'"{key}"'
