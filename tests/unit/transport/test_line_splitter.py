"""Cutting bytes into lines: chunks make no difference, and memory stays below the limit."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from harness.client.transport.jsonl import MAX_KEPT_BYTES_OF_LONG_LINE, Line, LineSplitter
from harness.trace.frame import Damage, DamageKind

CUT_OFF = Damage(DamageKind.CUT_OFF, "the stream ended before the line did")
LIMIT = 4 * MAX_KEPT_BYTES_OF_LONG_LINE
# Bytes near the interesting ones: ends of lines, parts of long characters, and runs of one byte.
PIECES = st.lists(
    st.one_of(
        st.sampled_from([b"\n", b"\r", b"\r\n", b" ", b"{}", b"\xe2\x80\xa8", b"\xff", b"\x00"]),
        st.binary(max_size=20),
        st.integers(0, 2 * LIMIT).map(lambda size: b"x" * size),
    ),
    max_size=12,
)


def lines_of(chunks: list[bytes]) -> list[Line]:
    splitter = LineSplitter(LIMIT)
    found = [line for chunk in chunks for line in splitter.feed(chunk)]
    rest = splitter.finish()
    return found if rest is None else [*found, rest]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = [*sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(PIECES.map(b"".join), st.lists(st.integers(min_value=0), max_size=30))
@example(b"one\r\ntwo\n", [4, 5])
@example(b"x" * (LIMIT + 1) + b"\n", [LIMIT])
def test_any_chunking_gives_the_same_lines(data: bytes, places: list[int]) -> None:
    assert lines_of(cut(data, places)) == lines_of([data])


@given(PIECES.map(b"".join))
def test_lines_are_the_stream_without_line_ends_and_empty_lines(data: bytes) -> None:
    expected = [line.removesuffix(b"\r") for line in data.split(b"\n")]
    expected = [line for line in expected if line.strip()]
    found = lines_of([data])
    if all(len(line) < LIMIT for line in expected):
        # What stands after the last line end was cut off, so its carriage return is content too.
        assert [line.raw for line in found] == expected
    assert len(found) == len(expected)


@given(PIECES)
def test_memory_stays_below_the_limit_whatever_arrives(chunks: list[bytes]) -> None:
    splitter = LineSplitter(LIMIT)
    for chunk in chunks:
        splitter.feed(chunk)
        assert len(splitter.partial) <= LIMIT


def test_line_of_exactly_the_limit_is_whole() -> None:
    assert lines_of([b"x" * LIMIT + b"\n"]) == [Line(b"x" * LIMIT)]


def test_longer_line_is_cut_to_its_head_with_its_length() -> None:
    (line,) = lines_of([b"x" * LIMIT, b"y" * 10, b"\n"])
    assert line.raw == b"x" * MAX_KEPT_BYTES_OF_LONG_LINE
    words = f"a line of {LIMIT + 10} bytes; the limit is {LIMIT}"
    assert line.damage == Damage(DamageKind.TOO_LONG, words)


def test_dropped_bytes_of_a_longer_line_are_counted() -> None:
    splitter = LineSplitter(LIMIT)
    for size in (LIMIT, LIMIT + 10, LIMIT + 20):
        splitter.feed(b"x" * (size - splitter.partial_size))
        assert splitter.partial_size == size
    splitter.feed(b"\n")
    assert splitter.partial_size == 0


def test_line_cut_off_by_the_end_says_so() -> None:
    (line,) = lines_of([b'{"half'])
    assert line == Line(b'{"half', CUT_OFF)


def test_characters_that_end_a_line_elsewhere_do_not_here() -> None:
    text = "a\u2028b\u2029c\u0085d\x0b\x0ce".encode()
    assert lines_of([text + b"\n"]) == [Line(text)]


def test_nothing_is_left_after_the_end() -> None:
    splitter = LineSplitter(LIMIT)
    splitter.feed(b"half")
    assert splitter.partial == b"half"
    assert splitter.finish() is not None
    assert splitter.finish() is None
    assert splitter.partial == b""
