"""The known deviations of a run, with all that its report may say of them."""

from collections.abc import Callable, Collection, Mapping, Sequence

from harness.client.target.profile import Deviation, Profile
from harness.report.results.baseline import is_about
from harness.report.results.entry_removal import removal_of
from harness.report.shards.values import KnownEntry

UserScenarioIds = Callable[[str], Collection[str]]
"""Function from a glob to the ids of users' scenarios, played or not, that it may be about."""


def known_entries(
    profile: Profile,
    entries: Sequence[Deviation],
    places: Mapping[Deviation, str],
    bundled_entries: Collection[Deviation],
    user_scenarios: UserScenarioIds,
) -> list[KnownEntry]:
    """Return the entries. `places` and `bundled_entries` are as in `merge`."""
    edition = profile.edition
    known: list[KnownEntry] = []
    for entry in entries:
        scenarios = () if entry in bundled_entries else user_scenarios(entry.scenario)
        advice, paste = removal_of(entry, profile)
        known.append(
            KnownEntry(
                entry,
                tuple(sorted(name for name in scenarios if is_about(name, entry))),
                places.get(entry, ""),
                advice,
                paste,
                edition is not None and edition.is_outside and entry in profile.deviations,
            )
        )
    return known
