"""Choices of `agent mcp` in logins to MCP servers, and about their credentials."""

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

from harness.judge.base import listen
from harness.judge.ledger.base import Choice, Observer, observes
from harness.judge.ledger.mcp_runs import (
    RunObserver,
    config_table,
    end_words,
    is_cut,
    servers,
    token_files,
)
from harness.judge.ledger.words import join_sorted
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.surface.agent_mcp import Commands, Run
from harness.trace.surfaces import COMMAND


def _web_requests(run: Run) -> set[str]:
    """Return the names of the run's requests to the harness's servers, such as "token"."""
    return {text(obj(frame.json).get("web")) for frame in run.web}


@observes("mcp-login.callback", "mcp-login.registration", surface=COMMAND)
class Steps(RunObserver):
    """Steps of a login: registration at the server, and the user's answer."""

    def on_run_ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """Yield registration, redirect address and parameters of a login that was visited."""
        if run.words.subcommand != "login" or not run.visits:
            return
        choice = "registers itself" if "register" in _web_requests(run) else "does not register"
        yield Choice("mcp-login.registration", choice, end)
        visit = run.visits[0]
        query = parse_qs(urlsplit(text(obj(visit.json).get("visits"))).query)
        back = urlsplit("".join(query.get("redirect_uri", [""])))
        first, *more = back.path.strip("/").split("/")
        path = f"/{first}/…" if more else f"/{first}"
        place = f"{back.hostname}, {path}" if back.hostname else "not by an address"
        yield Choice("mcp-login.callback", place, visit, "the way back")
        for name in ("code_challenge_method", "state"):
            value = "".join(query.get(name, [""]))
            choice = value if name != "state" and value else "there" if value else "absent"
            yield Choice("mcp-login.callback", choice, visit, name)


@observes("mcp-login.denied", surface=COMMAND)
class Denied(Observer):
    """Logins that the user denies, so that they request no token."""

    @listen(("kind", "event"))
    def on_event(self, frame: Frame) -> Iterator[Choice]:
        """Yield the end of a denied login, or that the harness had to end it."""
        commands: Commands = self.scene.view
        run = commands.run_of(frame)
        if run is None or run.end is not frame or not run.visits or "token" in _web_requests(run):
            return
        if run.words.subcommand == "login":
            yield Choice(
                "mcp-login.denied", "it waits on" if is_cut(run) else end_words(run), frame
            )


@observes("mcp-add.login", surface=COMMAND)
class AtAdding(RunObserver):
    """Logins at once when a server with OAuth is added."""

    def on_run_ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """Yield whether adding a reachable OAuth server begins a login."""
        url, offers = run.words.last("--url") or "", text(obj(run.request.json).get("offers"))
        if run.words.subcommand != "add" or not offers:
            return
        if urlsplit(url).netloc != urlsplit(offers).netloc:
            return
        begins = run.visits or "authorize" in _web_requests(run) or offers in run.output
        contact = "the server is asked" if run.web else "the server is not asked"
        yield Choice("mcp-add.login", "a login begins" if begins else f"no login, {contact}", end)


@observes(
    "mcp-credentials.store", "mcp-remove.credentials", "mcp-logout.unconfigured", surface=COMMAND
)
class Credentials(RunObserver):
    """The place of credentials, and their lifetime."""

    def on_run_ended(self, run: Run, end: Frame) -> Iterator[Choice]:
        """Yield the place of tokens after a login, their fate at a removal, the end of a logout."""
        former, now = token_files(run.request), token_files(end)
        match run.words.subcommand:
            case "login" if "token" in _web_requests(run):
                place = join_sorted(f"{path} with mode {mode}" for path, mode in now.items())
                yield Choice("mcp-credentials.store", place or "in no file of the home", end)
            case "remove" if former and run.words.name in servers(run.request):
                value = "they are left" if now else "they are removed too"
                yield Choice("mcp-remove.credentials", value, end)
            case "logout" if run.words.name and config_table(run.request) is not None:
                if run.words.name not in servers(run.request):
                    yield Choice("mcp-logout.unconfigured", end_words(run), end)
            case _:
                pass
