"""Scripts of the threads, and the next step for each model call.

With one thread, every call belongs to it. With several, a call belongs to the thread whose marker
(a unique text in its first user text) it contains, in a fork the last such marker. Without markers,
threads are distinguished by their first user text and get the scripts in the order of their first
calls.
"""

from collections.abc import Callable, Mapping, Sequence

from harness.model.pace import Pace
from harness.model.script import ModelStep, Script, Times, When

Fits = Callable[[When], bool]


class Track:
    """One thread's script and how far it has been played."""

    def __init__(self, alias: str, script: Script) -> None:
        self.alias = alias
        self.script = script
        self._cursor = 0
        self._played = 0
        self._user_messages = 0

    @property
    def unplayed_steps(self) -> list[int]:
        """Return the indexes of the steps that no call has used, except those with `when`."""
        first = self._cursor + (1 if self._played else 0)
        return [
            index for index in range(first, len(self.script)) if self.script[index].when is None
        ]

    @property
    def unplayed_count(self) -> int:
        """Return the number of steps that no call has used, except those with `when`."""
        return len(self.unplayed_steps)

    @property
    def is_finished(self) -> bool:
        """Return whether every step was used as often as it says."""
        repeats = bool(self._played) and isinstance(self._times(), int)
        return not (repeats or self.unplayed_steps)

    def next_step(self, user_messages: int, is_for_call: Fits = lambda _when: True) -> int:
        """Return the index of the step for a call, -1 if no step is left for it.

        A step may answer several calls (`times`). A new user message in the input means that a new
        turn began, which ends `until-turn-ends`. Steps whose `when` does not match are skipped; a
        call without a matching step gets none, and leaves the rest to later calls.
        """
        if user_messages > self._user_messages:
            if self._played and self._times() == "until-turn-ends":
                self._advance()
            self._user_messages = user_messages
        conditions = (step.when for step in self.script[self._cursor :])
        skipped = next(
            (count for count, when in enumerate(conditions) if when is None or is_for_call(when)),
            None,
        )
        if skipped is None:
            return -1
        for _ in range(skipped):
            self._advance()
        index = self._cursor
        self._played += 1
        times = self._times()
        if isinstance(times, int) and self._played >= times:
            self._advance()
        return index

    def named_by_next_step(self, user_texts: Sequence[str], is_for_call: Fits) -> int | None:
        """Return the index of the last user text that the next step for a call names in its `when`.

        None if that step has no condition; -1 if no step is left, or it names no user text.
        """
        steps = self.script[self._cursor :]
        step = next((step for step in steps if step.when is None or is_for_call(step.when)), None)
        if step is None:
            return -1
        if step.when is None:
            return None
        words = [word for word in step.when.input_contains if isinstance(word, str)]
        named = [
            index for index, text in enumerate(user_texts) if any(word in text for word in words)
        ]
        return max(named, default=-1)

    def skip(self) -> None:
        """Skip the rest of the script."""
        self._cursor, self._played = len(self.script), 0

    def step(self, index: int) -> ModelStep | None:
        """Return the step of that index, None for -1."""
        return self.script[index] if index >= 0 else None

    def pace(self, index: int) -> Pace | None:
        """Return the pace of the step of that index: its own, or the last one before it."""
        steps = reversed(self.script[: index + 1])
        return next((step.pace for step in steps if step.pace is not None), None)

    def _times(self) -> Times:
        return self.script[self._cursor].times if self._cursor < len(self.script) else 1

    def _advance(self) -> None:
        self._cursor += 1
        self._played = 0


class Tracks:
    """All tracks of a scenario. `markers` maps an alias to the marker in its first user text."""

    def __init__(
        self, scripts: Mapping[str, Script], markers: Mapping[str, str] | None = None
    ) -> None:
        self.all = [Track(alias, list(script)) for alias, script in scripts.items()]
        self._markers = dict(markers or {})
        self._by_text: dict[str, Track] = {}

    @property
    def unplayed_count(self) -> int:
        """Return the number of steps in all scripts that no call has used."""
        return sum(track.unplayed_count for track in self.all)

    def pace_of(self, alias: str, index: int) -> Pace | None:
        """Return the pace of a step of a thread's script, None for no waits."""
        return next((track.pace(index) for track in self.all if track.alias == alias), None)

    def claims(self, user_texts: Sequence[str]) -> bool:
        """Return whether the texts contain one of the markers."""
        markers = [marker for marker in self._markers.values() if marker]
        return any(marker in text for marker in markers for text in user_texts)

    def _last_text_of(self, track: Track, user_texts: Sequence[str]) -> int:
        """Return the index of the last text with the track's marker, -1 if there is none."""
        marker = self._markers.get(track.alias, "")
        return max(
            (index for index, text in enumerate(user_texts) if marker and marker in text),
            default=-1,
        )

    def track_of(
        self, user_texts: Sequence[str], is_for_call: Fits = lambda _when: False
    ) -> Track | None:
        """Return the track that a call belongs to, None if it belongs to none.

        A compaction or a rollback can take a thread's marker away: then the next step of another
        thread names a later text in its `when` than the one that the marker speaks for.
        """
        if len(self.all) == 1:
            return self.all[0]
        track = self._track_of_texts(user_texts)
        named = -1 if track is None else track.named_by_next_step(user_texts, is_for_call)
        for other in self.all if named is not None else ():
            later = other.named_by_next_step(user_texts, is_for_call)
            if named is not None and later is not None and later > named:
                track, named = other, later
        return track

    def _track_of_texts(self, user_texts: Sequence[str]) -> Track | None:
        if self._markers:
            # A fork's history also has the marker of its original thread: the last marker counts.
            last_markers = [(self._last_text_of(track, user_texts), track) for track in self.all]
            index, track = max(last_markers, key=lambda entry: entry[0])
            return track if index >= 0 else None
        first = user_texts[0] if user_texts else ""
        if first not in self._by_text and len(self._by_text) < len(self.all):
            self._by_text[first] = self.all[len(self._by_text)]
        return self._by_text.get(first)
