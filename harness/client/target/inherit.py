"""Inheritance between profiles: merging the tables of two files, each value with its place."""

from typing import Any, cast

from harness.client.target.tomltext import Loc, Toml, Where, dotted, steps_of
from harness.errors import UsageError
from harness.trace.nearest import unknown

# Keys that are not inherited.
OWN = ("name", "title", "extends", "without")
# Lists that are joined: the inherited entries come after the file's own ones.
# Any other list is replaced as a whole.
ADDED: tuple[Loc, ...] = (("deviations",), ("tools",), ("panics",), ("outcomes", "*"))
# The keys by which a row of such a list replaces an inherited row, with their defaults.
ROW_KEYS: dict[Loc, dict[str, str]] = {
    ("deviations",): {"rule": "", "scenario": "*", "pinned": ""},
    ("tools",): {"intent": "", "name": "", "namespace": ""},
}
# The key by which `without` names the rows of such a list.
NAMED_BY = {"deviations": "rule", "tools": "name"}


def merged(base: Toml, own: Toml) -> Toml:
    """The file `own` with everything that it inherits from `base`, except what it omits.

    Raises `UsageError`.
    """
    inherited = _Part(base)
    for key in OWN:
        inherited.drop((key,))
    for index, key in enumerate(cast("list[str]", own.value.get("without", []))):
        _leave_out(inherited, key, own.place(("without", index)))
    result = Toml(own.file, {}, dict(own.keys), dict(own.values))
    result.value = _joined((), inherited, own.value, result)
    return result


class _Part:
    """A file's values with their places; members can be removed."""

    def __init__(self, toml: Toml) -> None:
        self.toml = toml
        self.value = _copied(toml.value)

    def drop(self, loc: Loc) -> None:
        """Remove a member of a table."""
        holder = self.value
        for step in loc[:-1]:
            holder = holder[str(step)]
        holder.pop(str(loc[-1]), None)


def _copied(value: Any) -> Any:
    """A copy of the tables; rows keep their indexes, by which their places are found."""
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in cast("dict[str, Any]", value).items()}
    return value


def _leave_out(part: _Part, key: str, where: Where) -> None:
    steps = steps_of(key)
    holder: Any = part.value
    for depth, step in enumerate(steps):
        if isinstance(holder, list):
            _leave_out_rows(part, steps[:depth], ".".join(steps[depth:]), where)
            return
        if not isinstance(holder, dict) or step not in holder:
            valid = [dotted(loc) for loc in _members(part.value)]
            raise UsageError(f"{where}: without: {unknown('inherited key', key, valid)}")
        if depth == len(steps) - 1:
            part.drop(steps)
            return
        holder = cast("dict[str, Any]", holder)[step]


def _leave_out_rows(part: _Part, at: tuple[str, ...], name: str, where: Where) -> None:
    """`deviations."turn.id-shape"`: all inherited rows of that name."""
    key, by = at[0], NAMED_BY.get(at[0], "")
    if not by or len(at) > 1:
        names = " and ".join(NAMED_BY)
        raise UsageError(
            f"{where}: without: {dotted(at)} is a list, and only rows of {names} have names; "
            "leave the whole of it out"
        )
    rows = cast("list[dict[str, Any] | None]", part.value[key])
    valid = {str(row.get(by)) for row in rows if row is not None}
    if name not in valid:
        raise UsageError(f"{where}: without: {unknown(f'{by} of inherited {key}', name, valid)}")
    # A removed row keeps its index free, so that the places of the others stay right.
    part.value[key] = [None if row is None or row.get(by) == name else row for row in rows]


def _members(value: Any, loc: Loc = ()) -> list[Loc]:
    found: list[Loc] = [loc] if loc else []
    if isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            found += _members(inner, (*loc, key))
    return found


def _joined(loc: Loc, base: _Part, own: dict[str, Any], result: Toml) -> dict[str, Any]:
    """The table at a path: its own members, and the inherited ones that it does not replace."""
    inherited: Any = base.value
    for step in loc:
        inherited = inherited[step]
    joined: dict[str, Any] = {}
    for key, value in cast("dict[str, Any]", inherited).items():
        here, mine = (*loc, key), own.get(key)
        if _adds(here) and isinstance(value, list):
            joined[key] = _added(here, cast("list[Any]", value), mine, base.toml, result)
        elif key not in own:
            joined[key] = value
            _placed(here, here, base.toml, result)
        elif isinstance(value, dict) and isinstance(mine, dict):
            joined[key] = _joined(here, base, cast("dict[str, Any]", mine), result)
    for key, value in own.items():
        joined.setdefault(key, value)
    return joined


def _adds(loc: Loc) -> bool:
    return loc in ADDED or (*loc[:-1], "*") in ADDED


def _added(loc: Loc, inherited: list[Any], mine: Any, base: Toml, result: Toml) -> Any:
    if mine is not None and not isinstance(mine, list):
        return mine
    rows = list(cast("list[Any]", mine or []))
    taken = [_row_key(loc, row) for row in rows]
    if not rows:
        result.keys[loc], result.values[loc] = base.place(loc, key=True), base.place(loc)
    for number, row in enumerate(inherited):
        if row is None or _row_key(loc, row) in taken:
            continue
        _placed((*loc, number), (*loc, len(rows)), base, result)
        rows.append(row)
    return rows


def _row_key(loc: Loc, row: Any) -> Any:
    keys = ROW_KEYS.get(loc)
    if keys is None or not isinstance(row, dict):
        return row
    return [cast("dict[str, Any]", row).get(key, default) for key, default in keys.items()]


def _placed(old: Loc, new: Loc, base: Toml, result: Toml) -> None:
    """Copy the places of a part, which may now have another index."""
    for before, after in ((base.keys, result.keys), (base.values, result.values)):
        for loc, where in before.items():
            if loc[: len(old)] == old:
                after[(*new, *loc[len(old) :])] = where
