"""Settings of the threads of a trace: as the client sent them, else as the server reported them."""

from typing import Any, Final

from harness.protocol.values import dig, obj, text
from harness.scenario.from_trace.story import Story
from harness.trace.frame import Kind

SETTINGS: Final = ("approvalPolicy", "sandbox", "model")
_SANDBOXES: Final = {
    "dangerFullAccess": "danger-full-access",
    "readOnly": "read-only",
    "workspaceWrite": "workspace-write",
}


def common_settings(story: Story, *, is_recording: bool) -> dict[str, Any]:
    """Return the settings that all threads share, without the model if `is_recording`."""
    rows: list[dict[str, Any]] = []
    for frame in story.frames:
        answer = story.answer_to(frame) if frame.method == "thread/start" else None
        if answer is None or answer.kind is not Kind.RESPONSE:
            continue
        row = {
            name: obj(frame.params).get(name) or setting_of(name, answer.result)
            for name in SETTINGS
        }
        if is_recording:
            row.pop("model")
        rows.append({k: v for k, v in row.items() if isinstance(v, str)})
    first = rows[0] if rows else {}
    return {
        k: v for k, v in first.items() if all(row_of_thread.get(k) == v for row_of_thread in rows)
    }


def setting_of(name: str, result: Any) -> Any:
    """Return a setting in a result of thread/start as the request has it; None if it is missing."""
    if name == "approvalPolicy":
        return text(dig(result, name)) or None
    if name == "sandbox":
        return _SANDBOXES.get(text(dig(result, name, "type")))
    return None
