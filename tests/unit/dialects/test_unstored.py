"""Items that a release does not store, remembered in a file of the home."""

from pathlib import Path

import pytest

from reference_server.dialect.memory import Memory
from reference_server.dialect.unstored import FILE, MAX_ITEMS, UnstoredItems


def test_items_are_known_after_a_new_start(tmp_path: Path) -> None:
    Memory(tmp_path).note_unstored("item_1_2")
    again = Memory(tmp_path)
    assert again.is_unstored({"id": "item_1_2"})
    assert not again.is_unstored({"id": "item_1_3"})


def test_an_item_is_written_once(tmp_path: Path) -> None:
    items = UnstoredItems(tmp_path)
    items.add("item_1_2")
    items.add("item_1_2")
    assert (tmp_path / FILE).read_text() == "item_1_2\n"


def test_nothing_is_written_without_an_item(tmp_path: Path) -> None:
    assert "item_1_2" not in UnstoredItems(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_only_the_newest_items_are_kept(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text("".join(f"item_{number}\n" for number in range(MAX_ITEMS + 5)))
    items = UnstoredItems(tmp_path)
    assert ("item_4" in items, "item_5" in items) == (False, True)
    assert len(path.read_text().splitlines()) == MAX_ITEMS
    items.add("item_1_2")
    assert ("item_5" in items, "item_1_2" in items) == (False, True)


@pytest.mark.parametrize("home", [None, Path("/no-such-folder")])
def test_without_a_file_items_are_known_until_the_process_ends(home: Path | None) -> None:
    items = UnstoredItems(home)
    items.add("item_1_2")
    assert "item_1_2" in items
    assert "item_1_2" not in UnstoredItems(home)
