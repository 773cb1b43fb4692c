"""One planted difference of every kind in the models."""

from agreement.plants import Plant

IN_THE_WIRE = [
    Plant(
        "member dropped",
        "thread.py",
        "    cwd: str\n    turns: ",
        "    turns: ",
        "thread/read",
        ("Thread.cwd: only in the book",),
    ),
    Plant(
        "member added",
        "turn.py",
        "    diff: str\n",
        "    diff: str\n    extra: str\n",
        "turn/diff/updated",
        ("TurnDiffUpdatedParams.extra: only in the wire",),
    ),
    Plant(
        "open member dropped",
        "item.py",
        "    phase: MessagePhase | Json = None\n",
        "",
        "item/started",
        ("AgentMessageItem.phase: only in the book",),
    ),
    Plant(
        "member renamed",
        "turn.py",
        "    items: list[ThreadItem]\n",
        "    elements: list[ThreadItem]\n",
        "turn/started",
        ("Turn.items: only in the book", "Turn.elements: only in the wire"),
    ),
    Plant(
        "type changed",
        "turn.py",
        "    expected_turn_id: str\n",
        "    expected_turn_id: int\n",
        "turn/steer",
        ("TurnSteerParams.expectedTurnId: book string; wire integer",),
    ),
    Plant(
        "number made whole",
        "item.py",
        "    exit_code: Number | None",
        "    exit_code: int | None",
        "item/completed",
        ("CommandExecutionItem.exitCode: book null|number; wire integer|null",),
    ),
    Plant(
        "made nullable",
        "turn.py",
        "    diff: str\n",
        "    diff: str | None\n",
        "turn/diff/updated",
        ("TurnDiffUpdatedParams.diff: book string; wire null|string",),
    ),
    Plant(
        "null forbidden",
        "thread_operations.py",
        "    data: list[Thread]\n    next_cursor: str | None\n",
        "    data: list[Thread]\n    next_cursor: str\n",
        "thread/list",
        ("ThreadListResult.nextCursor: book null|string; wire string",),
    ),
    Plant(
        "made optional",
        "approval.py",
        "    cwd: str\n",
        '    cwd: str = ""\n',
        "item/commandExecution/requestApproval",
        ("CommandApprovalParams.cwd: book required; wire optional",),
    ),
    Plant(
        "made required",
        "skills.py",
        "    interface: SkillInterface | None = None\n",
        "    interface: SkillInterface | None\n",
        "skills/list",
        ("SkillInterface: book optional; wire required",),
    ),
    Plant(
        "enum value removed",
        "settings.py",
        '"never", "untrusted", "on-request"',
        '"never", "on-request"',
        "turn/start",
        (
            "TurnStartParams.approvalPolicy: book {never,on-failure,on-request,reject,untrusted}; "
            "wire {never,on-failure,on-request,reject}",
        ),
    ),
    Plant(
        "enum value added",
        "item.py",
        'ToolStatus = Literal["inProgress", ',
        'ToolStatus = Literal["declined", "inProgress", ',
        "item/started",
        tuple(
            f"{item}.status: book {{completed,failed,inProgress}}; "
            "wire {completed,declined,failed,inProgress}"
            for item in ("McpToolCallItem", "DynamicToolCallItem")
        ),
    ),
    Plant(
        "enum value respelled",
        "approval.py",
        '"acceptWithExecpolicyAmendment"',
        '"acceptWithExecPolicyAmendment"',
        "item/commandExecution/requestApproval",
        (
            "CommandApprovalResult.decision: "
            "book {accept,acceptForSession,acceptWithExecpolicyAmendment,"
            "applyNetworkPolicyAmendment,cancel,decline}; "
            "wire {accept,acceptForSession,acceptWithExecPolicyAmendment,"
            "applyNetworkPolicyAmendment,cancel,decline}",
        ),
    ),
    Plant(
        "enum opened",
        "thread_operations.py",
        '    status: Literal["unsubscribed", "notSubscribed", "notLoaded"]',
        "    status: str",
        "thread/unsubscribe",
        ("ThreadUnsubscribeResult.status: book {notLoaded,notSubscribed,unsubscribed}; wire open",),
    ),
    Plant(
        "variant dropped",
        "input.py",
        " | SkillInput | MentionInput",
        " | SkillInput",
        "turn/steer",
        ("UserInput.<mention>: only in the book",),
    ),
    Plant(
        "variant respelled",
        "item.py",
        'Literal["open_page"] = "open_page"',
        'Literal["openPage"] = "openPage"',
        "item/completed",
        (
            "WebSearchAction.<open_page>: only in the book",
            "WebSearchAction.<openPage>: only in the wire",
        ),
    ),
    Plant(
        "element changed",
        "item.py",
        "    summary: list[str]\n",
        "    summary: list[int]\n",
        "item/completed",
        ("ReasoningItem.summary[]: book string; wire integer",),
    ),
    Plant(
        "pattern dropped",
        "input.py",
        '    path: str = Field(pattern=r"^app://.")\n',
        "    path: str\n",
        "turn/start",
        ("UserInput.path: book ^app://.; wire None",),
    ),
    Plant(
        "object opened",
        "turn.py",
        "    plan: list[PlanStep]\n",
        "    plan: list[OpenObject]\n",
        "turn/plan/updated",
        ("PlanStep.status: only in the book", "PlanStep.step: only in the book"),
    ),
]
