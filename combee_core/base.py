"""What every noun is made of."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema


class Noun(BaseModel):
    """Base of every record: frozen, unknown fields refused. An error about one quotes no input: errors are logged."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


SLIM = ConfigDict(extra="forbid")
"""Of nouns that a run has a hundred thousand of: dataclasses with slots, which take a tenth of a model's memory."""


def _as_form(schema: dict[str, Any]) -> None:
    """Change a JSON schema so that a form asks plainly for each field."""
    for field in schema.get("properties", {}).values():
        kinds = [_as_choice(kind) for kind in field.pop("anyOf", [])]
        given = [kind for kind in kinds if kind.get("type") != "null"]
        if len(given) == 1 and field.get("default", ...) is None:
            # One widget that may stay empty, in the place of a choice between it and "None".
            del field["default"]
            field.update(given[0])
        elif kinds:
            field["anyOf"] = kinds


def _as_choice(kind: dict[str, Any]) -> dict[str, Any]:
    """A constant as a choice of one: a form shows it, where of a constant it only says that it cannot be changed."""
    if "const" not in kind:
        return kind
    return {**{name: value for name, value in kind.items() if name != "const"}, "enum": [kind["const"]]}


class Form(Noun):
    """A noun that people fill in."""

    model_config = ConfigDict(json_schema_extra=_as_form)


@dataclass(frozen=True)
class Unasked:
    """In the annotation of a flow's parameter: its form does not ask for `name` within `table`, and a server refuses a
    value for it.
    """

    table: str
    name: str

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """The parameter's schema; the definitions that it refers to are its flow's own."""
        schema = handler(core)
        table = handler.resolve_ref_schema(schema)["properties"][self.table]
        table.get("default", {}).pop(self.name, None)
        handler.resolve_ref_schema(table)["properties"].pop(self.name, None)
        return schema


def content_hash(*parts: Any) -> str:
    """Hex digest of JSON-able parts, equal in every process."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_simulated(model: str) -> bool:
    """True for the name of the offline stand-in, `simulated/…`, which is never a provider's."""
    return model.startswith("simulated/")


def whole(text: str) -> str:
    """`text` in whole characters: halves that belong together are joined, a half alone becomes U+FFFD.

    Halves of a surrogate pair come from texts that were cut; they can be neither stored as UTF-8 nor sent.
    """
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def clip(text: str, most: int) -> str:
    """`text`, or where it has more than `most` characters its beginning and `…`."""
    return text if len(text) <= most else text[: most - 1] + "…"


def uncapped(text: str) -> str:
    """A description as it stands in a line of help: small at its beginning, but for an abbreviation."""
    return text if text[:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def estimate(text: str) -> int:
    """Tokens in `text`, estimated: UTF-8 bytes divided by four, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // 4)
