"""Random trees of files and edits, and the patch that a careful model would write for them.

It uses no code of the patch engine, so that it can test it.
"""

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path

from hypothesis import strategies as st

Snapshot = dict[str, tuple[bytes, int]]

NAMES = (
    "a.txt",
    "b",
    "src/m.py",
    "src/deep/n.py",
    "with space",
    "ümlaut/x",
    'q"uote',
    "back\\slash",
    "tab\tin it",
)


def snapshot(root: Path) -> Snapshot:
    """Return content and permission bits of each file below a folder; folders end with `/`."""
    found: Snapshot = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        mode = stat.S_IMODE(path.lstat().st_mode)
        if path.is_symlink():
            found[name] = (b"-> " + os.fsencode(os.readlink(path)), 0)
        elif path.is_dir():
            found[f"{name}/"] = (b"", mode)
        else:
            found[name] = (path.read_bytes(), mode)
    return found


def files(root: Path) -> Snapshot:
    """Return the snapshot of a folder without its subfolders."""
    return {name: one for name, one in snapshot(root).items() if not name.endswith("/")}


@dataclass(frozen=True, slots=True)
class File:
    """A text file; `lines` are without line endings."""

    lines: tuple[str, ...]
    ending: str = "\n"
    ends: bool = True
    mark: bool = False
    executable: bool = False

    @property
    def content(self) -> bytes:
        text = self.ending.join(self.lines) + (self.ending if self.ends and self.lines else "")
        return (b"\xef\xbb\xbf" if self.mark else b"") + text.encode()

    @property
    def mode(self) -> int:
        return 0o755 if self.executable else 0o644


Tree = dict[str, File]


def write_tree(root: Path, tree: Mapping[str, File]) -> None:
    for name, file in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(file.content)
        path.chmod(file.mode)


def expected(tree: Mapping[str, File]) -> Snapshot:
    return {name: (file.content, file.mode) for name, file in tree.items()}


@dataclass(frozen=True, slots=True)
class Edit:
    """Change of one file: `before` is None if it is added, `after` if it is deleted."""

    before: File | None
    after: File | None
    moved_to: str | None = None


def patch_for(edits: Mapping[str, Edit], context: int = 3) -> str:
    """Return the patch text for edits, by path, with this number of context lines."""
    lines = ["*** Begin Patch"]
    for name, edit in edits.items():
        if edit.before is None:
            assert edit.after is not None
            lines += [f"*** Add File: {name}", *(f"+{line}" for line in edit.after.lines)]
        elif edit.after is None:
            lines.append(f"*** Delete File: {name}")
        else:
            lines.append(f"*** Update File: {name}")
            if edit.moved_to is not None:
                lines.append(f"*** Move to: {edit.moved_to}")
            lines += _hunks(edit.before.lines, edit.after.lines, context)
    return "\n".join([*lines, "*** End Patch"])


def _hunks(old: tuple[str, ...], new: tuple[str, ...], context: int) -> Iterator[str]:
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        yield "@@"
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[i1:i2])
            else:
                yield from (f"-{line}" for line in old[i1:i2])
                yield from (f"+{line}" for line in new[j1:j2])


WHOLE = 10_000
_words = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\ufeff"), max_size=8)
# Few different lines make for many places that look alike.
_repeating = st.lists(st.sampled_from(["", "x", " x", "}", "@@", "*** End Patch"]), max_size=9)


@st.composite
def _changed(draw: st.DrawFn, lines: tuple[str, ...]) -> tuple[str, ...]:
    changed = list(lines)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(changed)))
        changed[at : at + draw(st.integers(0, 2))] = draw(st.lists(_words, max_size=2))
    return tuple(changed)


@st.composite
def _some_file(draw: st.DrawFn, *, apart: bool) -> File:
    if apart:
        # Each line is another: any context finds its one place.
        words = draw(st.lists(_words, max_size=30))
        lines = [f"{at}: {word}" for at, word in enumerate(words)]
    else:
        lines = draw(_repeating | st.lists(_words, max_size=6))
    ends = draw(st.booleans()) or not lines or not lines[-1]
    # A single line without its end does not show which end it would have.
    ending = draw(st.sampled_from(["\n", "\r\n"])) if len(lines) > 1 or ends else "\n"
    return File(
        tuple(lines),
        ending if lines else "\n",
        ends,
        bool(lines) and draw(st.booleans()),
        draw(st.booleans()),
    )


@st.composite
def trees_with_edits(draw: st.DrawFn, *, apart: bool) -> tuple[Tree, dict[str, Edit], Tree]:
    """Draw a tree, edits of some of its files, and the resulting tree."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
    present = draw(st.integers(0, len(names)))
    tree = {name: draw(_some_file(apart=apart)) for name in names[:present]}
    after = dict(tree)
    edits: dict[str, Edit] = {}
    for name in names[:present]:
        match draw(st.sampled_from(["keep", "update", "move", "delete", "replace"])):
            case "update" | "move" as kind:
                before = tree[name]
                lines = draw(_changed(before.lines))
                changed = replace(before, lines=lines)
                target = f"moved/{name}" if kind == "move" else name
                if changed == before and target == name:
                    continue
                edits[name] = Edit(before, changed, target if kind == "move" else None)
                del after[name]
                after[target] = changed
            case "delete":
                edits[name] = Edit(tree[name], None)
                del after[name]
            case "replace":
                new = File(tuple(draw(st.lists(_words, max_size=4))))
                edits[name] = Edit(None, new)
                after[name] = replace(new, executable=tree[name].executable)
            case _:
                pass
    for name in names[present:]:
        new = File(tuple(draw(st.lists(_words, max_size=4))))
        edits[name] = Edit(None, new)
        after[name] = new
    return tree, edits, after
