"""The JSON Schema of the JSON report, for readers in other languages."""

from typing import Any

from pydantic import TypeAdapter

from harness.judge.verdict import Verdict
from harness.protocol.spec.schemas import DRAFT
from harness.report.json_form import VERSION
from harness.report.json_schema import for_readers, prune_definitions
from harness.report.results.report import Report

REPORT_SCHEMA_ID = "report.schema.json"
_COUNT = {"type": "integer", "minimum": 0}
_BY_VERDICT = {
    "type": "object",
    "properties": {str(verdict): _COUNT for verdict in Verdict},
    "additionalProperties": _COUNT,
}


def report_schema() -> dict[str, Any]:
    """Return the schema of what `harness run --json` writes, JSON Schema 2020-12.

    A member that is missing has its default. Members that are not listed may come: a new member
    does not raise `version`.
    """
    schema = for_readers(TypeAdapter(Report).json_schema(mode="serialization"))
    rule = schema["$defs"]["RuleResult"]
    rule["properties"]["counts"] = {
        "type": "boolean",
        "description": "Whether the rule makes the run fail: a SHOULD does only with `strict`.",
    }
    rule["required"].append("counts")
    schema["properties"]["shard"] = {
        "type": ["object", "null"],
        "default": None,
        "description": "What harness merge needs of a run with --shard; its form can change.",
    }
    summary = dict.fromkeys(("rules", "scenarios", "placements"), _BY_VERDICT)
    head: dict[str, Any] = {
        "version": {"const": VERSION, "description": "A change of meaning raises it."},
        "harness": {"type": "string", "description": "The version that wrote the report."},
        "red": {"type": "boolean", "description": "Whether the run fails."},
        "exit": {"type": "integer", "description": "The exit status of the run, if it has ended."},
        "summary": {
            "type": "object",
            "properties": {
                **summary,
                "requirements": {"type": "object", "additionalProperties": _COUNT},
                "seconds": {"type": "number", "description": "Of all plays together."},
            },
            "required": [*summary, "requirements", "seconds"],
        },
    }
    needed = [name for name in head if name != "exit"]
    whole = {
        "$schema": DRAFT,
        "$id": REPORT_SCHEMA_ID,
        **schema,
        "properties": {**head, **schema["properties"]},
        "required": [*needed, *schema["required"], "rules", "scenarios"],
        "title": "The JSON report of harness run",
    }
    prune_definitions(whole)
    return whole
