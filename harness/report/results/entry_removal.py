"""Removing a deviation of a profile: what to do, and the lines to paste into a file."""

from harness.client.target.profile import BUILT_IN_PREFIX, Deviation, Profile
from harness.client.target.tomltext import dotted_key
from harness.report.results.baseline_update import entry_lines


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
    key = dotted_key(("deviations", entry.rule))
    # `without` removes all rows of a rule, so the others are written again.
    others = [
        other
        for number, other in enumerate(profile.deviations)
        if other.rule == entry.rule
        and other != entry
        and (own_file != profile.place("deviations", number, "rule").file or own_file == place.file)
    ]
    kept = [line for other in others for line in ("", *entry_lines(other))]
    if not own_file.startswith(BUILT_IN_PREFIX):
        advice = f"it is inherited from {place}; write this at the top of {own_file}"
        advice += ", and the rows at its end" if kept else ""
        return advice, "\n".join([_without_line([*profile.without, key]), *kept])
    lines = [
        f'name = "{profile.name}-mine"',
        f'extends = "{profile.name}"',
        _without_line([key]),
        *kept,
    ]
    advice = f"it is built in ({place}); write these lines into a file, and give --target FILE"
    return advice, "\n".join(lines)


def _without_line(keys: list[str]) -> str:
    return f"without = [{', '.join(_literal(key) for key in keys)}]"


def _literal(key: str) -> str:
    """Return a dotted key as a string of TOML that needs no escapes."""
    return f"'{key}'" if '"' in key else f'"{key}"'
