"""Where syrupy keeps transcripts: one readable file per scenario and target.

Here: the naming. syrupy's own single-file extension drops `/` from names, so that `turns/a` and
`turnsa` would share a file; here it becomes `.`. Whole targets are updated at once
(`pytest tests/conformance/test_transcripts.py --snapshot-update`), since an update of a selection
would delete the others. Not here: what a transcript shows (trace.normalise).
"""

from pathlib import Path

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex


class TranscriptExtension(SingleFileSnapshotExtension):
    """One `.transcript` file per name, as text."""

    _write_mode = WriteMode.TEXT
    file_extension = "transcript"

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        """The test and the name given to `snapshot(name=…)`: syrupy relates it to the test."""
        return f"{test_location.snapshot_name}[{_dotted(index)}]"

    @classmethod
    def get_file_basename(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
        """The name given, with `/` as `.`."""
        return _dotted(index)

    @classmethod
    def matches_test_location(
        cls, *, test_location: PyTestLocation, snapshot_location: str
    ) -> bool:
        """A transcript belongs to the test file whose folder it lies in."""
        return Path(snapshot_location).parent.name == test_location.basename


def _dotted(index: SnapshotIndex) -> str:
    return str(index).replace("/", ".")
