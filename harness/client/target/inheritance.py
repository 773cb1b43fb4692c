"""Inheritance between profiles: merging the tables of two files, each value with its place."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from harness.client.target.tomltext import Loc, Place, Toml, dotted_key, steps_of
from harness.errors import UsageError
from harness.trace.nearest import unknown_name

# Keys that are not inherited.
NOT_INHERITED_KEYS = ("name", "title", "extends", "without")
# Lists that are joined: the inherited entries come after the file's own ones.
# Any other list is replaced as a whole.
JOINED_LISTS: tuple[Loc, ...] = (
    ("deviations",),
    ("tools",),
    ("panics",),
    ("outcomes", "*"),
    ("without",),  # Of a file and its blocks for some releases.
)
# Key -> default: a row of such a list replaces an inherited row with the same values of these keys.
ROW_KEYS: dict[Loc, dict[str, str]] = {
    ("deviations",): {"rule": "", "scenario": "*", "pinned": ""},
    ("tools",): {"intent": "", "name": "", "namespace": ""},
}
# The keys whose values name the rows of such a list in `without`, the first of which is required.
ROW_NAME_KEYS = {
    "deviations": ("rule", "scenario", "pinned"),
    "tools": ("name", "intent", "namespace"),
}


def merge_profiles(base: Toml, own: Toml, every: Callable[[], Toml] | None = None) -> Toml:
    """Return the values of `own`, and those of `base` that it neither replaces nor leaves out.

    Raises `UsageError` if its `without` names something that `base` does not have; `every` returns
    the base of all releases, in which it may be.
    """
    inherited = _Part(base)
    for key in NOT_INHERITED_KEYS:
        inherited.drop((key,))
    for index, key in enumerate(cast("list[str]", own.value.get("without", []))):
        place = own.place(("without", index))
        try:
            _leave_out(inherited, key, place)
        except UsageError:
            if every is None:
                raise
            _leave_out(_Part(every()), key, place)
    return overlay_tables(base, own, inherited.value)


def overlay_tables(base: Toml, own: Toml, inherited: dict[str, Any] | None = None) -> Toml:
    """Return the values of `own`, and those of `base` (or `inherited`) that it does not replace."""
    part = _Part(base)
    if inherited is not None:
        part.value = inherited
    result = Toml(own.file, {}, dict(own.keys), dict(own.values), base.ranges | own.ranges)
    result.value = _join_tables((), part, own.value, result)
    return result


class _Part:
    """A file's values with their places; members can be removed."""

    def __init__(self, toml: Toml) -> None:
        self.toml = toml
        self.value = _copy_tables(toml.value)
        # A profile of many releases has thousands of places, and hundreds of parts to copy.
        self._keys_below, self._values_below = _places_below(toml.keys), _places_below(toml.values)

    def drop(self, loc: Loc) -> None:
        """Remove a member of a table."""
        holder = self.value
        for step in loc[:-1]:
            holder = holder[str(step)]
        holder.pop(str(loc[-1]), None)

    def copy_places(self, old: Loc, new: Loc, result: Toml) -> None:
        """Copy the places of a member and of all below it, which may now have another index."""
        for below, after in ((self._keys_below, result.keys), (self._values_below, result.values)):
            for loc, place in below.get(old, ()):
                after[(*new, *loc[len(old) :])] = place


def _places_below(places: Mapping[Loc, Place]) -> dict[Loc, list[tuple[Loc, Place]]]:
    """Return the places of each path and of all paths below it, in their order."""
    below: dict[Loc, list[tuple[Loc, Place]]] = {}
    for entry in places.items():
        loc = entry[0]
        for length in range(1, len(loc) + 1):
            below.setdefault(loc[:length], []).append(entry)
    return below


def _copy_tables(value: Any) -> Any:
    """Return a copy of the tables; rows keep their indexes, which lead to their places."""
    if isinstance(value, dict):
        return {key: _copy_tables(inner) for key, inner in cast("dict[str, Any]", value).items()}
    return value


def _leave_out(part: _Part, key: str, place: Place) -> None:
    steps = steps_of(key)
    holder: Any = part.value
    for depth, step in enumerate(steps):
        if isinstance(holder, list):
            _leave_out_rows(part, steps, depth, place)
            return
        if not isinstance(holder, dict) or step not in holder:
            valid = [dotted_key(loc) for loc in _members(part.value)]
            raise UsageError(f"{place}: without: {unknown_name('inherited key', key, valid)}")
        if depth == len(steps) - 1:
            part.drop(steps)
            return
        holder = cast("dict[str, Any]", holder)[step]


def _leave_out_rows(part: _Part, steps: tuple[str, ...], depth: int, place: Place) -> None:
    """Remove the inherited rows with a name, as in `deviations."turn.id-shape"."turns/*"`.

    A name is that of a rule or tool, then, to tell rows apart, the values of the next keys.
    """
    path, names = steps[:depth], steps[depth:]
    key, columns = path[0], ROW_NAME_KEYS.get(path[0], ())
    if not columns or len(path) > 1:
        lists = " and ".join(ROW_NAME_KEYS)
        raise UsageError(
            f"{place}: without: {dotted_key(path)} is a list, and only rows of {lists} have names; "
            "leave the whole of it out"
        )
    rows = cast("list[dict[str, Any] | None]", part.value[key])
    first = {str(row.get(columns[0])) for row in rows if row is not None}
    # A name may stand without quotes, its dots between the steps: `deviations.turn.id-shape`.
    splits = ((".".join(names[:count]), *names[count:]) for count in range(1, len(names) + 1))
    values = next((split for split in splits if split[0] in first), (".".join(names),))
    left = [row for row in rows if row is not None]
    for column, value in zip(columns, values, strict=False):
        valid = {_column(key, row, column) for row in left}
        if value not in valid:
            what = f"{column} of inherited {key}"
            what += f" of {values[0]}" if column != columns[0] else ""
            raise UsageError(f"{place}: without: {unknown_name(what, value, valid)}")
        left = [row for row in left if _column(key, row, column) == value]
    # A removed row leaves None at its index, so that the places of other rows stay right.
    gone = {id(row) for row in left}
    part.value[key] = [None if id(row) in gone else row for row in rows]


def _column(key: str, row: Mapping[str, Any], column: str) -> str:
    return str(row.get(column, ROW_KEYS[key,].get(column, "")))


def _members(value: Any, loc: Loc = ()) -> list[Loc]:
    members: list[Loc] = [loc] if loc else []
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            members += _members(inner, (*loc, key))
    return members


def _join_tables(loc: Loc, base: _Part, own: dict[str, Any], result: Toml) -> dict[str, Any]:
    """Return the table at a path: its own members, and the inherited ones not replaced."""
    inherited: Any = base.value
    for step in loc:
        inherited = inherited[step]
    table: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", inherited).items():
        path, own_value = (*loc, key), own.get(key)
        if _is_joined_list(path) and isinstance(value, list):
            table[key] = _join_rows(path, cast("list[Any]", value), own_value, base, result)
        elif key not in own:
            table[key] = value
            base.copy_places(path, path, result)
        elif isinstance(value, dict) and isinstance(own_value, dict):
            table[key] = _join_tables(path, base, cast("dict[str, Any]", own_value), result)
    for key, value in own.items():
        table.setdefault(key, value)
    return table


def _is_joined_list(loc: Loc) -> bool:
    return loc in JOINED_LISTS or (*loc[:-1], "*") in JOINED_LISTS


def _join_rows(loc: Loc, inherited: list[Any], own: Any, base: _Part, result: Toml) -> Any:
    if own is not None and not isinstance(own, list):
        return own
    rows = list(cast("list[Any]", own or []))
    own_keys = [_row_key(loc, row) for row in rows]
    if not rows:
        result.keys[loc] = base.toml.place(loc, key=True)
        result.values[loc] = base.toml.place(loc)
    for number, row in enumerate(inherited):
        if row is None or _row_key(loc, row) in own_keys:
            continue
        base.copy_places((*loc, number), (*loc, len(rows)), result)
        rows.append(row)
    return rows


def _row_key(loc: Loc, row: Any) -> Any:
    keys = ROW_KEYS.get(loc)
    if keys is None or not isinstance(row, dict):
        return row
    return [cast("dict[str, Any]", row).get(key, default) for key, default in keys.items()]
