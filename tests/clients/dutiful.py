"""A conversation in which the client keeps every duty; faults of clients change it.

`python -m tests.clients.dutiful` writes fixtures/traces/clients/dutiful.jsonl; a test compares.
"""

from pathlib import Path

from harness.trace.store import save
from harness.trace.trace import Trace
from tests.rules.approval_talk import FILE, Approvals, command_item, file_item
from tests.rules.traces import CREATED, THREAD, TURN, agent_message, thread_object

FILE_PATH = Path(__file__).parents[2] / "fixtures" / "traces" / "clients" / "dutiful.jsonl"
SKILL = "/home/user/.agent/skills/tidy/SKILL.md"


def dutiful() -> Trace:
    """Return the trace: handshake, paging, skills, a steered turn with both approvals, an
    interrupted turn."""
    talk = Approvals("dutiful")
    about = {"clientInfo": {"name": "by-hand", "version": "1"}}
    talk.sends({"method": "initialize", "id": 0, "params": about})
    talk.answers({"userAgent": "by-hand/1"}, to=0).sends({"method": "initialized"})
    for number, cursor in ((8, None), (9, "page-2")):
        params = {} if cursor is None else {"cursor": cursor}
        talk.asks("thread/list", limit=1, sortKey="created_at", **params)
        old = thread_object(f"thr_{number}", status={"type": "notLoaded"}, createdAt=CREATED)
        talk.answers({"data": [old], "nextCursor": "page-2" if cursor is None else None})
    roots = [{"cwd": "/home/user/project", "extraUserRoots": ["/home/user/more"]}]
    talk.asks("skills/list", cwds=["/home/user/project"], perCwdExtraUserRoots=roots)
    talk.answers({"data": [{"cwd": "/home/user/project", "skills": [], "errors": []}]})
    talk.asks("skills/config/write", path=SKILL, enabled=True).answers({})
    talk.policy()
    said = [{"type": "text", "text": "$tidy"}, {"type": "skill", "name": "tidy", "path": SKILL}]
    sandbox = {
        "type": "workspaceWrite",
        "writableRoots": ["/home/user/project"],
        "networkAccess": False,
    }
    talk.asks("turn/start", threadId=THREAD, input=said, effort="low", sandboxPolicy=sandbox)
    talk.reply_turn().status("active").turn_started()
    talk.started(command_item()).question().decides("acceptForSession").resolved()
    talk.completed(command_item(status="completed"))
    steer = [{"type": "text", "text": "and the rest"}]
    talk.asks("turn/steer", threadId=THREAD, input=steer, expectedTurnId=TURN)
    talk.answers({"turnId": TURN})
    talk.started(file_item()).question("patch_1", FILE).decides("decline").resolved()
    talk.completed(file_item(status="declined")).end_turn()
    talk.ask_turn(text="more").reply_turn("turn_2")
    talk.status("active").turn_started("turn_2")
    talk.started(agent_message("m-1", ""), "turn_2")
    talk.interrupt("turn_2").answers({}).completed(agent_message("m-1", ""), "turn_2")
    talk.end_turn("turn_2", status="interrupted")
    return talk.trace()


if __name__ == "__main__":
    FILE_PATH.parent.mkdir(exist_ok=True)
    save(dutiful(), FILE_PATH)
