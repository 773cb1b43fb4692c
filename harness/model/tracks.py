"""The script that a model call belongs to, and the step of it that comes next.

With one thread, every call belongs to it. With several, a call belongs to the thread whose marker
(a nonce in its first user text) it contains, in a fork the last such marker. Without markers,
threads are distinguished by their first user text and get the scripts in the order of their first
calls.
"""

from collections.abc import Callable, Mapping, Sequence

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
        """The indexes of the steps that no call has used, except those with `when`."""
        first = self._cursor + (1 if self._played else 0)
        return [at for at in range(first, len(self.script)) if self.script[at].when is None]

    @property
    def unplayed(self) -> int:
        """The number of steps that no call has used, except those with `when`."""
        return len(self.unplayed_steps)

    @property
    def over(self) -> bool:
        """Return whether every step was used, and as often as it says."""
        repeats = bool(self._played) and isinstance(self._times(), int)
        return not (repeats or self.unplayed_steps)

    def next_step(self, user_messages: int, fits: Fits = lambda _when: True) -> int:
        """The index of the step for a call, -1 where the script is at its end.

        A step may answer several calls (`times`). A new user message in the input means that a new
        turn began, which ends `until-turn-ends`. A step that is for other calls is skipped; a call
        that none of the rest is for gets none, and leaves them to the calls that follow.
        """
        if user_messages > self._user_messages:
            if self._played and self._times() == "until-turn-ends":
                self._advance()
            self._user_messages = user_messages
        conditions = (step.when for step in self.script[self._cursor :])
        skipped = next(
            (count for count, when in enumerate(conditions) if when is None or fits(when)), None
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

    def skip(self) -> None:
        """Leave the rest of the script out."""
        self._cursor, self._played = len(self.script), 0

    def step(self, index: int) -> ModelStep | None:
        """The step of that index, None for -1."""
        return self.script[index] if index >= 0 else None

    def _times(self) -> Times:
        return self.script[self._cursor].times if self._cursor < len(self.script) else 1

    def _advance(self) -> None:
        self._cursor += 1
        self._played = 0


class Tracks:
    """All tracks of a scenario. `markers` maps an alias to the nonce in its first user text."""

    def __init__(
        self, scripts: Mapping[str, Script], markers: Mapping[str, str] | None = None
    ) -> None:
        self.all = [Track(alias, list(script)) for alias, script in scripts.items()]
        self._markers = dict(markers or {})
        self._by_text: dict[str, Track] = {}

    @property
    def unplayed(self) -> int:
        """The number of steps in all scripts that no call has used."""
        return sum(track.unplayed for track in self.all)

    def claims(self, user_texts: Sequence[str]) -> bool:
        """Return whether the texts contain one of the markers."""
        markers = [marker for marker in self._markers.values() if marker]
        return any(marker in text for marker in markers for text in user_texts)

    def _last(self, track: Track, user_texts: Sequence[str]) -> int:
        """The index of the last text with the track's marker, -1 for none."""
        marker = self._markers.get(track.alias, "")
        return max(
            (at for at, text in enumerate(user_texts) if marker and marker in text), default=-1
        )

    def owner(self, user_texts: Sequence[str]) -> Track | None:
        """The track that a call belongs to, None for none."""
        if len(self.all) == 1:
            return self.all[0]
        if self._markers:
            # A fork's history also has the marker of its original thread: the last marker counts.
            found = [(self._last(track, user_texts), track) for track in self.all]
            at, track = max(found, key=lambda one: one[0])
            return track if at >= 0 else None
        first = user_texts[0] if user_texts else ""
        if first not in self._by_text and len(self._by_text) < len(self.all):
            self._by_text[first] = self.all[len(self._by_text)]
        return self._by_text.get(first)
