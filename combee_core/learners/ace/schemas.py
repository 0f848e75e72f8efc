"""JSON schemas of the four answers, in the strict form that providers enforce: closed objects, all fields required."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _optional(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_NUMBERS = _array({"type": "integer"})
_OPERATION = _object(
    type={"type": "string", "enum": ["ADD", "UPDATE", "MERGE", "REMOVE"]},
    section=_optional(_TEXT),
    content=_optional(_TEXT),
    bullet_id=_optional(_TEXT),
    bullet_ids=_optional(_array(_TEXT)),
    **{"from": _NUMBERS},
)
_TAG = _object(id=_TEXT, tag={"type": "string", "enum": ["helpful", "harmful", "neutral"]})

GENERATOR = _object(reasoning=_TEXT, bullet_ids=_array(_TEXT), final_answer=_TEXT)
REFLECTOR = _object(
    reasoning=_TEXT,
    error_identification=_TEXT,
    root_cause_analysis=_TEXT,
    correct_approach=_TEXT,
    key_insight=_TEXT,
    bullet_tags=_array(_TAG),
)
CURATOR = _object(reasoning=_TEXT, operations=_array(_OPERATION))
MERGER = _object(
    reasoning=_TEXT,
    operations=_array(_OPERATION),
    dropped=_array(_object(op={"type": "integer"}, because=_TEXT)),
    conflicts=_array(_object(ops=_NUMBERS, bullet_ids=_array(_TEXT), about=_TEXT)),
)
