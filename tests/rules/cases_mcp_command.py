"""Cases of the rules on `agent mcp`."""

import json
from typing import Any

from harness.judge.verdict import Level
from tests.rules.case import Case, Found
from tests.rules.command_talk import (
    AUTHORIZE,
    HEADINGS,
    MCP_URL,
    CommandTalk,
    http_table,
    stdio_table,
)

DOCS = stdio_table("docs", "npx", "-y", "server")
WEB = http_table("web")
ADDED = ("run 1, mcp add docs",)
TOKEN = {"WEB_TOKEN": "s3cr3t-value"}


def talk(config: str = "") -> CommandTalk:
    """A play whose home has this config.toml."""
    return CommandTalk().config(config)


def adds(left: str, *argv: str, out: str = "Added.\n", **more: Any) -> CommandTalk:
    """One `mcp add`, of docs unless the words say otherwise, after which config.toml is `left`."""
    words = argv or ("docs", "--", "npx", "-y", "server")
    return talk().asks("add", *words, **more).config(left).ends(out)


def idle() -> CommandTalk:
    """A run that no rule has anything to say of: there is no such subcommand."""
    return talk().asks("frobnicate").ends("", "usage\n", status=2)


def lists(out: str, config: str = DOCS, *options: str) -> CommandTalk:
    """One `mcp list`."""
    return talk(config).asks("list", *options).ends(out)


def gets(out: str, config: str = DOCS, *options: str) -> CommandTalk:
    """One `mcp get docs`."""
    return talk(config).asks("get", "docs", *options).ends(out)


def table(*rows: str) -> str:
    """The table of mcp list."""
    return "\n".join((HEADINGS, *rows)) + "\n"


ROW = "docs  npx  -y server  -  -  enabled  unsupported"
SHOWN = (
    "docs\n  enabled: true\n  transport: stdio\n  command: npx\n  args: -y server\n"
    "  env: -\n  remove: agent mcp remove docs\n"
)
LISTED = json.dumps([{"name": "docs", "auth_status": "unsupported"}])


def removes(name: str, left: str, out: str = "", err: str = "") -> CommandTalk:
    """One `mcp remove` where docs is configured."""
    return talk(DOCS).asks("remove", name).config(left).ends(out, err)


def login(**more: Any) -> CommandTalk:
    """A login to the server web."""
    return talk(WEB).logs_in("web", **more)


def prints(out: str, *options: str) -> CommandTalk:
    """A login to web that prints this, after which it has its token."""
    asked = talk(WEB).asks("login", "web", *options, offers=AUTHORIZE)
    return asked.web("token").answers("token", {}).ends(out)


def together(*left: str) -> CommandTalk:
    """Two additions at once, after which the file has these servers."""
    both = talk().asks("add", "one", "--", "x").asks("add", "two", "--", "x")
    both.config("".join(stdio_table(name, "x") for name in left))
    return both.ends(run=1).ends(run=2)


ADD = (0, 1)
ANOTHER = "run 1, mcp add a.b"
QUOTED = stdio_table('"a.b"', "npx")

CASES = [
    Case(
        "mcp-add.configured",
        good=adds(DOCS),
        witnesses=ADDED,
        bad=adds(""),
        found=(Found(ADDED[0], ADD),),
        not_exercised=idle(),
    ),
    Case(
        "mcp-add.verbatim",
        good=adds(stdio_table("docs", "x", "--env", "A=b"), "docs", "--", "x", "--env", "A=b"),
        witnesses=ADDED,
        bad=adds(stdio_table("docs", "x", A="b"), "docs", "--", "x", "--env", "A=b"),
        found=(Found(ADDED[0], ADD),),
        not_exercised=adds(http_table("docs"), "docs", "--url", MCP_URL),
    ),
    Case(
        "mcp-add.environment",
        good=adds(stdio_table("docs", "x", A="b=c"), "docs", "--env", "A=b=c", "--", "x"),
        witnesses=ADDED,
        bad=adds(stdio_table("docs", "x", A="b"), "docs", "--env", "A=b=c", "--", "x"),
        found=(Found(ADDED[0], ADD),),
        not_exercised=adds(http_table("docs"), "docs", "--url", MCP_URL),
    ),
    Case(
        "mcp-add.address",
        good=adds(http_table("docs"), "docs", "--url", MCP_URL),
        witnesses=ADDED,
        bad=adds(http_table("docs", "http://127.0.0.1/"), "docs", "--url", MCP_URL),
        found=(Found(ADDED[0], ADD),),
        not_exercised=adds(DOCS),
    ),
    Case(
        "mcp-add.bearer-variable",
        good=talk().adds_http("docs", variable="WEB_TOKEN"),
        witnesses=ADDED,
        bad=adds(
            http_table("docs", variable="$WEB_TOKEN"),
            *("docs", "--url", MCP_URL, "--bearer-token-env-var", "WEB_TOKEN"),
        ),
        found=(Found(ADDED[0], ADD),),
        not_exercised=idle(),
    ),
    Case(
        "mcp-add.token-not-kept",
        good=talk().adds_http("docs", variable="WEB_TOKEN", **TOKEN),
        witnesses=ADDED,
        bad=adds(
            http_table("docs", variable="WEB_TOKEN") + '# it is "s3cr3t-value"\n',
            *("docs", "--url", MCP_URL, "--bearer-token-env-var", "WEB_TOKEN"),
            env=TOKEN,
        ),
        found=(Found(ADDED[0], ADD),),
        not_exercised=talk().adds_http("docs", variable="WEB_TOKEN"),
    ),
    Case(
        "mcp-add.token-not-shown",
        good=talk(http_table("web", variable="WEB_TOKEN")).asks("list", env=TOKEN).ends("web\n"),
        witnesses=("run 1, mcp list",),
        bad=talk(http_table("web", variable="WEB_TOKEN"))
        .asks("list", env=TOKEN)
        .ends("web s3cr3t-value\n"),
        found=(Found("run 1, mcp list", ADD, Level.INFO),),
        not_exercised=talk(WEB).asks("list", env=TOKEN).ends("web\n"),
    ),
    Case(
        "mcp-config.transport",
        good=adds(DOCS),
        witnesses=ADDED,
        bad=adds('[mcp_servers.docs]\ncommand = "npx"\nargs = ["-y", "server"]\n'),
        found=(Found(ADDED[0], ADD),),
        not_exercised=adds(""),
    ),
    Case(
        "mcp-config.member-types",
        good=adds(DOCS),
        witnesses=ADDED,
        bad=adds(DOCS.replace("enabled = true", 'enabled = "yes"')),
        found=(Found(ADDED[0], ADD),),
        not_exercised=adds(DOCS.replace("enabled = true\n", "")),
    ),
    Case(
        "mcp-config.others-kept",
        good=talk(DOCS).adds("more", "x"),
        witnesses=("run 1, mcp add more",),
        bad=talk(DOCS).asks("add", "more", "--", "x").config(stdio_table("more", "x")).ends(),
        found=(Found("run 1, mcp add more", ADD),),
        not_exercised=adds(DOCS),
    ),
    Case(
        "mcp-config.other-keys-kept",
        good=talk('model = "m"\n').adds("more", "x"),
        witnesses=("run 1, mcp add more",),
        bad=talk('model = "m"\n')
        .asks("add", "more", "--", "x")
        .config(stdio_table("more", "x"))
        .ends(),
        found=(Found("run 1, mcp add more", ADD, Level.SHOULD),),
        not_exercised=talk(DOCS).adds("more", "x"),
    ),
    Case(
        "mcp-config.comments-kept",
        good=talk(f"# mine\n{DOCS}").adds("more", "x"),
        witnesses=("run 1, mcp add more",),
        bad=talk(f"# mine\n{DOCS}")
        .asks("add", "more", "--", "x")
        .config(DOCS + stdio_table("more", "x"))
        .ends(),
        found=(Found("run 1, mcp add more", ADD, Level.SHOULD),),
        not_exercised=talk(f"# mine\n{DOCS}")
        .asks("remove", "docs")
        .config("")
        .ends("Removed docs\n"),
    ),
    Case(
        "mcp-config.concurrent",
        good=together("one", "two"),
        witnesses=("run 1, mcp add one", "run 2, mcp add two"),
        bad=together("two"),
        found=(Found("run 1, mcp add one", (0, 3), Level.INFO),),
        not_exercised=talk().adds("one", "x").adds("two", "x"),
    ),
    Case(
        "mcp-name.characters",
        good=adds("", "a.b", "--", "npx"),
        witnesses=(ANOTHER,),
        bad=adds(QUOTED, "a.b", "--", "npx"),
        found=(Found(ANOTHER, ADD),),
        not_exercised=adds(DOCS),
    ),
    Case(
        "mcp-name.refused",
        good=adds("", "a.b", "--", "npx"),
        witnesses=(ANOTHER,),
        bad=adds(stdio_table("a_b", "npx"), "a.b", "--", "npx"),
        found=(Found(ANOTHER, ADD, Level.SHOULD),),
        not_exercised=adds(DOCS),
    ),
    Case(
        "mcp-remove.removes",
        good=removes("docs", "", "Removed docs.\n"),
        witnesses=("run 1, mcp remove docs",),
        bad=removes("docs", DOCS, "Removed docs.\n"),
        found=(Found("run 1, mcp remove docs", ADD),),
        not_exercised=removes("nope", DOCS, "No server nope.\n"),
    ),
    Case(
        "mcp-remove.says-removed",
        good=removes("docs", "", err="Removed docs.\n"),
        witnesses=("run 1, mcp remove docs",),
        bad=removes("docs", ""),
        found=(Found("run 1, mcp remove docs", ADD),),
        not_exercised=removes("nope", DOCS, "No server nope.\n"),
    ),
    Case(
        "mcp-remove.says-unknown",
        good=removes("nope", DOCS, err="No server 'nope'.\n"),
        witnesses=("run 1, mcp remove nope",),
        bad=removes("nope", DOCS, "There is no such server.\n"),
        found=(Found("run 1, mcp remove nope", ADD),),
        not_exercised=removes("docs", "", "Removed docs.\n"),
    ),
    Case(
        "mcp-remove.tells-apart",
        good=removes("docs", "", "Removed docs.\n").asks("remove", "docs").ends("No docs here.\n"),
        witnesses=("run 2, mcp remove docs",),
        bad=removes("docs", "", "Removed docs.\n").asks("remove", "old").ends("Removed old.\n"),
        found=(Found("run 2, mcp remove old", (0, 1, 2, 3)),),
        not_exercised=removes("nope", DOCS, "No server nope.\n"),
    ),
    Case(
        "mcp-list.columns",
        good=lists(table(ROW)),
        witnesses=("run 1, mcp list",),
        bad=lists("Name  Command  Status\ndocs  npx  enabled\n"),
        found=(Found("run 1, mcp list", ADD),),
        not_exercised=lists("No servers yet.\n", ""),
    ),
    Case(
        "mcp-list.every-server",
        good=lists(table(ROW)),
        witnesses=("run 1, mcp list",),
        bad=lists(table()),
        found=(Found("run 1, mcp list", ADD),),
        not_exercised=lists("No servers yet.\n", ""),
    ),
    Case(
        "mcp-list.status",
        good=lists(table(ROW)),
        witnesses=("run 1, mcp list, docs",),
        bad=lists(table(ROW.replace("enabled", "on"))),
        found=(Found("run 1, mcp list, docs", ADD, Level.SHOULD),),
        not_exercised=lists(table(ROW), DOCS.replace("true", "false")),
    ),
    Case(
        "mcp-list.json-shape",
        good=lists(LISTED, DOCS, "--json"),
        witnesses=("run 1, mcp list",),
        bad=lists('[{"name": "docs"}]', DOCS, "--json"),
        found=(Found("run 1, mcp list", ADD),),
        not_exercised=lists(table(ROW)),
    ),
    Case(
        "mcp-list.auth-words",
        good=lists(LISTED, DOCS, "--json"),
        witnesses=("run 1, mcp list, docs",),
        bad=lists(LISTED.replace("unsupported", "none"), DOCS, "--json"),
        found=(Found("run 1, mcp list, docs", ADD, Level.SHOULD),),
        not_exercised=lists('[{"name": "web", "auth_status": "unknown"}]', WEB, "--json"),
    ),
    Case(
        "mcp-get.json-transport",
        good=gets('{"transport": {"type": "stdio"}}', DOCS, "--json"),
        witnesses=("run 1, mcp get docs",),
        bad=gets('{"transport": "stdio"}', DOCS, "--json"),
        found=(Found("run 1, mcp get docs", ADD),),
        not_exercised=gets(SHOWN),
    ),
    Case(
        "mcp-get.shows",
        good=gets(SHOWN),
        witnesses=("run 1, mcp get docs",),
        bad=gets(SHOWN.replace("-y server", "-y")),
        found=(Found("run 1, mcp get docs", ADD),),
        not_exercised=gets("docs (disabled)\n", DOCS.replace("true", "false")),
    ),
    Case(
        "mcp-get.name-needed",
        good=talk(stdio_table("docs", "launch-it")).asks("get").ends("", "a name is needed\n"),
        witnesses=("run 1, mcp get",),
        bad=talk(stdio_table("docs", "launch-it")).asks("get").ends("docs: launch-it\n"),
        found=(Found("run 1, mcp get", ADD),),
        not_exercised=talk().asks("get").ends("", "a name is needed\n"),
    ),
    Case(
        "mcp-login.address",
        good=login(),
        witnesses=("run 1, mcp login web",),
        bad=prints("Look at your browser.\nLogged in to web.\n"),
        found=(Found("run 1, mcp login web", (0, 3)),),
        not_exercised=talk(DOCS).asks("login", "docs").ends("", "not for stdio\n"),
    ),
    Case(
        "mcp-login.success-line",
        good=login(),
        witnesses=("run 1, mcp login web",),
        bad=prints(f"Visit {talk().address()}\n"),
        found=(Found("run 1, mcp login web", (0, 3)),),
        not_exercised=talk(WEB).asks("login", "web", offers=AUTHORIZE).ends("", "nobody came\n"),
    ),
    Case(
        "mcp-login.scopes",
        good=prints(f"{talk().address('one+two')}\nDone.\n", "--scopes", "one,two"),
        witnesses=("run 1, mcp login web",),
        bad=prints(f"{talk().address('one,two')}\nDone.\n", "--scopes", "one,two"),
        found=(Found("run 1, mcp login web", (0, 3)),),
        not_exercised=prints(f"{talk().address()}\nDone.\n"),
    ),
    Case(
        "mcp-login.proof-key",
        good=login(),
        witnesses=("run 1, mcp login web",),
        bad=prints(f"{talk().address(code_challenge_method='plain')}\nDone.\n"),
        found=(Found("run 1, mcp login web", (0, 3), Level.INFO),),
        not_exercised=prints("Look at your browser.\n"),
    ),
    Case(
        "mcp-login.http-only",
        good=talk(DOCS).asks("login", "docs").ends("", "not for stdio\n"),
        witnesses=("run 1, mcp login docs",),
        bad=talk(DOCS).asks("login", "docs").ends(f"Visit {talk().address()}\n"),
        found=(Found("run 1, mcp login docs", ADD),),
        not_exercised=login(),
    ),
    Case(
        "mcp-login.says-unsupported",
        good=talk(DOCS).asks("login", "docs").ends("", "not for stdio\n"),
        witnesses=("run 1, mcp login docs",),
        bad=talk(DOCS).asks("login", "docs").ends(),
        found=(Found("run 1, mcp login docs", ADD, Level.SHOULD),),
        not_exercised=login(),
    ),
    Case(
        "mcp-logout.removes",
        good=login().logs_out("web"),
        witnesses=("run 2, mcp logout web",),
        bad=login().asks("logout", "web").ends("Removed.\n"),
        found=(Found("run 2, mcp logout web", (6, 7)),),
        not_exercised=talk(WEB).logs_out_of_nothing("web"),
    ),
    Case(
        "mcp-logout.says-removed",
        good=login().logs_out("web"),
        witnesses=("run 2, mcp logout web",),
        bad=login().asks("logout", "web").store().ends(),
        found=(Found("run 2, mcp logout web", (6, 7)),),
        not_exercised=talk(WEB).logs_out_of_nothing("web"),
    ),
    Case(
        "mcp-logout.says-none",
        good=talk(WEB).logs_out_of_nothing("web"),
        witnesses=("run 1, mcp logout web",),
        bad=talk(WEB).asks("logout", "web").ends("Nothing to do.\n"),
        found=(Found("run 1, mcp logout web", ADD),),
        not_exercised=login().logs_out("web"),
    ),
    Case(
        "mcp-logout.tells-apart",
        good=login().logs_out("web").logs_out_of_nothing("web"),
        witnesses=("run 3, mcp logout web",),
        bad=login().logs_out("web").logs_out("web"),
        found=(Found("run 3, mcp logout web", (6, 7, 8, 9)),),
        not_exercised=talk(WEB).logs_out_of_nothing("web"),
    ),
    Case(
        "mcp-logout.keeps-server",
        good=login().logs_out("web"),
        witnesses=("run 2, mcp logout web",),
        bad=login().asks("logout", "web").store().config("").ends("Removed web.\n"),
        found=(Found("run 2, mcp logout web", (6, 7), Level.SHOULD),),
        not_exercised=login(),
    ),
    Case(
        "mcp-credentials.private",
        good=login(),
        witnesses=("run 1, mcp login web",),
        bad=talk(WEB)
        .asks("login", "web", offers=AUTHORIZE)
        .store("access_token", mode="0644")
        .ends("Done.\n"),
        found=(Found("run 1, mcp login web", ADD, Level.INFO),),
        not_exercised=talk(WEB).logs_out_of_nothing("web"),
    ),
]
