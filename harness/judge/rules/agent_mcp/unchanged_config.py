"""Rules on the parts of config.toml that add and remove leave unchanged.

That only one server is added or removed is derived: SHOULD for parts that are not a server. The
specification does not cover additions at the same time: INFO.
"""
# ruff: noqa: D102 - a rule is described at its class; handlers are its parts

from typing import Any, Final

from harness.judge.base import Outcomes, Violation, Witness, listen, rule
from harness.judge.rules.shared.mcp_runs import (
    CONFIG,
    CommandRule,
    Config,
    config_after,
    config_before,
    config_in,
    normalize_table,
    parse_addition,
    was_cut_off,
)
from harness.judge.rules.shared.violations import unexpected_member
from harness.judge.verdict import Level
from harness.protocol.values import text
from harness.trace.difference import literal
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Run

# The specified keys of a server, nested as in the specification or flat.
SERVER_KEYS: Final = frozenset(
    {"enabled", "transport", "env", "bearer_token_env_var", "command", "args", "url"}
)
MAX_PARTS_NAMED: Final = 5
"""The number of lost parts that a finding names."""
CHANGE_TOPICS: Final = (("ended", "add"), ("ended", "remove"))


class KeptPartsRule(CommandRule):
    """Base of rules on add and remove in a configuration that was valid TOML before."""

    @listen(*CHANGE_TOPICS)
    def on_change(self, frame: Frame) -> Outcomes:
        """Judge a run that has ended."""
        run = self.ended_run(frame)
        if run is None or config_before(run).data is None or not run.words.name:
            return
        parts = self.kept_parts(run, config_before(run), config_after(run))
        lost = [part for part, is_kept in parts if not is_kept]
        if lost:
            field = config_after(run).field
            names = "; ".join(lost[:MAX_PARTS_NAMED])
            more = len(lost) - MAX_PARTS_NAMED
            names += f"; and {more} more" if more > 0 else ""
            expected = f"{CONFIG} still with {names}"
            actual = f"{field.name}: {len(lost)} of {len(parts)} such part(s) lost or changed"
            places = (field.place,)
            yield Violation(run.subject, run.frames, expected, actual, places=places)
        elif parts:
            yield Witness(run.subject, run.frames)

    def kept_parts(self, run: Run, old: Config, config: Config) -> list[tuple[str, bool]]:
        """Return a description of each part that must remain, and whether it does."""
        raise NotImplementedError


@rule(
    "mcp-config.others-kept",
    title="Adding or removing one server leaves the others as they were",
    level=Level.MUST,
    surface="command",
)
class OthersKept(KeptPartsRule):
    """Judges that the tables of all other servers keep their values after add and remove.

    add adds one server, and remove removes the named one. Left open: where in their tables the
    values stand, keys that the specification does not name, comments.
    """

    def kept_parts(self, run: Run, old: Config, config: Config) -> list[tuple[str, bool]]:
        return [
            (
                f"the server {name}: {literal(normalize_table(table))}",
                name in config.servers
                and _includes(normalize_table(config.servers[name]), normalize_table(table)),
            )
            for name, table in self.configured_servers(run).items()
            if name != run.words.name
        ]


@rule(
    "mcp-config.other-keys-kept",
    title="Keys that the text does not name keep their values and their order",
    level=Level.SHOULD,
    surface="command",
)
class OtherKeysKept(KeptPartsRule):
    """Judges that all keys outside mcp_servers, and those of other servers, remain as they were.

    Derived: add adds one server to the file, and remove removes one. The tables of the file, and
    the servers in it, keep their order.
    """

    def kept_parts(self, run: Run, old: Config, config: Config) -> list[tuple[str, bool]]:
        keys, remaining = (_unnamed_keys(one, run.words.name) for one in (old, config))
        parts = [
            (f"{key} = {literal(value)}", remaining.get(key) == value)
            for key, value in keys.items()
        ]
        for before, after in (
            (list(old.data or {}), list(config.data or {})),
            (list(old.servers), list(config.servers)),
        ):
            names = [name for name in before if name in after and name != run.words.name]
            if len(names) > 1:
                is_kept = names == [name for name in after if name in names]
                parts.append((f"the order {', '.join(names)}", is_kept))
        return parts


@rule(
    "mcp-config.comments-kept",
    title="The comments of the file are still there",
    level=Level.SHOULD,
    surface="command",
)
class CommentsKept(KeptPartsRule):
    """Judges that comments of config.toml remain after add, and after remove of an unknown server.

    Derived: add adds one server to the file. Comments of a removed server may go with it.
    """

    def kept_parts(self, run: Run, old: Config, config: Config) -> list[tuple[str, bool]]:
        if run.words.subcommand == "remove" and run.words.name in old.servers:
            return []
        remaining = comments(text(config.field.value))
        return [
            (f"the comment {literal(comment)}", comment in remaining)
            for comment in comments(text(old.field.value))
        ]


def _includes(table: dict[str, Any], old: dict[str, Any]) -> bool:
    """Return whether everything in the old table is unchanged in the new one."""
    return all(key in table and table[key] == value for key, value in old.items())


def _unnamed_keys(config: Config, except_server: str) -> dict[str, Any]:
    """Return the unspecified keys and their values, those of servers by their dotted names."""
    keys = {key: value for key, value in dict(config.data or {}).items() if key != "mcp_servers"}
    for name, table in config.servers.items():
        for key in table.keys() - SERVER_KEYS if name != except_server else ():
            keys[f"mcp_servers.{name}.{key}"] = table[key]
    return keys


def comments(written: str) -> list[str]:
    """Return the comments of a TOML file that are alone on their lines, without indentation."""
    stripped = [line.strip() for line in written.splitlines()]
    return [line for line in stripped if line.startswith("#")]


@rule(
    "mcp-config.concurrent",
    title="Of several additions at once none is lost",
    level=Level.INFO,
    surface="command",
)
class Concurrent(CommandRule):
    """Judges additions that ran at the same time, when the last of them has ended.

    Each that ended by itself is in config.toml then. The specification does not mention it; this is
    the project's choice.
    """

    def begin(self) -> None:
        super().begin()
        self._judged: set[str] = set()

    @listen(("ended", "add"))
    def on_add_ended(self, frame: Frame) -> Outcomes:
        runs = self.commands.runs.values()
        if any(run.end is None for run in runs):
            return
        servers: dict[str, Any] = config_in(frame).servers
        for run in runs:
            added = None if run.ran_alone or run.subject in self._judged else parse_addition(run)
            self._judged.add(run.subject)
            if added is None or was_cut_off(run):
                continue
            proof = (run.request, frame)
            if added.name in servers:
                yield Witness(run.subject, proof)
            else:
                field = config_in(frame).field
                expected = f"the server {added.name} too, added at the same time as others"
                yield unexpected_member(run.subject, proof, field, f"{field.name}: {expected}")
