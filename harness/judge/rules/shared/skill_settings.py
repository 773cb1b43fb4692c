"""Skill settings that clients wrote before a message."""

from dataclasses import dataclass, replace

from harness.judge.rules.shared.skill_listings import WRITE
from harness.judge.rules.shared.subscriptions import Exchanges
from harness.judge.rules.shared.view_queries import is_failure, plain_folder
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.order import came_before
from harness.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Setting:
    """The last setting of a skill: its request and the answer.

    `enabled` is None if it is uncertain: the request was rejected or is unanswered, or two
    overlapped.
    """

    request: Frame
    answer: Frame | None
    enabled: bool | None


def settings_before(trace: Trace, frame: Frame) -> dict[str, Setting]:
    """Return each path's last setting that was sent before a message, in the order of sending."""
    exchanges = Exchanges(trace, frame)
    settings: dict[str, Setting] = {}
    for request in exchanges.requests(WRITE, before=frame):
        params = obj(request.params)
        path = plain_folder(text(params.get("path")))
        answer, enabled = exchanges.answer_of(request), params.get("enabled")
        former = settings.pop(path, None)
        certain = answer is not None and came_before(answer, frame) and not is_failure(answer)
        if former is not None and certain:
            certain = former.answer is not None and came_before(former.answer, request)
        value = enabled if certain and isinstance(enabled, bool) else None
        settings[path] = Setting(request, answer, value)
    return settings


def settings_at(trace: Trace, request: Frame, answer: Frame) -> dict[str, Setting]:
    """Return each path's last setting when a request was sent.

    Its `enabled` is None if the path was set again before the answer.
    """
    later = settings_before(trace, answer)
    return {
        path: setting if later[path].request is setting.request else replace(setting, enabled=None)
        for path, setting in settings_before(trace, request).items()
    }
