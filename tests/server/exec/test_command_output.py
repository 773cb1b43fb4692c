"""The bounded text kept of a command's output, without processes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_server.sandbox.output import Output, marker


def all_pieces(output: Output, chunks: list[bytes]) -> list[str]:
    pieces = [piece for chunk in chunks if (piece := output.feed(chunk))]
    if last := output.finish():
        pieces.append(last)
    return pieces


@given(st.lists(st.binary(max_size=40), max_size=20), st.integers(0, 30), st.integers(0, 30))
def test_the_pieces_are_the_text_and_the_text_is_bounded(chunks, head, tail) -> None:
    output = Output(head, tail)
    pieces = all_pieces(output, chunks)
    printed = b"".join(chunks)
    assert "".join(pieces) == output.text
    if len(printed) <= head + tail:
        assert output.cut_bytes == 0
        assert output.text == printed.decode("utf-8", "replace")
    else:
        first, found, last = output.text.partition(marker(output.cut_bytes))
        assert found
        # What is not cut is what was printed: nothing is lost but what the marker counts.
        assert printed.decode("utf-8", "replace").startswith(first) or head == 0
        kept = len(printed) - output.cut_bytes
        assert head + tail - 6 <= kept <= head + tail
        assert printed[len(printed) - tail :].decode("utf-8", "replace").endswith(last)


@given(st.text(max_size=60), st.data(), st.integers(0, 40), st.integers(0, 40))
def test_valid_text_stays_valid_wherever_it_is_divided_or_cut(text, data, head, tail) -> None:
    printed = text.encode("utf-8")
    output = Output(head, tail)
    chunks: list[bytes] = []
    while printed:
        size = data.draw(st.integers(1, len(printed)))
        chunks.append(printed[:size])
        printed = printed[size:]
    pieces = all_pieces(output, chunks)
    kept = output.text.replace(marker(output.cut_bytes), "", 1)
    assert "\N{REPLACEMENT CHARACTER}" not in kept or "\N{REPLACEMENT CHARACTER}" in text
    assert len(kept.encode()) == len(text.encode()) - output.cut_bytes
    if output.cut_bytes:
        first, _, last = output.text.partition(marker(output.cut_bytes))
        assert text.startswith(first)
        assert text.endswith(last)
    else:
        assert output.text == text
    assert "" not in pieces


def test_a_character_waits_for_its_last_byte() -> None:
    output = Output()
    smile = "\N{GRINNING FACE}".encode()
    assert [output.feed(smile[n : n + 1]) for n in range(4)] == ["", "", "", smile.decode()]
    assert output.feed(smile[:2]) == ""
    assert output.finish() == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("printed", "kept"),
    [
        (b"abcdef", "abcdef"),
        (b"abcXdef", "abc\n[... 1 bytes of output cut ...]\ndef"),
        ("abäXdef".encode(), "ab\n[... 3 bytes of output cut ...]\ndef"),
        # Three bytes from the end stands the second byte of the `ä`.
        ("abcXäef".encode(), "abc\n[... 3 bytes of output cut ...]\nef"),
        ("abcäef".encode(), "abc\n[... 2 bytes of output cut ...]\nef"),
    ],
)
def test_a_character_that_a_cut_divides_is_dropped(printed, kept) -> None:
    output = Output(3, 3)
    output.feed(printed)
    output.finish()
    assert output.text == kept
