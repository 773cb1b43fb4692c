"""The built-in profiles, and a resolved profile with the origin of each line."""

import json
from collections.abc import Iterator
from typing import Any, cast

from harness.client.target.profile import NOT_KNOWN, Profile, builtin_names, load_profile
from harness.client.target.release_rows import RANGE_KEYS
from harness.client.target.tomltext import Loc, dotted_key
from harness.protocol.releases import short_release

_COMMENT_COLUMN, _MAX_LINE = 60, 100
# Keys that say how a file is read.
_RESOLVED_KEYS = ("extends", "without", "releases", "version")
_ROWS = ("deviations", "tools")


def profile_lines(profile: Profile) -> Iterator[str]:
    """Yield a profile as TOML of one release that inherits nothing, with comments on its origin."""
    edition = profile.edition
    if edition is not None and (note := edition.note(profile.name)):
        yield f"# {note}"
    yield from _value_lines(("name",), profile.name, profile)
    yield 'extends = "none"'
    values = profile.model_dump(exclude_unset=True, exclude_none=True, mode="json")
    for key, value in values.items():
        if key not in ("name", *_RESOLVED_KEYS, *_ROWS):
            for loc, inner in _leaves((key,), value):
                yield from _value_lines(loc, inner, profile)
    for key in _ROWS:
        for index, row in enumerate(cast("list[dict[str, Any]]", values.get(key, []))):
            yield ""
            yield _with_comment(f"[[{key}]]", _origin((key, index), profile))
            for column, value in row.items():
                if column not in RANGE_KEYS:
                    yield f"{column} = {_toml(value)}"


def _value_lines(loc: Loc, value: Any, profile: Profile) -> Iterator[str]:
    """Yield the lines of one value; a long list has an element on each."""
    line = f"{dotted_key(loc)} = {_toml(value)}"
    if not isinstance(value, list) or len(line) <= _MAX_LINE:
        yield _with_comment(line, _origin(loc, profile))
        return
    yield _with_comment(f"{dotted_key(loc)} = [", _origin(loc, profile))
    for index, element in enumerate(cast("list[Any]", value)):
        ranges = profile.range_at(*loc, index)
        origin = _origin((*loc, index), profile) if ranges else ""
        yield _with_comment(f"    {_toml(element)},", origin)
    yield "]"


def _origin(loc: Loc, profile: Profile) -> str:
    """Return the place of a value, with its range; the dialect's name if it has no place."""
    ranges = profile.range_at(*loc)
    if profile.dialect and not profile.has_place(*loc):
        return f"dialect {profile.dialect}"
    return f"{profile.place(*loc)}" + (f" ({ranges})" if ranges else "")


def _with_comment(line: str, comment: str) -> str:
    return f"{line:{_COMMENT_COLUMN - 2}}  # {comment}" if comment else line


def _leaves(loc: Loc, value: Any) -> Iterator[tuple[Loc, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in cast("dict[str, Any]", value).items():
            yield from _leaves((*loc, key), inner)
    else:
        yield loc, value


def _toml(value: Any) -> str:
    """Return a value on one line."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return "{" + ", ".join(f"{dotted_key((key,))} = {_toml(one)}" for key, one in members) + "}"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, cast('list[Any]', value)))}]"
    return json.dumps(value, ensure_ascii=False)


def profile_json(profile: Profile) -> dict[str, Any]:
    """Return the values of a profile, and the place of each."""
    values = profile.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    places = {
        dotted_key(loc): str(profile.place(*loc))
        for key, value in values.items()
        if key not in _RESOLVED_KEYS
        for loc, _ in _leaves((key,), value)
    }
    return {"profile": values, "places": places}


def built_in_rows() -> list[dict[str, str]]:
    """Return name and title of each built-in profile, with the ends of its known releases."""
    rows: list[dict[str, str]] = []
    for name in builtin_names():
        profile = load_profile(name)
        edition = profile.edition
        if edition is not None and edition.is_named:
            continue
        ends = {"oldest": edition.oldest, "newest": edition.newest} if edition else {}
        rows.append({"name": name, "title": profile.title.removesuffix(NOT_KNOWN).strip(), **ends})
    return rows


def built_in_lines() -> Iterator[str]:
    """Yield a line for each built-in profile."""
    for row in built_in_rows():
        releases = ""
        if "oldest" in row:
            name = f"{row['name']}-{short_release(row['newest'])}"
            releases = f", releases {row['oldest']} to {row['newest']}: asked, or named as {name}"
        yield f"{row['name']:10} {row['title']}{releases}"
