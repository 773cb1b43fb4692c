"""Schema of a reviewer's JSON answer, and its form as plain text.

An answer that is not such JSON is taken as plain text. Source: session-protocol "ThreadItem"
(exitedReviewMode: "overall notes plus bullet findings").
"""

import json
from typing import Any, cast

Fields = dict[str, Any]


def _object(**properties: Any) -> Fields:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_STRING, _NUMBER, _INTEGER = ({"type": kind} for kind in ("string", "number", "integer"))
SCHEMA = _object(
    findings={
        "type": "array",
        "items": _object(
            title=_STRING,
            body=_STRING,
            confidence_score=_NUMBER,
            priority=_INTEGER,
            code_location=_object(
                absolute_file_path=_STRING, line_range=_object(start=_INTEGER, end=_INTEGER)
            ),
        ),
    },
    overall_correctness={"type": "string", "enum": ["patch is correct", "patch is incorrect"]},
    overall_explanation=_STRING,
    overall_confidence_score=_NUMBER,
)
EMPTY_REVIEW = "The reviewer said nothing."


def review_text(answer: str) -> str:
    """Return the plain text of a review: the overall note, a bullet for each finding; never ""."""
    fields = _read(answer)
    if fields is None:
        return answer.strip() or EMPTY_REVIEW
    note = _text(fields, "overall_explanation").strip()
    findings = [_bullet(one) for one in _objects(fields.get("findings"))]
    return "\n\n".join(filter(None, [note, "\n".join(findings)])) or EMPTY_REVIEW


def _read(answer: str) -> Fields | None:
    try:
        value: Any = json.loads(answer)
    except (ValueError, RecursionError):
        return None
    fields = cast("Fields", value) if isinstance(value, dict) else {}
    is_review = isinstance(fields.get("findings"), list) or "overall_explanation" in fields
    return fields if is_review else None


def _bullet(finding: Fields) -> str:
    location = _objects([finding.get("code_location")])
    place = _place(location[0]) if location else ""
    suffix = f" ({place})" if place else ""
    head = f"- {_text(finding, 'title')}{suffix}"
    return "\n".join([head, *(f"  {line}" for line in _text(finding, "body").splitlines())])


def _place(location: Fields) -> str:
    path = _text(location, "absolute_file_path")
    lines = _objects([location.get("line_range")])
    numbers = [lines[0].get("start"), lines[0].get("end")] if lines else []
    known_numbers = [str(n) for n in dict.fromkeys(numbers) if isinstance(n, int)]
    return f"{path}:{'-'.join(known_numbers)}" if known_numbers else path


def _objects(value: Any) -> list[Fields]:
    entries = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Fields", one) for one in entries if isinstance(one, dict)]


def _text(fields: Fields, key: str) -> str:
    value: Any = fields.get(key)
    return value if isinstance(value, str) else ""
