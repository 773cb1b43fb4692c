"""A folder's state is read, put back, and compared."""

from pathlib import Path

from disk_states import contents, read_state, write_state


def test_a_state_that_is_put_back_is_the_same(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    (one / "folder" / "empty").mkdir(parents=True)
    (one / "a").write_bytes(b"content")
    (one / "a").chmod(0o400)
    (one / "folder" / "same").hardlink_to(one / "a")
    (one / "no rights").touch(mode=0)
    (one / "link").symlink_to("a")
    (one / "folder").chmod(0o700)
    write_state(read_state(one), other)
    assert contents(read_state(other)) == contents(read_state(one))
    assert (other / "a").stat().st_mtime_ns == (one / "a").stat().st_mtime_ns
    assert (other / "a").samefile(other / "folder" / "same")
    for change in (
        lambda: (other / "a").write_bytes(b"Content"),
        lambda: (other / "a").chmod(0o600),
        lambda: (other / "folder" / "empty").rmdir(),
        lambda: (other / "link").unlink(),
    ):
        before = read_state(other)
        change()
        assert read_state(other) != before
        assert contents(read_state(other)) != contents(before)
