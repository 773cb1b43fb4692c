"""The rows of a dialect's table, and the selection of those that hold for one release.

`since` is the first release with what a row says, `until` the first release without it. Both are
optional.
"""

import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple, cast

from harness.errors import UsageError
from harness.protocol.releases import holds_for, short_release

FAMILY = "codex"
"""The shipping server whose releases the table describes."""
PREFIX = f"{FAMILY}-"


class DialectError(UsageError):
    """A dialect that the table does not know; the text says which it knows."""


class MemberRow(NamedTuple):
    """A member that the release writes in objects of these types, where the text has none.

    `types` are names of wire classes; "Notification" is the message around the params. `methods`
    limits the row to messages of these methods, empty for all. A string in `value` can have the
    placeholders (docs/dialects.md). `replaces` is whether it takes the
    place of a member that the server wrote. `where` are values that members of the object must
    have (`status.type`), a text with `*` a pattern, one that begins with `!` what they must not be;
    all of `needs` and none of `unless` must have a value.
    """

    types: tuple[str, ...]
    name: str
    value: Any
    methods: tuple[str, ...] = ()
    replaces: bool = False
    where: Mapping[str, Any] = {}
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()


class RenameRow(NamedTuple):
    """A member of a type: its name in the text, and the name on the wire."""

    type: str
    name: str
    wire: str


class WordRow(NamedTuple):
    """A value at `Type.member`: the text's, and the release's, which can be an object.

    With `is_of_clients` it is read only: the server never writes the release's value.
    """

    at: str
    text: Any
    wire: Any
    is_of_clients: bool = False


class ShapeRow(NamedTuple):
    """A member `Type.member` that the release writes in another form."""

    at: str
    form: str


class DropRow(NamedTuple):
    """A member of a type that the release does not write; with `method`, a step that it lacks.

    With `only_null` the member is left out only where it is null. A step is left out only if that
    member of its params is an `empty` text, if the next one is `before`, if its item started
    `within_ms` before, if `where` holds, and if all of `needs` and none of `unless` have a value.
    Unless it is `stored`, its item is missing in later turns too.
    """

    type: str = ""
    name: str = ""
    method: str = ""
    only_null: bool = False
    empty: str = ""
    before: str = ""
    within_ms: int = 0
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    stored: bool = True
    where: Mapping[str, Any] = {}


class MethodRow(NamedTuple):
    """The answer to a request that the text lacks, or that the release answers otherwise.

    `result` or `error` (code and message) is the answer; `via` is a method of the text whose result
    the placeholders of `result` take values from, with `params` in place of the client's.
    `notifications` follow the answer, as pairs of method and params. With `own` the server carries
    the request out itself.
    """

    name: str
    result: Any = None
    error: tuple[int, str] | None = None
    via: str = ""
    notifications: tuple[tuple[str, Any], ...] = ()
    params: Any = None
    own: bool = False


class JoinRow(NamedTuple):
    """A request that is another one, `via`, while a turn of its thread runs.

    `params` are those of `via`, `result` is made from its result, both with placeholders.
    """

    method: str
    via: str
    params: Any
    result: Any


class OrderRow(NamedTuple):
    """Two messages that the release writes in this order, and the text's server in the other."""

    first: str
    second: str


class NotificationRow(NamedTuple):
    """A notification that the release writes `before` or `after` a step of the text's server.

    Steps are those of the dialect's sequence of messages. The placeholders of `params` are
    filled from that message. All of `needs` must have a value, none of `unless`; with `request`,
    the params of the answered request must have one of these members. `everyone`: each connection
    gets it. `each` is a placeholder of a list: one notification for each element, `{each}`.
    With `lost` it waits for the next message, and is left out if that is one of these steps.
    `where` are values that members of the message must have, as in rows of members.
    """

    method: str
    params: Any
    before: str = ""
    after: str = ""
    needs: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    request: tuple[str, ...] = ()
    everyone: bool = False
    each: str = ""
    lost: tuple[str, ...] = ()
    where: Mapping[str, Any] = {}


class HoldRow(NamedTuple):
    """A step that the release writes later: right before one of these steps, or right `after` it.

    It is written before the steps of `before` in any case. It is held only if `where` and all of
    `needs`, and none of `unless`, hold. It is never written if the step that ends the hold is one
    of `lost`.
    """

    method: str
    steps: tuple[str, ...]
    after: bool = False
    needs: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    where: Mapping[str, Any] = {}
    unless: tuple[str, ...] = ()


class RefuseRow(NamedTuple):
    """Words of a request's member that the text has and the release refuses with -32600.

    Without `words` it refuses any; all of `needs` must have a value, filled from the params.
    """

    method: str
    name: str
    words: tuple[str, ...]
    message: str
    needs: tuple[str, ...] = ()


class FinalFailuresRow(NamedTuple):
    """Failures of the model that the release does not retry, by HTTP status and provider's code.

    It retries every other failure that is told in an answer.
    """

    statuses: frozenset[int]
    codes: frozenset[str]


class UnknownNoteRow(NamedTuple):
    """The words of a release about settings that it ignores.

    The first line is `one` or `several`, with `{count}`; a `line` has `{file}` and `{path}`.
    """

    one: str
    several: str
    line: str


class LoginRow(NamedTuple):
    """The release's words when a key was saved, and of `login status` with a masked `{key}`."""

    saved: str
    status: str


class Dialect(NamedTuple):
    """The rows of one release.

    `ids` is the form of thread and turn ids; `thread_ids` and `turn_ids` are the places that hold
    them: `Type.member`, or `*.member` for each type. `error_codes` are the codes by those of the
    text. `client_words` are pairs of a rule about clients and a text in its findings: words that
    are right in this release. `unknown_settings` are paths of settings that the text has and the
    release ignores, `*` for any name. `told_to_all` are notifications of a thread that every
    connection gets, not only its subscribers. `environment` are names of variables by the text's
    names, `folder` is the folder of settings in a home or project, `version_line` the output of
    `--version`.
    """

    name: str
    release: str
    environment: Mapping[str, str]
    folder: str
    version_line: str
    thread_ids: frozenset[str]
    turn_ids: frozenset[str]
    members: tuple[MemberRow, ...]
    renames: tuple[RenameRow, ...]
    words: tuple[WordRow, ...]
    shapes: tuple[ShapeRow, ...]
    drops: tuple[DropRow, ...]
    methods: Mapping[str, MethodRow]
    joins: Mapping[str, JoinRow]
    orders: tuple[OrderRow, ...]
    notifications: tuple[NotificationRow, ...]
    holds: tuple[HoldRow, ...]
    refusals: tuple[RefuseRow, ...]
    error_codes: Mapping[int, int]
    client_words: tuple[tuple[str, str], ...]
    unknown_settings: tuple[str, ...] = ()
    final_failures: FinalFailuresRow | None = None
    told_to_all: frozenset[str] = frozenset()
    unknown_note: UnknownNoteRow | None = None
    login: LoginRow | None = None


def load_table() -> dict[str, Any]:
    """Return the whole table, as TOML has it."""
    text = (
        resources.files("harness.protocol.dialects").joinpath(f"{FAMILY}.toml").read_text("utf-8")
    )
    return tomllib.loads(text)


def dialect_names() -> list[str]:
    """Return the names of the studied releases, oldest first: `codex-0.107`, `codex-0.169`."""
    return [PREFIX + short_release(release) for release in load_table()["releases"]]


@lru_cache(maxsize=8)
def load_dialect(name: str) -> Dialect:
    """Return the rows of a release: `codex-0.169`, `codex-0.169.0`, or `codex` for the newest.

    A release between two studied ones has the rows that hold for its number. Raises DialectError.
    """
    table = load_table()
    releases: list[str] = table["releases"]
    release = releases[-1] if name == FAMILY else name.removeprefix(PREFIX)
    version = version_of(release)
    oldest, newest = version_of(releases[0]), version_of(releases[-1])
    is_named = name == FAMILY or name.startswith(PREFIX)
    if not is_named or not (version and oldest and newest and oldest <= version <= newest):
        known = ", ".join(PREFIX + short_release(one) for one in releases)
        raise DialectError(
            f"unknown dialect {name!r}; known: {known}, each release between them, "
            f"and {FAMILY} for the newest"
        )
    return _select(table, release if release.count(".") == 2 else f"{release}.0")


def version_of(release: str) -> tuple[int, int, int] | None:
    """Return the numbers of a release such as `0.169` or `0.169.0`, None if it is not one."""
    numbers = release.split(".")
    if not 2 <= len(numbers) <= 3 or not all(map(str.isdecimal, numbers)):
        return None
    major, minor, *patch = map(int, numbers)
    return major, minor, patch[0] if patch else 0


def _select(table: Mapping[str, Any], release: str) -> Dialect:
    ids = table["ids"]

    def rows(kind: str) -> Iterator[dict[str, Any]]:
        every = cast("list[dict[str, Any]]", table.get(kind, []))
        return (row for row in every if holds_for(release, row))

    return Dialect(
        name=f"{PREFIX}{short_release(release)}",
        release=release,
        environment=table["environment"],
        folder=table["folder"],
        version_line=table["version_line"].format(version=release),
        thread_ids=frozenset(ids["thread"]),
        turn_ids=frozenset(ids["turn"]),
        members=tuple(
            MemberRow(
                tuple(row["types"]) if "types" in row else (row["type"],),
                name,
                row.get("value"),
                tuple(row.get("methods", ())),
                row.get("replaces", False),
                row.get("where", {}),
                tuple(row.get("needs", ())),
                tuple(row.get("unless", ())),
            )
            for row in rows("member")
            for name in row.get("names") or [row["name"]]
        ),
        renames=tuple(RenameRow(row["type"], row["name"], row["wire"]) for row in rows("rename")),
        words=tuple(
            WordRow(row["at"], row["text"], row["wire"], row.get("of_clients", False))
            for row in rows("word")
        ),
        shapes=tuple(ShapeRow(row["at"], row["form"]) for row in rows("shape")),
        drops=tuple(
            DropRow(
                row.get("type", ""),
                row.get("name", ""),
                row.get("method", ""),
                row.get("only_null", False),
                row.get("empty", ""),
                row.get("before", ""),
                row.get("within_ms", 0),
                tuple(row.get("needs", ())),
                tuple(row.get("unless", ())),
                row.get("stored", True),
                row.get("where", {}),
            )
            for row in rows("drop")
        ),
        methods={row["name"]: _method_row(row) for row in rows("method")},
        joins={
            row["method"]: JoinRow(row["method"], row["via"], row["params"], row["result"])
            for row in rows("join")
        },
        orders=tuple(OrderRow(row["first"], row["second"]) for row in rows("order")),
        notifications=tuple(
            NotificationRow(
                row["method"],
                row["params"],
                row.get("before", ""),
                row.get("after", ""),
                tuple(row.get("needs", ())),
                tuple(row.get("unless", ())),
                tuple(row.get("request", ())),
                row.get("everyone", False),
                row.get("each", ""),
                tuple(row.get("lost", ())),
                row.get("where", {}),
            )
            for row in rows("notification")
        ),
        holds=tuple(
            HoldRow(
                row["method"],
                tuple(row["steps"]),
                row.get("after", False),
                tuple(row.get("needs", ())),
                tuple(row.get("lost", ())),
                tuple(row.get("before", ())),
                row.get("where", {}),
                tuple(row.get("unless", ())),
            )
            for row in rows("hold")
        ),
        refusals=tuple(
            RefuseRow(
                row["method"],
                row["name"],
                tuple(row.get("words", ())),
                row["message"],
                tuple(row.get("needs", ())),
            )
            for row in rows("refuse")
        ),
        error_codes={row["text"]: row["wire"] for row in rows("error_code")},
        client_words=tuple((row["rule"], row["actual"]) for row in rows("client_word")),
        unknown_settings=tuple(row["path"] for row in rows("unknown_setting")),
        final_failures=next(
            (
                FinalFailuresRow(frozenset(row["statuses"]), frozenset(row["codes"]))
                for row in rows("final_failure")
            ),
            None,
        ),
        unknown_note=next(
            (
                UnknownNoteRow(row["one"], row["several"], row["line"])
                for row in rows("unknown_note")
            ),
            None,
        ),
        told_to_all=frozenset(row["method"] for row in rows("told_to_all")),
        login=next((LoginRow(row["saved"], row["status"]) for row in rows("login")), None),
    )


def _method_row(row: Mapping[str, Any]) -> MethodRow:
    error = row.get("error")
    return MethodRow(
        row["name"],
        row.get("result"),
        (error["code"], error["message"]) if error else None,
        row.get("via", ""),
        tuple((one["method"], one["params"]) for one in row.get("notifications", ())),
        row.get("params"),
        row.get("own", False),
    )
