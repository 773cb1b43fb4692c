"""Folders of skills on disk, and requests and model inputs about them."""

from pathlib import Path
from typing import Any

from session_peer import Peer

WORD = "vermilion"
"""Word in the text of each skill that is created here."""


def put_skill(root: Path, name: str, *, text: str | None = None, **companions: str) -> Path:
    """Create a skill in a folder of skills; return the path of its SKILL.md."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "SKILL.md"
    file.write_text(text if text is not None else plain(name))
    for companion, content in companions.items():
        path = folder / companion.replace("__", "-").replace("_", ".")
        path.write_text(content)
    return file


def plain(name: str) -> str:
    return (
        f"# {name}\n\nDoes what {name} does.\n\n## Instructions\n\nSay {WORD} {name}.\n\n"
        "## Examples\n\nOne.\n\n## Dependencies\n\nNone.\n"
    )


def project(cwd: Path) -> Path:
    return cwd / ".agent" / "skills"


async def listed(peer: Peer, *cwds: Path | str, **params: Any) -> list[dict[str, Any]]:
    given = {**({"cwds": [str(one) for one in cwds]} if cwds else {}), **params}
    return (await peer.request("skills/list", given))["result"]["data"]


async def entry(peer: Peer, cwd: Path | str, **params: Any) -> dict[str, Any]:
    """Request skills/list for one directory; return its entry, without built-in skills."""
    [found] = await listed(peer, cwd, **params)
    found["skills"] = [one for one in found["skills"] if one["scope"] != "system"]
    return found


def names(found: dict[str, Any]) -> list[str]:
    return [one["name"] for one in found["skills"]]


async def switch(peer: Peer, path: Path | str, *, enabled: bool) -> dict[str, Any]:
    return await peer.request("skills/config/write", {"path": str(path), "enabled": enabled})


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def item(name: str, path: Path | str) -> dict[str, Any]:
    return {"type": "skill", "name": name, "path": str(path)}


async def say(peer: Peer, thread: str, *content: dict[str, Any]) -> None:
    answer = await peer.request("turn/start", {"threadId": thread, "input": list(content)})
    end = await peer.turn_end(answer["result"]["turn"]["id"])
    assert end["status"] == "completed"


def heard(peer: Peer, call: int = -1) -> str:
    """Return the texts of all user messages in the model's call number `call`."""
    return "\n".join(
        part.get("text", "")
        for one in peer.side.bodies[call]["input"]
        if one.get("role") == "user"
        for part in one["content"]
    )
