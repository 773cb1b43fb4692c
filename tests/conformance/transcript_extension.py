"""Snapshot extension for transcripts: one readable file for each area of scenarios."""

from pathlib import Path
from typing import Any

from syrupy.data import SnapshotCollection
from syrupy.extensions.amber import AmberSnapshotExtension
from syrupy.location import PyTestLocation
from syrupy.types import SerializableData, SnapshotIndex

FOLDER = Path(__file__).parent / "__snapshots__" / "test_transcripts"


class TranscriptExtension(AmberSnapshotExtension):
    """Extension that stores text unchanged, in the file of its area; names are `area/scenario`."""

    def serialize(self, data: SerializableData, **kwargs: Any) -> str:
        """Return the text unchanged."""
        return str(data)

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        """Return the test and the name given to `snapshot(name=…)`; syrupy finds the test by it."""
        return f"{test_location.methodname}[{index}]"

    @classmethod
    def get_file_basename(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
        """Return the area."""
        return str(index).split("/", 1)[0]

    @classmethod
    def get_location(cls, *, test_location: PyTestLocation, index: SnapshotIndex) -> str:
        """Return the path of the file of an area, in the folder of the test module."""
        area = cls.get_file_basename(test_location=test_location, index=index)
        folder = Path(cls.dirname(test_location=test_location)) / test_location.basename
        return str(folder / f"{area}.{cls.file_extension}")

    @classmethod
    def matches_test_location(
        cls, *, test_location: PyTestLocation, snapshot_location: str
    ) -> bool:
        """Tell whether a file lies in the folder of the test module."""
        return Path(snapshot_location).parent.name == test_location.basename


def transcripts() -> dict[str, str]:
    """Return all reviewed transcripts by the names of their scenarios."""
    found: dict[str, str] = {}
    for path in sorted(FOLDER.glob("*.ambr")):
        collection: SnapshotCollection = TranscriptExtension().read_snapshot_collection(str(path))
        for snapshot in collection:
            name = snapshot.name.partition("[")[2].removesuffix("]")
            found[name] = str(snapshot.data)
    return found
