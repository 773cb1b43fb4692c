"""A check of an OAuth login as users see it: real browser, consent page, a turn with the token.

`python -m tools.oauth_browser PYTHON CHROMIUM`, where PYTHON has playwright. Servers, agent and
browser use loopback only; a scenario scripts the model. It prints its progress; after a failed
check it exits with status 1 and the reason.
"""

import json
import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from subprocess import CalledProcessError

import anyio
from anyio.abc import Process

from fixtures.oauth.pair import Pair, pair

HERE = Path(__file__).parents[1]
SCENARIO = HERE / "fixtures" / "oauth" / "add.scenario.yaml"
BROWSER = HERE / "fixtures" / "clients" / "consent.py"
BOUND = 120.0
"""Maximum seconds of a login or a turn."""
AGENT = [sys.executable, "-m", "reference_server"]


class Wrong(Exception):
    """A failed check; its text says which."""


async def _login(home: Path, browser: Sequence[str], button: str) -> tuple[int, str, str]:
    """Run `agent mcp login` and click `button` in the browser.

    Return the exit status and output of the login, and the text of the browser's last page.
    """
    command = [*AGENT, "mcp", "login", "docs"]
    with anyio.fail_after(BOUND):
        async with await anyio.open_process(command, env=_variables(home), stderr=None) as process:
            address = await _address(process)
            page = await anyio.run_process([*browser, address, button], stderr=None)
            assert process.stdout is not None
            out = "".join([part.decode() async for part in process.stdout])
            return await process.wait(), out, page.stdout.decode()


async def _address(process: Process) -> str:
    text = ""
    assert process.stdout is not None
    while "\n\n" not in text:
        try:
            text += (await process.stdout.receive()).decode()
        except anyio.EndOfStream:
            raise Wrong("agent mcp login ended before it printed an address") from None
    return text.splitlines()[1]


def _variables(home: Path) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    return {**variables, "HOME": str(home), "AGENT_HOME": str(home)}


async def _turn(home: Path) -> dict[str, object]:
    """Run a turn that calls the MCP tool and return the item of that call. Raises Wrong."""
    command = [
        *AGENT,
        "exec",
        "--json",
        "--skip-git-repo-check",
        "--scenario",
        str(SCENARIO),
        "add",
    ]
    with anyio.fail_after(BOUND):
        finished = await anyio.run_process(
            command, env=_variables(home), cwd=home, stderr=None, check=False
        )
    events = [json.loads(line) for line in finished.stdout.splitlines()]
    items = [one["item"] for one in events if one["type"] == "item.completed"]
    calls = [item for item in items if item["type"] == "mcp_tool_call"]
    if finished.returncode != 0 or len(calls) != 1:
        raise Wrong(f"the turn made {len(calls)} calls, status {finished.returncode}: {events}")
    return calls[0]


def _want(true: bool, words: str) -> None:
    if not true:
        raise Wrong(words)


async def _run(home: Path, servers: Pair, browser: Sequence[str]) -> None:
    settings = f'mcp_oauth_credentials_store = "file"\n[mcp_servers.docs]\nurl = "{servers.url}"\n'
    (home / "config.toml").write_text(settings)
    status, out, page = await _login(home, browser, "Deny")
    _want(status == 1 and not out, f"a login that was denied gave status {status} and {out!r}")
    _want("the user said no" in page, f"the browser showed {page!r}")
    _want(not (home / ".credentials.json").exists(), "a login that was denied left credentials")
    print("denied in the browser: status 1, nothing stored")  # noqa: T201
    status, out, page = await _login(home, browser, "Allow")
    _want(status == 0 and "Successfully logged in" in out, f"status {status} and {out!r}")
    _want("You are logged in" in page, f"the browser showed {page!r}")
    print(f"allowed in the browser: {out.strip()}")  # noqa: T201
    item = await _turn(home)
    _want("the sum is 5" in json.dumps(item), f"the call gave {item}")
    tokens = {one for one in servers.server.tokens if one is not None}
    _want(len(tokens) == 1, f"the server got {len(tokens)} tokens")
    print("a turn called the tool with the token: the sum is 5")  # noqa: T201


async def main(arguments: Sequence[str]) -> int:
    """Run all checks and return the exit status."""
    python, chromium = arguments
    # The log of the servers would bury our own output.
    logging.disable()
    failure = ""
    with tempfile.TemporaryDirectory() as folder:
        async with pair() as servers:
            try:
                await _run(Path(folder), servers, [python, str(BROWSER), chromium])
            except (Wrong, TimeoutError, CalledProcessError) as error:
                failure = str(error) or "it took too long"
    if failure:
        print(f"make real: login with a browser: {failure}", file=sys.stderr)  # noqa: T201
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(anyio.run(main, sys.argv[1:]))
