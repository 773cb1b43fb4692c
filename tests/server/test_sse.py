"""Server-sent events: the parser alone."""

from hypothesis import given
from hypothesis import strategies as st

from reference_server.model.sse import SseParser


def parse(data: bytes, size: int | None = None) -> list[bytes]:
    parser = SseParser()
    size = size or len(data) or 1
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return [event for piece in pieces for event in parser.feed(piece)]


def test_an_event_ends_at_its_blank_line() -> None:
    assert parse(b"event: a\ndata: 1\n\ndata: 2\n") == [b"1"]


def test_only_one_space_after_the_colon_is_no_data() -> None:
    assert parse(b"data:a\n\ndata:  b\n\n") == [b"a", b" b"]


def test_several_data_lines_are_joined() -> None:
    assert parse(b"data: a\ndata: b\n\n") == [b"a\nb"]


def test_comments_other_fields_and_empty_events_are_passed_over() -> None:
    assert parse(b": ping\n\nid: 3\nretry: 5\n\ndata: a\n\n\n\n") == [b"a"]


def test_all_three_line_ends_are_understood() -> None:
    expected = [b"a", b"b"]
    for newline in (b"\n", b"\r\n", b"\r"):
        text = b"data: a\n\ndata: b\n\n: end\n".replace(b"\n", newline)
        assert parse(text) == expected, newline


@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), min_size=1)),
    st.sampled_from([b"\n", b"\r\n"]),
    st.integers(1, 7),
)
def test_events_are_the_same_however_the_bytes_arrive(
    texts: list[str], newline: bytes, size: int
) -> None:
    data = [text.encode() for text in texts]
    stream = b"".join(b"data: " + one + newline * 2 for one in data)
    assert parse(stream, size) == data
