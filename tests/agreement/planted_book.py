"""One planted difference of every kind in the book."""

from agreement.plants import Plant

THREAD_CWD = '        "cwd": {"type": "string", "$comment": "thread.cwd"},\n'
SUMMARY = """
        "summary": {
          "$comment": "item.reasoning",
          "type": "array",
          "items": {"type": "string","""
IN_THE_BOOK = [
    Plant(
        "member dropped",
        "thread.json",
        THREAD_CWD,
        "",
        "thread/read",
        ("Thread.cwd: only in the wire",),
    ),
    Plant(
        "member added",
        "skills.json",
        '"name": {"type": "string", "$comment": "skill.name"}',
        '"name": {"type": "string"}, "extra": {"type": "string"}',
        "skills/list",
        ("SkillMetadata.extra: only in the book",),
    ),
    Plant(
        "open member dropped",
        "item.json",
        ',\n        "phase": {"$comment": "item.agent-message ?item.message-phase"}',
        "",
        "item/started",
        ("AgentMessageItem.phase: only in the wire",),
        shown=False,
    ),
    Plant(
        "member renamed",
        "thread.json",
        THREAD_CWD,
        THREAD_CWD.replace('"cwd": {', '"folder": {'),
        "thread/read",
        ("Thread.cwd: only in the wire", "Thread.folder: only in the book"),
    ),
    Plant(
        "type changed",
        "turn-methods.json",
        '"expectedTurnId": {"type": "string"',
        '"expectedTurnId": {"type": "number"',
        "turn/steer",
        ("TurnSteerParams.expectedTurnId: book number; wire string",),
    ),
    Plant(
        "number made whole",
        "item.json",
        '"exitCode": {"type": ["number", "null"]',
        '"exitCode": {"type": ["integer", "null"]',
        "item/completed",
        ("CommandExecutionItem.exitCode: book integer|null; wire null|number",),
    ),
    Plant(
        "made nullable",
        "turn.json",
        '"id": {"type": "string", ',
        '"id": {"type": ["string", "null"], ',
        "turn/started",
        ("Turn.id: book null|string; wire string",),
    ),
    Plant(
        "null forbidden",
        "thread.json",
        '"path": {"type": ["string", "null"]',
        '"path": {"type": "string"',
        "thread/read",
        ("Thread.path: book string; wire null|string",),
    ),
    Plant(
        "made optional",
        "approvals.json",
        '"required": ["threadId", "turnId", "itemId", "command", "cwd"]',
        '"required": ["threadId", "turnId", "itemId", "command"]',
        "item/commandExecution/requestApproval",
        ("CommandApprovalParams.cwd: book optional; wire required",),
    ),
    Plant(
        "made required",
        "skills.json",
        '"required": ["name", "description", "enabled"]',
        '"required": ["name", "description", "enabled", "interface"]',
        "skills/list",
        ("SkillInterface: book required; wire optional",),
    ),
    Plant(
        "enum value removed",
        "enums.json",
        '["never", "untrusted", ',
        '["never", ',
        "turn/start",
        (
            "TurnStartParams.approvalPolicy: book {never,on-failure,on-request,reject}; "
            "wire {never,on-failure,on-request,reject,untrusted}",
        ),
    ),
    Plant(
        "enum value added",
        "item.json",
        '"enum": ["inProgress", "completed", "failed"]',
        '"enum": ["inProgress", "completed", "failed", "declined"]',
        "item/started",
        tuple(
            f"{item}.status: book {{completed,declined,failed,inProgress}}; "
            "wire {completed,failed,inProgress}"
            for item in ("McpToolCallItem", "DynamicToolCallItem")
        ),
    ),
    Plant(
        "enum value respelled",
        "turn.json",
        '"enum": ["inProgress", "completed", "interrupted", "failed"]',
        '"enum": ["in_progress", "completed", "interrupted", "failed"]',
        "turn/started",
        (
            "Turn.status: book {completed,failed,in_progress,interrupted}; "
            "wire {completed,failed,inProgress,interrupted}",
        ),
    ),
    Plant(
        "enum opened",
        "approvals.json",
        '"enum": ["accept", "decline"]',
        '"minLength": 0',
        "item/fileChange/requestApproval",
        ("FileChangeApprovalResult.decision: book open; wire {accept,decline}",),
    ),
    Plant(
        "variant dropped",
        "input.json",
        '"enum": ["text", "image", "localImage", "skill", "mention"]',
        '"enum": ["text", "image", "localImage", "skill"]',
        "turn/steer",
        ("UserInput.<mention>: only in the wire",),
    ),
    Plant(
        "variant respelled",
        "item.json",
        '"enum": ["search", "open_page", "find_in_page"]',
        '"enum": ["search", "openPage", "find_in_page"]',
        "item/completed",
        (
            "WebSearchAction.<open_page>: only in the wire",
            "WebSearchAction.<openPage>: only in the book",
        ),
    ),
    Plant(
        "element changed",
        "item.json",
        SUMMARY,
        SUMMARY.replace('"items": {"type": "string', '"items": {"type": "object'),
        "item/completed",
        ("ReasoningItem.summary[]: book object; wire string",),
    ),
    Plant(
        "pattern dropped",
        "skills.json",
        '          "pattern": "^#[0-9A-Fa-f]{6}$"\n',
        '          "minLength": 0\n',
        "skills/list",
        ("SkillInterface.brandColor: book None; wire ^#[0-9A-Fa-f]{6}$",),
    ),
    Plant(
        "object opened",
        "turn-events.json",
        '"items": {"$ref": "turn.json#/$defs/PlanStep"}',
        '"items": {"type": "object"}',
        "turn/plan/updated",
        (
            "TurnPlanUpdatedParams.plan[].status: only in the wire",
            "TurnPlanUpdatedParams.plan[].step: only in the wire",
        ),
    ),
]
