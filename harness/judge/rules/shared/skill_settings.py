"""Settings of skills that clients wrote, up to a message."""

from dataclasses import dataclass, replace

from harness.judge.rules.shared.skill_listings import WRITE
from harness.judge.rules.shared.subscriptions import Exchanges
from harness.judge.rules.shared.view_queries import failed, plain_folder
from harness.protocol.values import obj, text
from harness.trace.frame import Frame
from harness.trace.order import came_before
from harness.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Setting:
    """The last setting of a skill: its request, and the answer.

    `enabled` is None where it is not certain what holds: the request was refused or not answered
    yet, or two were under way at once.
    """

    request: Frame
    answer: Frame | None
    enabled: bool | None


def settings_before(trace: Trace, frame: Frame) -> dict[str, Setting]:
    """Return each path's last setting when a message was sent; later ones stand later."""
    exchanges = Exchanges(trace, frame)
    found: dict[str, Setting] = {}
    for request in exchanges.sent(WRITE, before=frame):
        params = obj(request.params)
        path = plain_folder(text(params.get("path")))
        answer, enabled = exchanges.answer_of(request), params.get("enabled")
        former = found.pop(path, None)
        certain = answer is not None and came_before(answer, frame) and not failed(answer)
        if former is not None and certain:
            certain = former.answer is not None and came_before(former.answer, request)
        value = enabled if certain and isinstance(enabled, bool) else None
        found[path] = Setting(request, answer, value)
    return found


def settings_at(trace: Trace, asked: Frame, answered: Frame) -> dict[str, Setting]:
    """Return each path's last setting when a request was sent, and until its answer."""
    later = settings_before(trace, answered)
    return {
        path: setting if later[path].request is setting.request else replace(setting, enabled=None)
        for path, setting in settings_before(trace, asked).items()
    }
