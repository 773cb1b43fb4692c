"""Faults of `agent mcp`: the output of a run, and the files that it leaves in the home.

The harness records a run as one message at its end, so these faults change stored plays only. The
tests plant the same faults in running programs.
"""

import copy
from collections.abc import Callable
from typing import Any

from harness.faults import mcp_edits as edits
from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.mcp_runs import WHY, Message, edit_run
from harness.faults.site import FaultSite
from harness.faults.stored import change
from harness.protocol.values import arr, obj
from harness.trace.frame import Frame
from harness.trace.trace import Trace

Edit = Callable[[Message], None]


def edit_end(
    description: str, *words: str, do: Edit, last: bool = False, output: str = ""
) -> StoredOnly:
    """Return an edit of the record of the first (or last) run whose arguments begin with `words`.

    Only runs whose standard output contains `output` count. It raises `NotApplied` if there is
    none.
    """

    def make(_: FaultSite, trace: Trace) -> Trace:
        starts = [frame for frame in trace.frames if _begins(frame, words)]
        run_ids = [obj(start.json).get("id") for start in starts]
        ends = [other for other in trace.frames if _is_end(other, run_ids, output)]
        if not ends:
            raise NotApplied(f"no {description}")
        return change(trace, [ends[-1 if last else 0]], lambda value: _apply_edit(value, do))

    return StoredOnly(WHY, make)


def _begins(frame: Frame, words: tuple[str, ...]) -> bool:
    argv = arr(obj(frame.json).get("argv"))
    return bool(argv) and argv[1 : len(words) + 1] == list(words)


def _is_end(frame: Frame, ids: list[Any], printing: str) -> bool:
    message = obj(frame.json)
    stdout = message.get("stdout")
    return message.get("id") in ids and isinstance(stdout, str) and printing in stdout


def _apply_edit(value: Message, do: Edit) -> Message:
    edited = copy.deepcopy(value)
    do(edited)
    return edited


def edit_config(old: str, new: str) -> Edit:
    """Return an edit that replaces `old` in config.toml; it raises `NotApplied` without `old`."""

    def edit(message: Message) -> None:
        for file in arr(message.get("files")):
            if obj(file).get("path") == "config.toml":
                if old not in str(file["text"]):
                    raise NotApplied(f"no {old!r} in config.toml")
                file["text"] = str(file["text"]).replace(old, new)

    return edit


def remove_all_files(message: Message) -> None:
    """Make a run leave no files in the home."""
    message["files"] = []


def print_nothing(message: Message) -> None:
    """Make a run print nothing."""
    message["stdout"] = message["stderr"] = ""


def print_text(text: str) -> Edit:
    """Return an edit that makes a run print this text alone."""

    def edit(message: Message) -> None:
        message["stdout"], message["stderr"] = text, ""

    return edit


def edit_output(old: str, new: str) -> Edit:
    """Return an edit that replaces `old` on standard output; `NotApplied` without `old`."""

    def edit(message: Message) -> None:
        if old not in message["stdout"]:
            raise NotApplied(f"no {old!r} on standard output")
        message["stdout"] = message["stdout"].replace(old, new)

    return edit


def append_config(table: str) -> Edit:
    """Return an edit that appends a table to config.toml."""

    def edit(message: Message) -> None:
        for file in arr(message.get("files")):
            if obj(file).get("path") == "config.toml":
                file["text"] = f"{file['text']}{table}"

    return edit


def keep_credentials(message: Message) -> None:
    """Make a run leave a file with credentials in the home."""
    file = {"path": ".credentials.json", "mode": "0600", "size": 99, "holds": ["access_token"]}
    message["files"] = [file, *arr(message.get("files"))]


def make_credentials_readable(message: Message) -> None:
    """Make the files with credentials readable by every user."""
    for file in arr(message.get("files")):
        if "holds" in obj(file):
            file["mode"] = "0644"


ADD, WEB = ("add", "docs"), ("add", "web")
INLINE = 'transport = { type = "stdio", command = "launch-it", args = ["-y", '
AGAIN = '\n[mcp_servers.docs]\ntransport = { type = "stdio", command = "x", args = [] }\n'


def fault(name: str, rule: str, reason: str, change: StoredOnly, on: str = "mcp-commands") -> Fault:
    """Return a fault of this table; its id begins with `mcp-`."""
    return Fault(f"mcp-{name}", rule=rule, on=on, reason=reason, change=change)


FAULTS: tuple[Fault, ...] = (
    fault(
        "added-elsewhere",
        "mcp-add.configured",
        "Configurations are kept in config.toml, a table for each server.",
        edit_end("mcp add", *ADD, do=edit_config("[mcp_servers.docs]", "[servers.docs]")),
    ),
    fault(
        "add-damages-the-file",
        "mcp-add.configured",
        "config.toml is a TOML file.",
        edit_end("mcp add", *ADD, do=append_config("\n[mcp_servers")),
    ),
    fault(
        "words-taken-as-options",
        "mcp-add.verbatim",
        "What follows the double dash is the command, whatever it looks like.",
        edit_end("mcp add", *ADD, do=edit_config('"--env", "X=1", ', "")),
    ),
    fault(
        "words-joined",
        "mcp-add.verbatim",
        "Each word is an argument of its own.",
        edit_run("add", edits.join_words, "mcp add of a command with two words"),
    ),
    fault(
        "env-value-cut",
        "mcp-add.environment",
        "The value is what follows the first equals sign.",
        edit_end("mcp add", *ADD, do=edit_config('"a=b"', '"a"')),
    ),
    fault(
        "address-changed",
        "mcp-add.address",
        "The server has the address that was given.",
        edit_run("add", edits.change_address, "mcp add --url"),
    ),
    fault(
        "variable-forgotten",
        "mcp-add.bearer-variable",
        "The name of the variable is kept.",
        edit_end("mcp add --url", *WEB, do=edit_config('bearer_token_env_var = "WEB_TOKEN"\n', "")),
    ),
    fault(
        "variable-of-stdio",
        "mcp-add.bearer-variable",
        "The variable belongs to servers that are reached over HTTP.",
        edit_end("mcp add", *ADD, do=edit_config(INLINE, f'bearer_token_env_var = "T"\n{INLINE}')),
    ),
    fault(
        "token-kept",
        "mcp-add.token-not-kept",
        "The key holds the name of the variable, never the token.",
        edit_run("add", edits.keep_token, "mcp add with the variable of a token"),
    ),
    fault(
        "token-printed",
        "mcp-add.token-not-shown",
        "Worth recording: a token on the screen is a token in a log.",
        edit_run("add", edits.print_token, "mcp add with the variable of a token"),
    ),
    fault(
        "transport-flat",
        "mcp-config.transport",
        "The values stand within transport.",
        edit_run("add", edits.flatten_transport, "mcp add --url"),
    ),
    fault(
        "transport-type-spelled-otherwise",
        "mcp-config.transport",
        "The type is streamable_http.",
        edit_end("mcp add --url", *WEB, do=edit_config('type = "streamable_http", ', "")),
    ),
    fault(
        "enabled-in-words",
        "mcp-config.member-types",
        "enabled is a boolean.",
        edit_end("mcp add", *ADD, do=edit_config("enabled = true", 'enabled = "true"')),
    ),
    fault(
        "env-with-numbers",
        "mcp-config.member-types",
        "env is a table of strings.",
        edit_end("mcp add", *ADD, do=edit_config('KEY = "a=b"', "KEY = 1")),
    ),
    fault(
        "other-server-lost",
        "mcp-config.others-kept",
        "One server is added; the others stay.",
        edit_run("add", edits.lose_other_server, "mcp add beside another server"),
    ),
    fault(
        "other-server-changed",
        "mcp-config.others-kept",
        "One server is added; the others stay as they are.",
        edit_run("add", edits.change_other_server, "mcp add beside another server"),
    ),
    fault(
        "other-key-lost",
        "mcp-config.other-keys-kept",
        "Worth recording: the file is the user's.",
        edit_end("mcp add", *ADD, do=edit_config('model = "mock-model"\n', "")),
    ),
    fault(
        "comment-lost",
        "mcp-config.comments-kept",
        "Worth recording: the file is the user's.",
        edit_run("add", edits.lose_comment, "mcp add to a file with comments"),
    ),
    fault(
        "concurrent-add-lost",
        "mcp-config.concurrent",
        "Worth recording: both commands said that they had added a server.",
        edit_end("mcp add", "add", do=edit_config("[mcp_servers.one]", "[lost.one]"), last=True),
        "mcp-at-once",
    ),
    fault(
        "wrong-name-taken",
        "mcp-name.characters",
        "A name has letters, digits, hyphens and underscores only.",
        edit_end(
            "mcp add of a wrong name",
            *("add", "a.b"),
            do=append_config(
                '\n[mcp_servers."a.b"]\ntransport = { type = "stdio", command = "x" }\n'
            ),
        ),
    ),
    fault(
        "wrong-name-mended",
        "mcp-name.refused",
        "A wrong name leaves the configuration as it was.",
        edit_end(
            "mcp add of a wrong name",
            *("add", "a.b"),
            do=append_config(
                '\n[mcp_servers.a-b]\ntransport = { type = "stdio", command = "x" }\n'
            ),
        ),
    ),
    fault(
        "removed-is-there",
        "mcp-remove.removes",
        "The server is taken out of the configuration.",
        edit_end("mcp remove", "remove", "docs", do=append_config(AGAIN)),
    ),
    fault(
        "remove-is-silent",
        "mcp-remove.says-removed",
        "It prints that the server was removed.",
        edit_end("mcp remove", "remove", "docs", do=print_nothing),
    ),
    fault(
        "unknown-not-named",
        "mcp-remove.says-unknown",
        "The line names the server.",
        edit_end(
            "second mcp remove", "remove", "docs", do=print_text("Nothing to do.\n"), last=True
        ),
    ),
    fault(
        "unknown-removed",
        "mcp-remove.tells-apart",
        "It prints that no server of that name exists.",
        edit_run("remove", edits.print_removed_for_unknown, "mcp remove behind one that removed"),
    ),
    fault(
        "column-missing",
        "mcp-list.columns",
        "The table has seven columns.",
        edit_end("table of mcp list", "list", do=edit_output("  Cwd", ""), output="Name"),
    ),
    fault(
        "columns-in-another-order",
        "mcp-list.columns",
        "The columns stand in the order of the text.",
        edit_run("list", edits.swap_columns, "table of mcp list"),
    ),
    fault(
        "server-not-listed",
        "mcp-list.every-server",
        "Every configured server is listed.",
        edit_run("list", edits.drop_last_row, "table of mcp list"),
    ),
    fault(
        "removed-is-listed",
        "mcp-list.every-server",
        "What was removed is not configured.",
        edit_end("mcp list --json", "list", do=edit_output('"web"', '"docs"'), last=True),
    ),
    fault(
        "status-in-another-word",
        "mcp-list.status",
        "The status of a server that is on reads enabled.",
        edit_end("table of mcp list", "list", do=edit_output("enabled", "ok"), output="Name"),
    ),
    fault(
        "list-is-no-array",
        "mcp-list.json-shape",
        "mcp list --json prints an array.",
        edit_end("mcp list --json", "list", do=print_text("{}\n")),
    ),
    fault(
        "list-without-auth",
        "mcp-list.json-shape",
        "Each object has auth_status.",
        edit_end("mcp list --json", "list", do=edit_output("auth_status", "auth"), last=True),
    ),
    fault(
        "list-with-a-notice",
        "mcp-list.json-shape",
        "What is printed is JSON.",
        edit_end("mcp list --json", "list", do=print_text("No servers.\n[]\n")),
    ),
    fault(
        "auth-in-another-word",
        "mcp-list.auth-words",
        "authenticated is the word for who is.",
        edit_end("mcp list --json", "list", do=edit_output("authenticated", "yes")),
        "mcp-oauth",
    ),
    fault(
        "transport-type-not-shown",
        "mcp-get.json-transport",
        "transport has a type.",
        edit_end("mcp get --json", "get", "web", do=edit_output('"type"', '"kind"')),
    ),
    fault(
        "argument-not-shown",
        "mcp-get.shows",
        "The arguments are shown.",
        edit_run("get", edits.hide_argument, "mcp get of a command with words"),
    ),
    fault(
        "no-hint",
        "mcp-get.shows",
        "It says how the server is removed.",
        edit_end("mcp get", "get", "docs", do=edit_output("remove: agent mcp remove docs", "")),
    ),
    fault(
        "get-takes-the-first",
        "mcp-get.name-needed",
        "The name must be given.",
        edit_end("mcp get without a name", "get", do=print_text("docs: launch-it\n"), last=True),
    ),
    fault(
        "address-not-printed",
        "mcp-login.address",
        "The address to visit is printed.",
        edit_end("mcp login", "login", do=print_text("See your browser.\nDone.\n")),
        "mcp-oauth",
    ),
    fault(
        "address-without-client",
        "mcp-login.address",
        "The address begins an OAuth flow.",
        edit_end("mcp login", "login", do=edit_output("client_id", "client")),
        "mcp-oauth",
    ),
    fault(
        "login-ends-in-silence",
        "mcp-login.success-line",
        "A line says that it went well.",
        edit_run("login", edits.print_nothing_after_address, "mcp login"),
        "mcp-oauth",
    ),
    fault(
        "scope-not-asked-for",
        "mcp-login.scopes",
        "Every scope that was given is asked for.",
        edit_end("mcp login", "login", do=edit_output("scope=read+write", "scope=read")),
        "mcp-oauth",
    ),
    fault(
        "scopes-with-commas",
        "mcp-login.scopes",
        "Between scopes OAuth has spaces.",
        edit_end("mcp login", "login", do=edit_output("read+write", "read,write")),
        "mcp-oauth",
    ),
    fault(
        "no-proof-key",
        "mcp-login.proof-key",
        "Worth recording: those who specify OAuth and MCP demand it.",
        edit_run("login", edits.drop_proof_key, "mcp login"),
        "mcp-oauth",
    ),
    fault(
        "login-of-stdio",
        "mcp-login.http-only",
        "Only streamable HTTP servers are logged in to.",
        edit_end(
            "mcp login of a stdio server",
            *("login", "docs"),
            do=print_text("Visit http://127.0.0.1:1/authorize?response_type=code\n"),
        ),
    ),
    fault(
        "login-of-stdio-ignored",
        "mcp-login.says-unsupported",
        "Somebody should be told that it is not supported.",
        edit_end("mcp login of a stdio server", "login", "docs", do=print_nothing),
    ),
    fault(
        "credentials-left",
        "mcp-logout.removes",
        "The credentials are removed.",
        edit_end("mcp logout", "logout", do=keep_credentials),
        "mcp-oauth",
    ),
    fault(
        "logout-is-silent",
        "mcp-logout.says-removed",
        "It prints that they were removed.",
        edit_end("mcp logout", "logout", do=print_nothing),
        "mcp-oauth",
    ),
    fault(
        "none-stored-not-named",
        "mcp-logout.says-none",
        "The line names the server.",
        edit_end("second mcp logout", "logout", do=print_text("Nothing to do.\n"), last=True),
        "mcp-oauth",
    ),
    fault(
        "none-stored-removed",
        "mcp-logout.tells-apart",
        "It prints that there are none.",
        edit_run(
            "logout", edits.print_removed_for_none_stored, "mcp logout behind one that removed"
        ),
        "mcp-oauth",
    ),
    fault(
        "logout-removes-server",
        "mcp-logout.keeps-server",
        "The server stays configured.",
        edit_end("mcp logout", "logout", do=remove_all_files),
        "mcp-oauth",
    ),
    fault(
        "credentials-for-all",
        "mcp-credentials.private",
        "Worth recording: who reads the file is who was logged in.",
        edit_end("mcp login", "login", do=make_credentials_readable),
        "mcp-oauth",
    ),
)
