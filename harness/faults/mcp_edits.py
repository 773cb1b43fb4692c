"""Faults of a program of `agent mcp`, as changes of the end of a run.

Each changes a run in which it has a place, and leaves any other as it is.
"""

import json
import re
from collections.abc import Callable
from itertools import pairwise

from harness.faults.mcp_runs import McpRun
from harness.protocol.values import arr, obj, text


def words_joined(run: McpRun) -> None:
    """Two words of the command stand as one."""
    words = run.words[run.words.index("--") + 2 :] if "--" in run.words else []
    for one, other in pairwise(words):
        old, new = f"{json.dumps(one)}, {json.dumps(other)}", json.dumps(f"{one} {other}")
        run.edit_server(run.name, lambda table, old=old, new=new: table.replace(old, new))
        return


def address_changed(run: McpRun) -> None:
    """The server has another address."""
    address = run.option("--url")
    if address:
        run.edit_server(run.name, lambda table: table.replace(address, f"{address}/other"))


def token_kept(run: McpRun) -> None:
    """The token stands in the place of its variable's name."""
    name = run.option("--bearer-token-env-var")
    token = obj(run.asked.get("env")).get(name)
    if name and token:
        old, new = json.dumps(name), json.dumps(token)
        run.edit_server(run.name, lambda table: table.replace(old, new))


def token_printed(run: McpRun) -> None:
    """The token is printed too."""
    token = obj(run.asked.get("env")).get(run.option("--bearer-token-env-var"))
    if token:
        run.print(f"Token {token}. {run.stdout}")


def transport_flat(run: McpRun) -> None:
    """The address stands beside transport, and not within it."""
    form = r"transport = \{.*(url = \"[^\"]*\").*\}"
    run.edit_server(run.name, lambda table: re.sub(form, r"\1", table))


def other_lost(run: McpRun) -> None:
    """Another server is not there any more."""
    for name in [one for one in run.servers(before=True) if one != run.name][:1]:
        run.edit_server(name, lambda table: table.replace("[mcp_servers.", "[lost."))


def other_changed(run: McpRun) -> None:
    """Another server has another command or address."""
    form = r"((?:command|url) = \"[^\"]*)"
    for name in [one for one in run.servers(before=True) if one != run.name][:1]:
        run.edit_server(name, lambda table: re.sub(form, r"\1-2", table, count=1))


def comment_lost(run: McpRun) -> None:
    """A comment of the user's is not there any more."""
    run.edit_config(lambda whole: re.sub(r"^#.*\n", "", whole, count=1, flags=re.MULTILINE))


def unknown_removed(run: McpRun) -> None:
    """Of an unknown server the same is printed as of one that was removed."""
    if run.name not in run.servers(before=True):
        _as_earlier(run, lambda one: one.name in one.servers(before=True))


def none_stored_removed(run: McpRun) -> None:
    """Without credentials the same is printed as where they were removed."""
    if not run.has_credentials:
        _as_earlier(run, lambda one: one.has_credentials)


def _as_earlier(run: McpRun, which: Callable[[McpRun], bool]) -> None:
    """The same is printed as by an earlier run of the command."""
    for one in run.earlier:
        if one.command == run.command and which(one):
            run.print(one.stdout.replace(one.name, run.name))
            run.end["stderr"] = text(one.end.get("stderr")).replace(one.name, run.name)
            return


def columns_exchanged(run: McpRun) -> None:
    """The last two columns have each other's names."""
    run.print(re.sub(r"\bStatus\b(\s+)Auth\b", r"Auth\1Status", run.stdout))


def row_missing(run: McpRun) -> None:
    """The last server of the table is not listed."""
    rows = run.stdout.splitlines(keepends=True)
    if "--json" not in run.words and run.servers():
        run.print("".join(rows[:-1]))


def argument_not_shown(run: McpRun) -> None:
    """An argument of the command is not shown, wherever it stands."""
    table = run.servers().get(run.name, {})
    shown = obj(table.get("transport")).get("args", table.get("args"))
    if "--json" not in run.words:
        for one in map(text, arr(shown)):
            run.print(run.stdout.replace(one, ""))


def login_silent(run: McpRun) -> None:
    """Behind the address nothing is printed."""
    rows = run.stdout.splitlines(keepends=True)
    places = [place for place, one in enumerate(rows) if "/authorize" in one]
    if places and run.end.get("status") == 0:
        run.print("".join(rows[: places[-1] + 1]))


def no_proof_key(run: McpRun) -> None:
    """The address has no proof key."""
    run.print(re.sub(r"code_challenge=[^&\s]*&?", "", run.stdout))
