"""Good plays of `agent mcp`, for `good_traces`."""

import json
from collections.abc import Callable

from harness.trace.trace import Trace
from tests.rules.command_talk import HEADINGS, MCP_URL, CommandTalk, http_table, stdio_table

TOKEN = {"WEB_TOKEN": "s3cr3t-value"}
HEAD = '# The user\'s own words.\nmodel = "mock-model"\n\n'


def commands() -> Trace:
    """Servers of both kinds, added, listed, shown and removed; names that are wrong or unknown."""
    talk = CommandTalk("mcp-commands").config(HEAD)
    talk.asks("list", "--json").ends("[]\n")
    talk.adds("docs", "launch-it", "-y", "--env", "X=1", "--url", "u", KEY="a=b")
    talk.adds_http("web", variable="WEB_TOKEN", **TOKEN)
    talk.asks("list").ends(
        f"{HEADINGS}\n"
        "docs  launch-it  -y --env X=1 --url u  KEY=*****  -  enabled  unsupported\n"
        f"web  {MCP_URL}  -  -  -  enabled  bearer_token\n"
    )
    words = [("docs", "unsupported"), ("web", "bearer_token")]
    talk.asks("list", "--json", env=TOKEN).ends(
        json.dumps([{"name": name, "auth_status": auth} for name, auth in words])
    )
    talk.asks("get", "docs").ends(
        "docs\n  enabled: true\n  transport: stdio\n  command: launch-it\n"
        "  args: -y --env X=1 --url u\n  env: KEY=*****\n  remove: agent mcp remove docs\n"
    )
    talk.asks("get", "web", "--json").ends('{"transport": {"type": "streamable_http"}}\n')
    talk.asks("get").ends("", "error: NAME is missing\n", status=2)
    talk.asks("add", "a.b", "--", "x").ends("", "error: 'a.b' is no name\n", status=1)
    talk.asks("login", "docs").ends("", "error: OAuth is for streamable HTTP servers\n", status=1)
    talk.asks("login").ends("", "error: NAME is missing\n", status=2)
    talk.removes("docs", HEAD + http_table("web", variable="WEB_TOKEN"))
    talk.asks("remove", "docs").ends("No MCP server named docs.\n")
    return talk.asks("list", "--json").ends('[{"name": "web", "auth_status": "x"}]').trace()


def at_once() -> Trace:
    """Two servers are added at the same time, and both are there."""
    talk = CommandTalk("mcp-at-once").config(HEAD)
    talk.asks("add", "one", "--", "x").asks("add", "two", "--", "x")
    talk.config(HEAD + stdio_table("one", "x")).ends("Added one.\n", run=1)
    talk.config(talk.said + stdio_table("two", "x")).ends("Added two.\n", run=2)
    return talk.trace()


def oauth() -> Trace:
    """A server is logged in to with scopes, and out of, twice."""
    talk = CommandTalk("mcp-oauth").adds_http("web")
    scopes = ("--scopes", "read,write")
    talk.logs_in("web", *scopes, address=talk.address("read+write"))
    talk.asks("list", "--json").ends('[{"name": "web", "auth_status": "authenticated"}]\n')
    return talk.logs_out("web").logs_out_of_nothing("web").trace()


COMMANDS: dict[str, Callable[[], Trace]] = {
    "mcp-commands": commands,
    "mcp-at-once": at_once,
    "mcp-oauth": oauth,
}
