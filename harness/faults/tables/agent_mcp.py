"""Faults of `agent mcp`: what a run prints, and what it leaves in the home.

A run is one message at its end, made by the harness; so these act on stored plays only. What breaks
a program in the same ways while it runs stands in the tests.
"""

import copy
from collections.abc import Callable
from typing import Any

from harness.faults import mcp_edits as edits
from harness.faults.base import Fault, NotApplied, StoredOnly
from harness.faults.mcp_runs import WHY, Message, run_of
from harness.faults.site import FaultSite
from harness.faults.stored import change
from harness.protocol.values import arr, obj
from harness.trace.frame import Frame
from harness.trace.trace import Trace

Edit = Callable[[Message], None]


def ending(what: str, *words: str, do: Edit, last: bool = False, printing: str = "") -> StoredOnly:
    """The end of the first run (or the last) whose words begin so, changed; `what` names it.

    Of runs that print something, where `printing` is given.
    """

    def make(_: FaultSite, trace: Trace) -> Trace:
        asked = [one for one in trace.frames if _begins(one, words)]
        wanted = [obj(one.json).get("id") for one in asked]
        ends = [one for one in trace.frames if _is_end(one, wanted, printing)]
        if not ends:
            raise NotApplied(f"no {what}")
        return change(trace, [ends[-1 if last else 0]], lambda value: _edited(value, do))

    return StoredOnly(WHY, make)


def _begins(frame: Frame, words: tuple[str, ...]) -> bool:
    argv = arr(obj(frame.json).get("argv"))
    return bool(argv) and argv[1 : len(words) + 1] == list(words)


def _is_end(frame: Frame, ids: list[Any], printing: str) -> bool:
    message = obj(frame.json)
    said = message.get("stdout")
    return message.get("id") in ids and isinstance(said, str) and printing in said


def _edited(value: Message, do: Edit) -> Message:
    edited = copy.deepcopy(value)
    do(edited)
    return edited


def config(old: str, new: str) -> Edit:
    """Other words in config.toml; it must have the old ones."""

    def edit(message: Message) -> None:
        for file in arr(message.get("files")):
            if obj(file).get("path") == "config.toml":
                if old not in str(file["text"]):
                    raise NotApplied(f"no {old!r} in config.toml")
                file["text"] = str(file["text"]).replace(old, new)

    return edit


def emptied(message: Message) -> None:
    """Nothing is left of the files."""
    message["files"] = []


def silent(message: Message) -> None:
    """Nothing is printed."""
    message["stdout"] = message["stderr"] = ""


def prints(text: str) -> Edit:
    """Something else is printed."""

    def edit(message: Message) -> None:
        message["stdout"], message["stderr"] = text, ""

    return edit


def printed(old: str, new: str) -> Edit:
    """Other words are printed; it must have the old ones."""

    def edit(message: Message) -> None:
        if old not in message["stdout"]:
            raise NotApplied(f"no {old!r} on standard output")
        message["stdout"] = message["stdout"].replace(old, new)

    return edit


def adding(table: str) -> Edit:
    """config.toml has another table too."""

    def edit(message: Message) -> None:
        for file in arr(message.get("files")):
            if obj(file).get("path") == "config.toml":
                file["text"] = f"{file['text']}{table}"

    return edit


def keeping(message: Message) -> None:
    """The credentials are still there."""
    held = {"path": ".credentials.json", "mode": "0600", "size": 99, "holds": ["access_token"]}
    message["files"] = [held, *arr(message.get("files"))]


def readable(message: Message) -> None:
    """The credentials can be read by everybody."""
    for file in arr(message.get("files")):
        if "holds" in obj(file):
            file["mode"] = "0644"


ADD, WEB = ("add", "docs"), ("add", "web")
INLINE = 'transport = { type = "stdio", command = "launch-it", args = ["-y", '
AGAIN = '\n[mcp_servers.docs]\ntransport = { type = "stdio", command = "x", args = [] }\n'


def fault(name: str, rule: str, reason: str, change: StoredOnly, on: str = "mcp-commands") -> Fault:
    """A row of this table."""
    return Fault(f"mcp-{name}", rule=rule, on=on, reason=reason, change=change)


FAULTS: tuple[Fault, ...] = (
    fault(
        "added-elsewhere",
        "mcp-add.configured",
        "Configurations are kept in config.toml, a table for each server.",
        ending("mcp add", *ADD, do=config("[mcp_servers.docs]", "[servers.docs]")),
    ),
    fault(
        "add-damages-the-file",
        "mcp-add.configured",
        "config.toml is a TOML file.",
        ending("mcp add", *ADD, do=adding("\n[mcp_servers")),
    ),
    fault(
        "words-taken-as-options",
        "mcp-add.verbatim",
        "What follows the double dash is the command, whatever it looks like.",
        ending("mcp add", *ADD, do=config('"--env", "X=1", ', "")),
    ),
    fault(
        "words-joined",
        "mcp-add.verbatim",
        "Each word is an argument of its own.",
        run_of("add", edits.words_joined, "mcp add of a command with two words"),
    ),
    fault(
        "env-value-cut",
        "mcp-add.environment",
        "The value is what follows the first equals sign.",
        ending("mcp add", *ADD, do=config('"a=b"', '"a"')),
    ),
    fault(
        "address-changed",
        "mcp-add.address",
        "The server has the address that was given.",
        run_of("add", edits.address_changed, "mcp add --url"),
    ),
    fault(
        "variable-forgotten",
        "mcp-add.bearer-variable",
        "The name of the variable is kept.",
        ending("mcp add --url", *WEB, do=config('bearer_token_env_var = "WEB_TOKEN"\n', "")),
    ),
    fault(
        "variable-of-stdio",
        "mcp-add.bearer-variable",
        "The variable belongs to servers that are reached over HTTP.",
        ending("mcp add", *ADD, do=config(INLINE, f'bearer_token_env_var = "T"\n{INLINE}')),
    ),
    fault(
        "token-kept",
        "mcp-add.token-not-kept",
        "The key holds the name of the variable, never the token.",
        run_of("add", edits.token_kept, "mcp add with the variable of a token"),
    ),
    fault(
        "token-printed",
        "mcp-add.token-not-shown",
        "Worth recording: a token on the screen is a token in a log.",
        run_of("add", edits.token_printed, "mcp add with the variable of a token"),
    ),
    fault(
        "transport-flat",
        "mcp-config.transport",
        "The values stand within transport.",
        run_of("add", edits.transport_flat, "mcp add --url"),
    ),
    fault(
        "transport-type-spelled-otherwise",
        "mcp-config.transport",
        "The type is streamable_http.",
        ending("mcp add --url", *WEB, do=config('type = "streamable_http", ', "")),
    ),
    fault(
        "enabled-in-words",
        "mcp-config.member-types",
        "enabled is a boolean.",
        ending("mcp add", *ADD, do=config("enabled = true", 'enabled = "true"')),
    ),
    fault(
        "env-with-numbers",
        "mcp-config.member-types",
        "env is a table of strings.",
        ending("mcp add", *ADD, do=config('KEY = "a=b"', "KEY = 1")),
    ),
    fault(
        "other-server-lost",
        "mcp-config.others-kept",
        "One server is added; the others stay.",
        run_of("add", edits.other_lost, "mcp add beside another server"),
    ),
    fault(
        "other-server-changed",
        "mcp-config.others-kept",
        "One server is added; the others stay as they are.",
        run_of("add", edits.other_changed, "mcp add beside another server"),
    ),
    fault(
        "other-key-lost",
        "mcp-config.other-keys-kept",
        "Worth recording: the file is the user's.",
        ending("mcp add", *ADD, do=config('model = "mock-model"\n', "")),
    ),
    fault(
        "comment-lost",
        "mcp-config.comments-kept",
        "Worth recording: the file is the user's.",
        run_of("add", edits.comment_lost, "mcp add to a file with comments"),
    ),
    fault(
        "concurrent-add-lost",
        "mcp-config.concurrent",
        "Worth recording: both commands said that they had added a server.",
        ending("mcp add", "add", do=config("[mcp_servers.one]", "[lost.one]"), last=True),
        "mcp-at-once",
    ),
    fault(
        "wrong-name-taken",
        "mcp-name.characters",
        "A name has letters, digits, hyphens and underscores only.",
        ending(
            "mcp add of a wrong name",
            *("add", "a.b"),
            do=adding('\n[mcp_servers."a.b"]\ntransport = { type = "stdio", command = "x" }\n'),
        ),
    ),
    fault(
        "wrong-name-mended",
        "mcp-name.refused",
        "A wrong name leaves the configuration as it was.",
        ending(
            "mcp add of a wrong name",
            *("add", "a.b"),
            do=adding('\n[mcp_servers.a-b]\ntransport = { type = "stdio", command = "x" }\n'),
        ),
    ),
    fault(
        "removed-is-there",
        "mcp-remove.removes",
        "The server is taken out of the configuration.",
        ending("mcp remove", "remove", "docs", do=adding(AGAIN)),
    ),
    fault(
        "remove-is-silent",
        "mcp-remove.says-removed",
        "It prints that the server was removed.",
        ending("mcp remove", "remove", "docs", do=silent),
    ),
    fault(
        "unknown-not-named",
        "mcp-remove.says-unknown",
        "The line names the server.",
        ending("second mcp remove", "remove", "docs", do=prints("Nothing to do.\n"), last=True),
    ),
    fault(
        "unknown-removed",
        "mcp-remove.tells-apart",
        "It prints that no server of that name exists.",
        run_of("remove", edits.unknown_removed, "mcp remove behind one that removed"),
    ),
    fault(
        "column-missing",
        "mcp-list.columns",
        "The table has seven columns.",
        ending("table of mcp list", "list", do=printed("  Cwd", ""), printing="Name"),
    ),
    fault(
        "columns-in-another-order",
        "mcp-list.columns",
        "The columns stand in the order of the text.",
        run_of("list", edits.columns_exchanged, "table of mcp list"),
    ),
    fault(
        "server-not-listed",
        "mcp-list.every-server",
        "Every configured server is listed.",
        run_of("list", edits.row_missing, "table of mcp list"),
    ),
    fault(
        "removed-is-listed",
        "mcp-list.every-server",
        "What was removed is not configured.",
        ending("mcp list --json", "list", do=printed('"web"', '"docs"'), last=True),
    ),
    fault(
        "status-in-another-word",
        "mcp-list.status",
        "The status of a server that is on reads enabled.",
        ending("table of mcp list", "list", do=printed("enabled", "ok"), printing="Name"),
    ),
    fault(
        "list-is-no-array",
        "mcp-list.json-shape",
        "mcp list --json prints an array.",
        ending("mcp list --json", "list", do=prints("{}\n")),
    ),
    fault(
        "list-without-auth",
        "mcp-list.json-shape",
        "Each object has auth_status.",
        ending("mcp list --json", "list", do=printed("auth_status", "auth"), last=True),
    ),
    fault(
        "list-with-a-notice",
        "mcp-list.json-shape",
        "What is printed is JSON.",
        ending("mcp list --json", "list", do=prints("No servers.\n[]\n")),
    ),
    fault(
        "auth-in-another-word",
        "mcp-list.auth-words",
        "authenticated is the word for who is.",
        ending("mcp list --json", "list", do=printed("authenticated", "yes")),
        "mcp-oauth",
    ),
    fault(
        "transport-type-not-shown",
        "mcp-get.json-transport",
        "transport has a type.",
        ending("mcp get --json", "get", "web", do=printed('"type"', '"kind"')),
    ),
    fault(
        "argument-not-shown",
        "mcp-get.shows",
        "The arguments are shown.",
        run_of("get", edits.argument_not_shown, "mcp get of a command with words"),
    ),
    fault(
        "no-hint",
        "mcp-get.shows",
        "It says how the server is removed.",
        ending("mcp get", "get", "docs", do=printed("remove: agent mcp remove docs", "")),
    ),
    fault(
        "get-takes-the-first",
        "mcp-get.name-needed",
        "The name must be given.",
        ending("mcp get without a name", "get", do=prints("docs: launch-it\n"), last=True),
    ),
    fault(
        "address-not-printed",
        "mcp-login.address",
        "The address to visit is printed.",
        ending("mcp login", "login", do=prints("See your browser.\nDone.\n")),
        "mcp-oauth",
    ),
    fault(
        "address-without-client",
        "mcp-login.address",
        "The address begins an OAuth flow.",
        ending("mcp login", "login", do=printed("client_id", "client")),
        "mcp-oauth",
    ),
    fault(
        "login-ends-in-silence",
        "mcp-login.success-line",
        "A line says that it went well.",
        run_of("login", edits.login_silent, "mcp login"),
        "mcp-oauth",
    ),
    fault(
        "scope-not-asked-for",
        "mcp-login.scopes",
        "Every scope that was given is asked for.",
        ending("mcp login", "login", do=printed("scope=read+write", "scope=read")),
        "mcp-oauth",
    ),
    fault(
        "scopes-with-commas",
        "mcp-login.scopes",
        "Between scopes OAuth has spaces.",
        ending("mcp login", "login", do=printed("read+write", "read,write")),
        "mcp-oauth",
    ),
    fault(
        "no-proof-key",
        "mcp-login.proof-key",
        "Worth recording: those who specify OAuth and MCP demand it.",
        run_of("login", edits.no_proof_key, "mcp login"),
        "mcp-oauth",
    ),
    fault(
        "login-of-stdio",
        "mcp-login.http-only",
        "Only streamable HTTP servers are logged in to.",
        ending(
            "mcp login of a stdio server",
            *("login", "docs"),
            do=prints("Visit http://127.0.0.1:1/authorize?response_type=code\n"),
        ),
    ),
    fault(
        "login-of-stdio-ignored",
        "mcp-login.says-unsupported",
        "Somebody should be told that it is not supported.",
        ending("mcp login of a stdio server", "login", "docs", do=silent),
    ),
    fault(
        "credentials-left",
        "mcp-logout.removes",
        "The credentials are removed.",
        ending("mcp logout", "logout", do=keeping),
        "mcp-oauth",
    ),
    fault(
        "logout-is-silent",
        "mcp-logout.says-removed",
        "It prints that they were removed.",
        ending("mcp logout", "logout", do=silent),
        "mcp-oauth",
    ),
    fault(
        "none-stored-not-named",
        "mcp-logout.says-none",
        "The line names the server.",
        ending("second mcp logout", "logout", do=prints("Nothing to do.\n"), last=True),
        "mcp-oauth",
    ),
    fault(
        "none-stored-removed",
        "mcp-logout.tells-apart",
        "It prints that there are none.",
        run_of("logout", edits.none_stored_removed, "mcp logout behind one that removed"),
        "mcp-oauth",
    ),
    fault(
        "logout-removes-server",
        "mcp-logout.keeps-server",
        "The server stays configured.",
        ending("mcp logout", "logout", do=emptied),
        "mcp-oauth",
    ),
    fault(
        "credentials-for-all",
        "mcp-credentials.private",
        "Worth recording: who reads the file is who was logged in.",
        ending("mcp login", "login", do=readable),
        "mcp-oauth",
    ),
)
