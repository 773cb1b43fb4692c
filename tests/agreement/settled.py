"""Accepted differences between book and models, each with a reason.

Both a difference that is not listed and a listed one that is gone fail a test. The book follows the
specification to the letter, so a reason says why the models do not.
"""

EXPLAINED = {
    # The text has words only; the shipping server's clients send the amendment itself. Both work.
    "CommandApprovalResult.decision: book string; wire object|string": (
        "?approval.amendment-content"
    ),
    "CommandApprovalResult.decision.acceptWithExecpolicyAmendment: only in the wire": (
        "?approval.amendment-content"
    ),
    "CommandApprovalResult.decision.applyNetworkPolicyAmendment: only in the wire": (
        "?approval.amendment-content"
    ),
    # A policy is refused that is not understood: it might allow less.
    "SandboxPolicy.access.type: book open; wire {fullAccess}": "?sandbox-policy.read-only-access",
    # The text names these members and does not call them required; what is missing allows least.
    "SandboxPolicy.access: book required; wire optional": "sandbox-policy.details",
    "SandboxPolicy.networkAccess: book required; wire optional": "sandbox-policy.details",
    "SandboxPolicy.writableRoots: book required; wire optional": "sandbox-policy.details",
    # What the user set and the server knows, which a client would not learn otherwise.
    "Thread.name: only in the wire": "?rpc.extra-members",
    "Thread.source: only in the wire": "?rpc.extra-members",
    # What a client must know to switch a skill.
    "SkillMetadata.path: only in the wire": "?rpc.extra-members",
    "SkillMetadata.scope: only in the wire": "?rpc.extra-members",
    # Models do not say what depends on another member.
    "Thread.path where ephemeral is True: only in the book": "thread.path-ephemeral",
    # Half a thread is no page size.
    "ThreadListParams.limit: book null|number; wire integer|null": "?thread-list.limit-range",
    # The one model of a thread always writes its turns, and reads none as no turns.
    "ThreadRollbackResult.thread.turns: book required; wire optional": "thread-rollback.result",
    # What the text needs and does not show.
    "ThreadStartParams.dynamicTools: only in the wire": "?item.dynamic-tool-flow",
    "WebSearchAction.pattern: only in the wire": "?item.web-search-payloads",
    "WebSearchAction.url: only in the wire": "?item.web-search-payloads",
}
"""Difference between the facts -> reason."""

DOCUMENTS = {
    "CommandApprovalResult.decision: only the wire takes it": "?approval.amendment-content",
    "SandboxPolicy.access.type: only the book takes it": "?sandbox-policy.read-only-access",
    **dict.fromkeys(
        (
            f"SandboxPolicy.{name}: only the wire takes it"
            for name in ("type", "access", "networkAccess", "writableRoots")
        ),
        "sandbox-policy.details",
    ),
    # Another server may have members of these names for something else.
    "SkillMetadata.path: only the book takes it": "?rpc.extra-members",
    "SkillMetadata.scope: only the book takes it": "?rpc.extra-members",
    # An ephemeral thread with a path.
    "Thread.ephemeral: only the wire takes it": "thread.path-ephemeral",
    # A thread without turns is written as one with none.
    "Thread.turns: written otherwise": "?thread.turns-null",
    "ThreadListParams.limit: only the book takes it": "?thread-list.limit-range",
    "ThreadRollbackResult.thread.turns: only the wire takes it": "thread-rollback.result",
    "ThreadStartParams.dynamicTools: only the book takes it": "?item.dynamic-tool-flow",
}
"""Of documents that one takes and the other refuses, or that are not written as they were read:
the places where they were changed."""

NOT_IN_THE_BOOK = {
    "initialized": "?rpc.handshake",
    "review/start": "?item.review-begins",
    "item/tool/call": "?item.dynamic-tool-flow",
}
"""Methods that the text needs but does not define."""
