"""Builder of plays of `agent mcp`: runs with their output, and the files that they leave."""

import json
from typing import Any, Self

from harness.trace.frame import Direction
from harness.trace.recorder import Recorder
from harness.trace.surface.registry import classify_of
from harness.trace.trace import End, Header, Trace

AUTHORIZE = "http://127.0.0.1:8080/authorize"
MCP_URL = "http://127.0.0.1:8081/mcp"
TOKENS = {"access_token": "access-1", "refresh_token": "refresh-1", "token_type": "Bearer"}
STORE = ".credentials.json"
HEADINGS = "Name  Command  Args  Env  Cwd  Status  Auth"


def stdio_table(name: str, command: str, *args: str, **env: str) -> str:
    """Return the config.toml table of a stdio server, in the specification's form."""
    words = ", ".join(json.dumps(one) for one in args)
    inline = f'{{ type = "stdio", command = {json.dumps(command)}, args = [{words}] }}'
    table = f"[mcp_servers.{name}]\nenabled = true\ntransport = {inline}\n"
    if env:
        table += f"\n[mcp_servers.{name}.env]\n"
        table += "".join(f"{key} = {json.dumps(value)}\n" for key, value in env.items())
    return table


def http_table(name: str, url: str = MCP_URL, variable: str = "") -> str:
    """Return the config.toml table of a streamable HTTP server, in the specification's form."""
    inline = f'{{ type = "streamable_http", url = {json.dumps(url)} }}'
    table = f"[mcp_servers.{name}]\nenabled = true\ntransport = {inline}\n"
    return table + (f"bearer_token_env_var = {json.dumps(variable)}\n" if variable else "")


class CommandTalk:
    """Writer of one play; every method but `trace` returns the talk itself.

    The files of the home are those after the last run. Time goes on by a millisecond a message.
    """

    def __init__(self, scenario: str = "") -> None:
        self._now = 0.0
        header = Header(target="by-hand", profile="spec", scenario=scenario, surface="command")
        self._recorder = Recorder(header, clock=lambda: self._now, classify=classify_of("command"))
        self._id = 0
        self._files: dict[str, dict[str, Any]] = {}

    def trace(self, end: End = End.QUIESCENT) -> Trace:
        """Return the trace so far."""
        self._recorder.trace.end = end
        return self._recorder.trace

    def _write(self, direction: Direction, **message: Any) -> Self:
        self._now += 0.001
        raw = json.dumps(message).encode()
        self._recorder.record(raw, direction, connection="commands")
        return self

    def _listed(self) -> list[dict[str, Any]]:
        return [{"path": path, **self._files[path]} for path in sorted(self._files)]

    def config(self, text: str | None) -> Self:
        """Set the content of config.toml from now on; None removes the file."""
        self._files.pop("config.toml", None)
        if text is not None:
            file = {"mode": "0600", "size": len(text.encode()), "text": text}
            self._files["config.toml"] = file
        return self

    def store(self, *held: str, mode: str = "0600", path: str = STORE) -> Self:
        """Make a file contain these secrets from now on; without any, remove it."""
        self._files.pop(path, None)
        if held:
            self._files[path] = {"mode": mode, "size": 99, "holds": list(held)}
        return self

    def asks(self, *argv: str, **more: Any) -> Self:
        """Begin a run."""
        self._id += 1
        said = {"id": self._id, "argv": ["mcp", *argv], "env": {}, "files": self._listed()}
        return self._write(Direction.TO_TARGET, **{**said, **more})

    def ends(self, out: str = "", err: str = "", *, run: int = 0, **more: Any) -> Self:
        """End a run, by default the last one."""
        said = {"id": run or self._id, "status": 0, "stdout": out, "stderr": err}
        return self._write(Direction.FROM_TARGET, **{**said, "files": self._listed(), **more})

    def web(self, what: str, **more: Any) -> Self:
        """Add a request of the run to a server of ours."""
        said = {"id": self._id, "web": what, "method": "GET", "path": f"/{what}"}
        return self._write(Direction.FROM_TARGET, **{**said, **more})

    def answers(self, what: str, body: Any, status: int = 200) -> Self:
        """Add the answer of our server."""
        return self._write(Direction.TO_TARGET, id=self._id, answers=what, status=status, body=body)

    def visits(self, address: str) -> Self:
        """Add a visit of an address by the browser."""
        return self._write(Direction.TO_TARGET, id=self._id, visits=address, status=302)

    def adds(self, name: str, *command: str, **env: str) -> Self:
        """Add a run that adds a stdio server at the end of config.toml, as specified."""
        given = [word for one in env.items() for word in ("--env", "=".join(one))]
        self.asks("add", name, *given, "--", *command)
        self.config(self.said + stdio_table(name, *command, **env))
        return self.ends(f"Added {name}.\n")

    def adds_http(self, name: str, url: str = MCP_URL, variable: str = "", **env: str) -> Self:
        """Add a run that adds a streamable HTTP server."""
        more = ["--bearer-token-env-var", variable] if variable else []
        self.asks("add", name, "--url", url, *more, env=env)
        self.config(self.said + http_table(name, url, variable))
        return self.ends(f"Added {name}.\n")

    def removes(self, name: str, left: str = "") -> Self:
        """Add a run that removes a server; `left` is config.toml afterwards."""
        return self.asks("remove", name).config(left).ends(f"Removed the global server {name}.\n")

    @property
    def said(self) -> str:
        """Return the current text of config.toml."""
        return str(self._files.get("config.toml", {}).get("text") or "")

    def address(self, scope: str = "", **other: str) -> str:
        """Return the authorization URL of a careful client; "" removes a parameter."""
        query = {
            "response_type": "code",
            "client_id": "client-1",
            "redirect_uri": "http://127.0.0.1:9999/callback",
            "state": "st",
            "code_challenge": "ch",
            "code_challenge_method": "S256",
            "scope": scope,
            **other,
        }
        return f"{AUTHORIZE}?" + "&".join(f"{key}={one}" for key, one in query.items() if one)

    def logs_in(self, name: str, *options: str, out: str = "", address: str = "") -> Self:
        """Add a successful login; `out` is its output after the address."""
        address = address or self.address()
        self.asks("login", name, *options, offers=AUTHORIZE)
        self.web("metadata").visits(address).web("token").answers("token", TOKENS)
        self.store("access_token", "refresh_token")
        return self.ends(f"Visit\n{address}\n{out or f'Logged in to {name}.'}\n")

    def logs_out(self, name: str) -> Self:
        """Add a logout that removes credentials."""
        return self.asks("logout", name).store().ends(f"Removed the credentials of {name}.\n")

    def logs_out_of_nothing(self, name: str) -> Self:
        """Add a logout without stored credentials."""
        return self.asks("logout", name).ends(f"No credentials of {name} are stored.\n")
