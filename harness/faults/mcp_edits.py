"""Faults of an `agent mcp` program, as functions that change the end of a run in place.

Each leaves a run unchanged in which it has no place.
"""

import json
import re
from collections.abc import Callable
from itertools import pairwise

from harness.faults.mcp_runs import McpRun
from harness.protocol.values import arr, obj, text


def join_words(run: McpRun) -> None:
    """Join the first two arguments of the server's command in config.toml."""
    words = run.words[run.words.index("--") + 2 :] if "--" in run.words else []
    for left, right in pairwise(words):
        old, new = f"{json.dumps(left)}, {json.dumps(right)}", json.dumps(f"{left} {right}")
        run.edit_server(run.name, lambda table, old=old, new=new: table.replace(old, new))
        return


def change_address(run: McpRun) -> None:
    """Change the server's address in config.toml."""
    address = run.option("--url")
    if address:
        run.edit_server(run.name, lambda table: table.replace(address, f"{address}/other"))


def keep_token(run: McpRun) -> None:
    """Replace the name of the token's variable in config.toml by the token."""
    name = run.option("--bearer-token-env-var")
    token = obj(run.request.get("env")).get(name)
    if name and token:
        old, new = json.dumps(name), json.dumps(token)
        run.edit_server(run.name, lambda table: table.replace(old, new))


def print_token(run: McpRun) -> None:
    """Add the bearer token to the output."""
    token = obj(run.request.get("env")).get(run.option("--bearer-token-env-var"))
    if token:
        run.set_stdout(f"Token {token}. {run.stdout}")


def flatten_transport(run: McpRun) -> None:
    """Move the address in config.toml from `transport` into the server's table."""
    form = r"transport = \{.*(url = \"[^\"]*\").*\}"
    run.edit_server(run.name, lambda table: re.sub(form, r"\1", table))


def lose_other_server(run: McpRun) -> None:
    """Remove another server from config.toml."""
    for name in [name for name in run.servers(before=True) if name != run.name][:1]:
        run.edit_server(name, lambda table: table.replace("[mcp_servers.", "[lost."))


def change_other_server(run: McpRun) -> None:
    """Change another server's command or address in config.toml."""
    form = r"((?:command|url) = \"[^\"]*)"
    for name in [name for name in run.servers(before=True) if name != run.name][:1]:
        run.edit_server(name, lambda table: re.sub(form, r"\1-2", table, count=1))


def lose_comment(run: McpRun) -> None:
    """Remove the first comment line from config.toml."""
    run.edit_config(lambda whole: re.sub(r"^#.*\n", "", whole, count=1, flags=re.MULTILINE))


def print_removed_for_unknown(run: McpRun) -> None:
    """Let the run print for an unknown server the output for a removed one."""
    if run.name not in run.servers(before=True):
        _as_earlier(run, lambda earlier: earlier.name in earlier.servers(before=True))


def print_removed_for_none_stored(run: McpRun) -> None:
    """Let the run print, without stored credentials, the output for removed ones."""
    if not run.has_credentials:
        _as_earlier(run, lambda earlier: earlier.has_credentials)


def _as_earlier(run: McpRun, which: Callable[[McpRun], bool]) -> None:
    """Copy the output of the first earlier run of the same command that `which` accepts."""
    for earlier in run.earlier:
        if earlier.command == run.command and which(earlier):
            run.set_stdout(earlier.stdout.replace(earlier.name, run.name))
            run.end["stderr"] = text(earlier.end.get("stderr")).replace(earlier.name, run.name)
            return


def swap_columns(run: McpRun) -> None:
    """Exchange the headings Status and Auth of the table."""
    run.set_stdout(re.sub(r"\bStatus\b(\s+)Auth\b", r"Auth\1Status", run.stdout))


def drop_last_row(run: McpRun) -> None:
    """Remove the last line of the output, unless it is JSON or there are no servers."""
    rows = run.stdout.splitlines(keepends=True)
    if "--json" not in run.words and run.servers():
        run.set_stdout("".join(rows[:-1]))


def hide_argument(run: McpRun) -> None:
    """Remove the arguments of the server's command from the output, unless it is JSON."""
    table = run.servers().get(run.name, {})
    arguments = obj(table.get("transport")).get("args", table.get("args"))
    if "--json" not in run.words:
        for argument in map(text, arr(arguments)):
            run.set_stdout(run.stdout.replace(argument, ""))


def print_nothing_after_address(run: McpRun) -> None:
    """Remove the output after the address of the login."""
    rows = run.stdout.splitlines(keepends=True)
    places = [place for place, row in enumerate(rows) if "/authorize" in row]
    if places and run.end.get("status") == 0:
        run.set_stdout("".join(rows[: places[-1] + 1]))


def drop_proof_key(run: McpRun) -> None:
    """Remove the PKCE challenge from the address of the login."""
    run.set_stdout(re.sub(r"code_challenge=[^&\s]*&?", "", run.stdout))
