"""Small valid messages, which the tests of this folder change into invalid ones."""

import copy
from typing import Any

THREAD: dict[str, Any] = {
    "id": "thr_7",
    "preview": "sort the shelves",
    "ephemeral": False,
    "modelProvider": "shelf-model",
    "createdAt": 1700000000,
    "updatedAt": 1700000060,
    "status": {"type": "idle"},
    "path": "/shelf/rollout.jsonl",
    "cwd": "/shelf",
    "turns": [],
}
TURN: dict[str, Any] = {"id": "turn_3", "items": [], "status": "inProgress", "error": None}
TURN_ERROR: dict[str, Any] = {
    "message": "the model went away",
    "agentErrorInfo": "ResponseStreamDisconnected",
    "additionalDetails": "after two words",
}
WHERE: dict[str, Any] = {"threadId": "thr_7", "turnId": "turn_3"}
START_RESULT: dict[str, Any] = {
    "thread": THREAD,
    "model": "shelf-1",
    "modelProvider": "shelf-model",
    "cwd": "/shelf",
    "approvalPolicy": "never",
    "sandbox": {"type": "dangerFullAccess"},
}
ITEMS: dict[str, dict[str, Any]] = {
    "userMessage": {"content": [{"type": "text", "text": "hello"}]},
    "agentMessage": {"text": "hello to you"},
    "plan": {"text": "first this, then that"},
    "reasoning": {"summary": ["I think"], "content": []},
    "commandExecution": {
        "command": "ls -l",
        "cwd": "/shelf",
        "status": "inProgress",
        "commandActions": [],
    },
    "fileChange": {
        "changes": [{"path": "a.txt", "kind": {"type": "add"}, "diff": "+a"}],
        "status": "completed",
    },
    "mcpToolCall": {"server": "s", "tool": "t", "status": "failed", "arguments": {}},
    "dynamicToolCall": {"tool": "t", "status": "completed", "arguments": {"a": 1}},
    "webSearch": {"query": "shelves", "action": {"type": "search", "query": "shelves"}},
    "imageView": {"path": "/shelf/a.png"},
    "enteredReviewMode": {"review": "the shelves"},
    "exitedReviewMode": {"review": "all well"},
    "contextCompaction": {},
}


def item(item_type: str, **changes: Any) -> dict[str, Any]:
    """Return a valid item of this type, with members changed or added."""
    return {"type": item_type, "id": "item_1", **copy.deepcopy(ITEMS[item_type]), **changes}


def changed(value: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a deep copy with members changed or added."""
    return {**copy.deepcopy(value), **changes}


def without(value: dict[str, Any], *names: str) -> dict[str, Any]:
    """Return a deep copy without the named members."""
    return {key: copy.deepcopy(member) for key, member in value.items() if key not in names}


EVENTS: dict[str, dict[str, Any]] = {
    "thread/started": {"thread": THREAD},
    "thread/status/changed": {"threadId": "thr_7", "status": {"type": "active", "activeFlags": []}},
    "thread/archived": {"threadId": "thr_7"},
    "turn/started": {"threadId": "thr_7", "turn": TURN},
    "turn/completed": {"threadId": "thr_7", "turn": changed(TURN, status="completed")},
    "turn/diff/updated": {**WHERE, "diff": "+a"},
    "turn/plan/updated": {
        **WHERE,
        "explanation": "so far",
        "plan": [{"step": "look", "status": "pending"}],
    },
    "model/rerouted": {**WHERE, "fromModel": "a", "toModel": "b", "reason": "full"},
    "error": {**WHERE, "error": TURN_ERROR, "willRetry": True},
    "item/started": {**WHERE, "item": item("agentMessage")},
    "item/completed": {**WHERE, "item": item("reasoning")},
    "item/agentMessage/delta": {**WHERE, "itemId": "item_1", "delta": "hel"},
    "item/plan/delta": {**WHERE, "itemId": "item_1", "delta": "first"},
    "item/reasoning/summaryTextDelta": {
        **WHERE,
        "itemId": "item_1",
        "summaryIndex": 0,
        "delta": "I",
    },
    "item/reasoning/summaryPartAdded": {**WHERE, "itemId": "item_1", "summaryIndex": 1},
    "item/reasoning/textDelta": {**WHERE, "itemId": "item_1", "contentIndex": 0, "delta": "hm"},
    "item/commandExecution/outputDelta": {**WHERE, "itemId": "item_1", "delta": "out"},
    "item/fileChange/outputDelta": {**WHERE, "itemId": "item_1", "delta": "out"},
}

PARAMS: dict[str, dict[str, Any]] = {
    "skills/list": {
        "cwds": ["/shelf"],
        "forceReload": True,
        "perCwdExtraUserRoots": [{"cwd": "/shelf", "extraUserRoots": ["/more"]}],
    },
    "skills/config/write": {"path": "/shelf/SKILL.md", "enabled": False},
    "skills/remote/export": {"hazelnutId": "h1"},
    "thread/start": {"model": "m", "sandbox": "read-only", "approvalPolicy": "on-request"},
    "thread/resume": {"threadId": "thr_7", "personality": "friendly"},
    "thread/fork": {"threadId": "thr_7"},
    "thread/list": {"limit": 5, "sortKey": "updated_at", "modelProviders": [], "archived": False},
    "thread/read": {"threadId": "thr_7", "includeTurns": True},
    "thread/archive": {"threadId": "thr_7"},
    "turn/start": {
        "threadId": "thr_7",
        "input": [{"type": "text", "text": "hello"}],
        "sandboxPolicy": {"type": "workspaceWrite", "writableRoots": [], "networkAccess": False},
        "effort": "low",
        "summary": "concise",
        "outputSchema": {"type": "object"},
    },
    "turn/interrupt": {"threadId": "thr_7", "turnId": "turn_3"},
    "turn/steer": {"threadId": "thr_7", "input": [], "expectedTurnId": "turn_3"},
    "item/commandExecution/requestApproval": {
        **WHERE,
        "itemId": "item_1",
        "command": ["ls", "-l"],
        "cwd": "/shelf",
        "commandActions": [],
        "reason": "to look",
    },
    "item/fileChange/requestApproval": {**WHERE, "itemId": "item_1", "reason": "to write"},
}

RESULTS: dict[str, dict[str, Any]] = {
    "skills/list": {
        "data": [
            {
                "cwd": "/shelf",
                "skills": [
                    {
                        "name": "sort",
                        "description": "sorts shelves",
                        "enabled": True,
                        "interface": {"displayName": "Sort", "brandColor": "#00ffAA"},
                    }
                ],
                "errors": [],
            }
        ]
    },
    "skills/config/write": {},
    "thread/start": START_RESULT,
    "thread/resume": START_RESULT,
    "thread/fork": {"thread": THREAD},
    "thread/list": {"data": [THREAD], "nextCursor": None},
    "thread/read": {"thread": THREAD},
    "thread/archive": {},
    "thread/unarchive": {"thread": THREAD},
    "thread/name/set": {},
    "thread/loaded/list": {"data": ["thr_7"], "nextCursor": None},
    "thread/unsubscribe": {"status": "notLoaded"},
    "thread/rollback": {"thread": changed(THREAD, turns=[TURN])},
    "thread/compact/start": {},
    "turn/start": {"turn": TURN},
    "turn/interrupt": {},
    "turn/steer": {"turnId": "turn_3"},
    "item/commandExecution/requestApproval": {"decision": "acceptForSession"},
    "item/fileChange/requestApproval": {"decision": "decline"},
}
