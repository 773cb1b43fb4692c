"""Choices of `agent mcp` in logins to MCP servers, and with their credentials."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

from harness.judge.base import listen
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.mcp_runs import RunObserver, config, holders, is_cut, servers, way
from harness.judge.ledger.words import listed
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Commands, Run
from harness.trace.surfaces import COMMAND


def _asked(run: Run) -> set[str]:
    """Return what the run requested of a server of ours."""
    return {text(obj(frame.json).get("web")) for frame in run.web}


@observes("mcp-login.callback", "mcp-login.registration", surface=COMMAND)
class Steps(RunObserver):
    """Steps of a login: becoming a client of the server, and getting the user's answer."""

    def ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """One login whose address was visited."""
        if run.words.subcommand != "login" or not run.visits:
            return
        said = "registers itself" if "register" in _asked(run) else "does not register"
        yield Choice("mcp-login.registration", said, end)
        visit = run.visits[0]
        query = parse_qs(urlsplit(text(obj(visit.json).get("visits"))).query)
        back = urlsplit("".join(query.get("redirect_uri", [""])))
        first, *more = back.path.strip("/").split("/")
        path = f"/{first}/…" if more else f"/{first}"
        where = f"{back.hostname}, {path}" if back.hostname else "not by an address"
        yield Choice("mcp-login.callback", where, visit, "the way back")
        for name in ("code_challenge_method", "state"):
            value = "".join(query.get(name, [""]))
            said = value if name != "state" and value else "there" if value else "absent"
            yield Choice("mcp-login.callback", said, visit, name)


@observes("mcp-login.denied", surface=COMMAND)
class Denied(Observer):
    """A login whose user denies: it asks for no token."""

    @listen(("kind", "event"))
    def on_event(self, frame: Frame) -> Iterator[Choice]:
        """By itself, or since the harness did not wait any longer."""
        commands: Commands = self.scene.view
        run = commands.of(frame)
        if run is None or run.ended is not frame or not run.visits or "token" in _asked(run):
            return
        if run.words.subcommand == "login":
            yield Choice("mcp-login.denied", "it waits on" if is_cut(run) else way(run), frame)


@observes("mcp-add.login", surface=COMMAND)
class AtAdding(RunObserver):
    """A login to a server that asks for OAuth when it is added."""

    def ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """An addition of such a server that can be reached."""
        url, offers = run.words.last("--url") or "", text(obj(run.asked.json).get("offers"))
        if run.words.subcommand != "add" or not offers:
            return
        if urlsplit(url).netloc != urlsplit(offers).netloc:
            return
        begins = run.visits or "authorize" in _asked(run) or offers in run.printed
        asked = "the server is asked" if run.web else "the server is not asked"
        yield Choice("mcp-add.login", "a login begins" if begins else f"no login, {asked}", end)


@observes(
    "mcp-credentials.store", "mcp-remove.credentials", "mcp-logout.unconfigured", surface=COMMAND
)
class Credentials(RunObserver):
    """The place of credentials, and their lifetime."""

    def ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """A login, a removal, a logout."""
        kept, now = holders(run.asked), holders(end)
        match run.words.subcommand:
            case "login" if "token" in _asked(run):
                where = listed(f"{path} with mode {mode}" for path, mode in now.items())
                yield Choice("mcp-credentials.store", where or "in no file of the home", end)
            case "remove" if kept and run.words.name in servers(run.asked):
                said = "they are left" if now else "they are removed too"
                yield Choice("mcp-remove.credentials", said, end)
            case "logout" if run.words.name and config(run.asked) is not None:
                if run.words.name not in servers(run.asked):
                    yield Choice("mcp-logout.unconfigured", way(run), end)
            case _:
                pass
