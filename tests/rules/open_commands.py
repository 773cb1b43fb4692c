"""Other choices at open points of `agent mcp`."""

import json

from tests.rules.command_talk import HEADINGS, CommandTalk, http_table, stdio_table
from tests.rules.open_point import Otherwise, Untried, Why

DOCS = stdio_table("docs", "npx")
FLAT = '[mcp_servers.old]\ncommand = "npx"\n'
AUTH_LATER = "a turn would show it, and no rule on agent mcp judges turns"


def home(config: str) -> CommandTalk:
    """A play whose home has this config.toml."""
    return CommandTalk().config(config)


def drops_other_keys() -> CommandTalk:
    """The program rewrites the file with the settings that it knows, and drops the others."""
    talk = home(f'# mine\nmodel = "m"\n{DOCS}').asks("add", "more", "--", "x")
    return talk.config(DOCS + stdio_table("more", "x")).ends("Added.\n")


def writes_other_keys_anew() -> CommandTalk:
    """The program writes unknown settings in its own form: other white space and quotes."""
    talk = home(f'# mine\nmodel = "m"\n{DOCS}').asks("add", "more", "--", "x")
    written = f"model='m'\n\n  # mine\n{DOCS}{stdio_table('more', 'x')}"
    return talk.config(written).ends("Added.\n")


def mends_a_broken_file() -> CommandTalk:
    """Begins a new file where the old one is not TOML."""
    return home("[[broken").asks("add", "docs", "--", "npx").config(DOCS).ends("Added.\n")


def refuses_a_broken_file() -> CommandTalk:
    """Changes nothing, and shows nothing."""
    talk = home("[[broken").asks("add", "docs", "--", "npx").ends("", "line 1: broken\n")
    return talk.asks("list").ends("", "line 1: broken\n").asks("remove", "docs").ends("", "no\n")


def loses_one() -> CommandTalk:
    """One of two simultaneous additions is lost."""
    talk = CommandTalk().asks("add", "one", "--", "x").asks("add", "two", "--", "x")
    return talk.config(stdio_table("two", "x")).ends(run=1).ends(run=2)


def off_by_default() -> CommandTalk:
    """A server without enabled is off."""
    talk = CommandTalk().asks("add", "docs", "--", "npx")
    talk.config(DOCS.replace("enabled = true\n", "")).ends("Added.\n")
    talk.asks("list").ends(f"{HEADINGS}\ndocs  npx  -  -  -  off  none\n")
    return talk.asks("get", "docs").ends("docs\n  enabled: false\n  stdio: npx\n  to remove: …\n")


def passes_over_flat_tables() -> CommandTalk:
    """The program does not read tables whose keys are not within transport."""
    talk = home(FLAT).asks("list").ends("No servers.\n").asks("list", "--json").ends("[]\n")
    talk.asks("get", "old").ends("", "no such server\n")
    return talk.asks("remove", "old").ends("No server old.\n").adds("docs", "npx")


def takes_env_for_http() -> CommandTalk:
    """The program keeps --env of a streamable HTTP server."""
    talk = CommandTalk().asks("add", "web", "--url", "http://h/", "--env", "A=b")
    return talk.config(http_table("web", "http://h/") + 'env = { A = "b" }\n').ends("Added.\n")


def takes_an_empty_name() -> CommandTalk:
    """A server may have no name."""
    return CommandTalk().asks("add", "", "--", "x").config(stdio_table('""', "x")).ends("Added.\n")


def other_words() -> CommandTalk:
    """The program has words of its own for auth and status of servers that are off or over HTTP."""
    talk = home(http_table("web") + DOCS.replace("true", "false"))
    talk.asks("list").ends(f"{HEADINGS}\nweb  -  -  -  -  enabled  maybe\ndocs npx - - - off no\n")
    words = [("web", "maybe"), ("docs", "Unsupported")]
    return talk.asks("list", "--json").ends(
        json.dumps([{"name": name, "auth_status": auth} for name, auth in words])
    )


def more_columns() -> CommandTalk:
    """The program has columns for the address, between the others, and a second table."""
    talk = home(http_table("web") + DOCS)
    return talk.asks("list").ends(
        "Name | Command | Args | Env | Cwd | Url | Status | Auth\n-----\n"
        "docs | npx | | | /srv | | enabled | unsupported\n\n"
        "Name | Url | Status\nweb | http://127.0.0.1:8081/mcp | enabled\n"
    )


def shows_values() -> CommandTalk:
    """Prints the values of variables."""
    talk = CommandTalk().adds("docs", "npx", KEY="v4lue")
    talk.asks("list").ends(f"{HEADINGS}\ndocs npx - KEY=v4lue - enabled unsupported\n")
    return talk.asks("get", "docs").ends("enabled stdio npx KEY=v4lue; remove: mcp remove docs\n")


def more_members() -> CommandTalk:
    """Prints more in JSON, and the objects in an order of its own."""
    entry = {"name": "docs", "auth_status": None, "tools": [], "enabled": "yes"}
    talk = home(http_table("docs")).asks("list", "--json").ends(json.dumps([entry]))
    shown = {"transport": {"type": "streamable_http", "more": 1}, "name": 1}
    return talk.asks("get", "docs", "--json").ends(json.dumps(shown, indent=2))


def no_subcommand() -> CommandTalk:
    """Lists the servers where there is no subcommand, and knows others."""
    talk = home(DOCS).asks().ends("docs\n")
    return talk.asks("restart", "docs").ends("Restarted docs.\n")


def table_of_nothing() -> CommandTalk:
    """Prints nothing, or the headings alone, where there is no server."""
    return CommandTalk().asks("list").ends("").asks("list").ends(HEADINGS)


def unknown_is_empty() -> CommandTalk:
    """Prints nothing for an unknown name."""
    talk = home(DOCS).asks("get", "nope").ends("").asks("get", "nope", "--json").ends("null\n")
    return talk.asks("login", "nope").ends("")


def keeps_the_existing() -> CommandTalk:
    """Refuses a name that is taken."""
    return home(DOCS).asks("add", "docs", "--", "other").ends("", "taken\n", status=1)


def env_without_equals() -> CommandTalk:
    """The program takes the value from its own environment if the equals sign is missing."""
    talk = CommandTalk().asks("add", "docs", "--env", "HOME", "--", "npx")
    return talk.config(stdio_table("docs", "npx", HOME="/root")).ends("Added.\n")


def needs_dashes() -> CommandTalk:
    """Refuses a command that has no double dash before it."""
    return CommandTalk().asks("add", "docs", "npx", "-y").ends("", "usage\n", status=2)


def takes_both_kinds() -> CommandTalk:
    """The program uses the address, and ignores the command."""
    talk = CommandTalk().asks("add", "docs", "--url", "http://h/", "--", "npx")
    return talk.config(http_table("docs", "http://h/")).ends("Added.\n")


def login_at_add() -> CommandTalk:
    """Logs in when a server is added."""
    talk = CommandTalk().asks("add", "web", "--url", "http://h/")
    talk.config(http_table("web", "http://h/")).web("metadata").store("access_token")
    return talk.ends(f"Added. Visit {talk.address()}\n")


def keeps_credentials() -> CommandTalk:
    """Leaves the credentials when the server is removed."""
    talk = home(http_table("web")).logs_in("web")
    return talk.removes("web").asks("logout", "web").ends("")


def another_callback() -> CommandTalk:
    """The program lets the user type in a code, and has no proof key."""
    talk = home(http_table("web"))
    bare = talk.address(state="", code_challenge="", redirect_uri="urn:ietf:wg:oauth:2.0:oob")
    return talk.logs_in("web", address=bare)


def denied() -> CommandTalk:
    """The program prints nothing if the user denies, or never answers."""
    talk = home(http_table("web")).asks("login", "web", offers="http://127.0.0.1:8080/authorize")
    return talk.visits(talk.address()).ends(f"{talk.address()}\n", cut=True)


def another_store() -> CommandTalk:
    """The program stores credentials in a keyring, or in a file that all can read."""
    talk = home(http_table("web")).logs_in("web").store("access_token", mode="0644")
    return talk.asks("logout", "web").store().ends("Removed.\n")


def logout_unconfigured() -> CommandTalk:
    """Prints nothing for a name that is not configured."""
    return home(DOCS).asks("logout", "nope").ends("", status=1)


def one_status() -> CommandTalk:
    """The program exits with the same status after success and failure."""
    talk = home(DOCS).asks("remove", "nope").ends("No server nope.\n", status=7)
    talk.asks("add", "a.b", "--", "x").ends("", "no name\n", status=7)
    return talk.asks("list", "--json").ends(
        '[{"name": "docs", "auth_status": "unsupported"}]\n', status=7
    )


OTHERWISE = [
    Otherwise("mcp-command.exit-statuses", "always ends with 7", one_status),
    Otherwise("mcp-config.other-keys", "writes them in its own form", writes_other_keys_anew),
    Otherwise("mcp-config.broken-file", "begins a new file", mends_a_broken_file),
    Otherwise("mcp-config.broken-file", "does nothing at all", refuses_a_broken_file),
    Otherwise("mcp-config.concurrent", "loses one of two", loses_one),
    Otherwise("mcp-config.enabled-default", "has servers off by default", off_by_default),
    Otherwise("mcp-config.flat-form", "does not read flat tables", passes_over_flat_tables),
    Otherwise("mcp-config.env-for-http", "keeps env of HTTP servers", takes_env_for_http),
    Otherwise("mcp-name.empty", "takes an empty name", takes_an_empty_name),
    Otherwise("mcp-list.auth-words", "has other words for auth", other_words),
    Otherwise("mcp-list.status-words", "has other words for status", other_words),
    Otherwise("mcp-list.url-column", "has a column for the address", more_columns),
    Otherwise("mcp-list.cwd-column", "shows a folder of its own", more_columns),
    Otherwise("mcp-list.secrets", "prints the values of variables", shows_values),
    Otherwise("mcp-list.json-fields", "has more members", more_members),
    Otherwise("mcp-command.no-subcommand", "lists the servers", no_subcommand),
    Otherwise("mcp-list.empty", "prints nothing, or headings alone", table_of_nothing),
    Otherwise("mcp-get.unknown", "prints nothing", unknown_is_empty),
    Otherwise("mcp-add.existing", "refuses a name that is taken", keeps_the_existing),
    Otherwise("mcp-add.env-form", "takes a name without a value", env_without_equals),
    Otherwise("mcp-add.without-dashes", "needs the double dash", needs_dashes),
    Otherwise("mcp-add.both-kinds", "takes the address", takes_both_kinds),
    Otherwise("mcp-add.login", "logs in when it adds", login_at_add),
    Otherwise("mcp-remove.credentials", "leaves the credentials", keeps_credentials),
    Otherwise("mcp-login.callback", "has the code typed in", another_callback),
    Otherwise("mcp-login.registration", "has a client id of its own", another_callback),
    Otherwise("mcp-login.denied", "says nothing", denied),
    Otherwise("mcp-credentials.store", "keeps them elsewhere", another_store),
    Otherwise("mcp-logout.unconfigured", "prints nothing", logout_unconfigured),
]

UNTRIED = [
    Untried(
        "limits.command-and-sdk",
        Why.NO_RULE,
        "no rule judges how long or how many words, servers or turns may be",
    ),
    Untried(
        "versioning.command-and-sdk",
        Why.NOT_ON_THE_WIRE,
        "no command and no call of the text tells a version",
    ),
    Untried(
        "mcp-config.home",
        Why.NOT_ON_THE_WIRE,
        "the harness is told where the home is, and looks nowhere else",
    ),
    Untried("mcp-auth.both", Why.NO_RULE, AUTH_LATER),
    Untried("mcp-auth.variable-unset", Why.NO_RULE, AUTH_LATER),
    Untried("mcp-auth.inherited-env", Why.NO_RULE, AUTH_LATER),
]
