"""The values that the specification lists for options of an SDK's threads.

Source: mcp-cli-and-sdk "Thread options (`startThread`, object, all optional)".
"""

from typing import Final

LISTED_VALUES: Final[dict[str, tuple[str, ...]]] = {
    "sandboxMode": ("read-only", "workspace-write", "danger-full-access"),
    "modelReasoningEffort": ("minimal", "low", "medium", "high", "xhigh"),
    "webSearchMode": ("disabled", "cached", "live"),
    "approvalPolicy": ("never", "on-request", "on-failure", "untrusted"),
}
