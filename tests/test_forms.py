"""The form of each deployment, as the UI reads it: words for every field, dates, choices, no field of two kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from prefect.utilities.callables import parameter_schema
from prefect.utilities.schema_tools.validation import validate
from pydantic import Field

from combee_core.base import Form
from combee_core.config import RunRequest
from combee_core.run_file import RunFile, read_run_file
from flows.serving import SERVED
from tasks.serving import parameters

FLOWS = pytest.mark.parametrize("flow", SERVED, ids=lambda flow: flow.name)


def fields(flow: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every field of a flow's form, by dotted name without the definitions' own nesting."""
    schema = parameter_schema(flow).model_dump()
    yield from schema["properties"].items()
    for name, definition in schema["definitions"].items():
        for field, said in definition.get("properties", {}).items():
            yield f"{name}.{field}", said


@FLOWS
def test_every_field_has_words_and_a_title(flow: Any) -> None:
    bare = [name for name, field in fields(flow) if not field.get("title") and "$ref" not in field]
    silent = [name for name, field in fields(flow) if "." in name and not field.get("description")]
    assert not bare
    assert not silent


@FLOWS
def test_every_date_has_a_date_picker(flow: Any) -> None:
    days = [field for name, field in fields(flow) if name.split(".")[-1] in ("day", "first", "last")]
    assert days
    assert all((field["type"], field["format"]) == ("string", "date") for field in days)


@FLOWS
def test_choices_are_selects(flow: Any) -> None:
    found = dict(fields(flow))
    assert found["Source.kind"]["enum"] == ["traces", "samples", "backlog"]
    assert found["RunSettings.merge"]["enum"] == ["paper", "cluster", "auto"]
    assert found["RunSettings.batch_size"]["anyOf"][1]["enum"] == ["auto"]


@FLOWS
def test_no_field_asks_whether_it_is_empty(flow: Any) -> None:
    kinds = [(name, kind) for name, field in fields(flow) for kind in field.get("anyOf", [])]
    assert not [name for name, kind in kinds if kind.get("type") == "null"]
    assert not [name for name, kind in kinds if "const" in kind]


def test_what_matters_comes_first() -> None:
    definitions = parameter_schema(SERVED[0]).definitions
    assert list(definitions["RunRequest"]["properties"])[:4] == ["playbook", "store", "source", "settings"]
    assert list(definitions["Source"]["properties"])[:3] == ["uris", "day", "timezone"]
    assert next(iter(definitions["RunSettings"]["properties"])) == "model"


@FLOWS
def test_the_values_of_a_file_fit_the_form_and_the_flow(flow: Any) -> None:
    """The first check is the server's own when a deployment is made, the second when a run is ordered."""
    file = read_run_file('playbook = "support"\n[source]\nuris = ["here"]\n[settings]\nbatch_size = 7', "x")
    values = parameters(flow, file)
    assert values["request"]["playbook"] == "support"
    schema = parameter_schema(flow).model_dump()
    validate(values, schema, raise_on_error=True, ignore_required=True, preprocess=False)
    validate(values, schema, raise_on_error=True, ignore_required=True)
    assert RunRequest.model_validate(values["request"]) == file.request


@pytest.mark.parametrize(
    "bad", [{"source": {"day": 5}}, {"settings": {"batch_size": "many"}}, {"settings": {"merge": "best"}}, {"x": 1}]
)
def test_what_does_not_fit_is_refused_where_a_run_is_ordered(bad: dict[str, Any]) -> None:
    schema = parameter_schema(SERVED[0]).model_dump()
    with pytest.raises(Exception, match="Validation failed"):
        validate({"request": bad}, schema, raise_on_error=True)


@pytest.mark.parametrize("day", ["2026-11-30", None])
def test_a_day_may_be_given_or_stay_empty(day: str | None) -> None:
    schema = parameter_schema(SERVED[0]).model_dump()
    validate({"request": {"source": {"day": day}}}, schema, raise_on_error=True)


def test_a_backfill_has_days_of_its_own_and_asks_for_no_other() -> None:
    nightly, backfill, _ = SERVED
    asked = {flow.name: dict(fields(flow)) for flow in SERVED}
    assert [name for name, its in asked.items() if "Source.day" not in its] == ["backfill"]
    assert {*asked["nightly"]} - {*asked["backfill"]} == {"nights", "Nights.lookback", "Nights.missed", "Source.day"}

    file = read_run_file('[source]\nuris = ["here"]\nday = 2026-11-30', "x")
    assert parameters(nightly, file)["request"]["source"]["day"] == "2026-11-30"
    values = parameters(backfill, file)
    assert set(values["request"]["source"]) == {"uris", "timezone", "kind", "ground_truth", "scorer"}
    schema = parameter_schema(backfill).model_dump()
    validate(values, schema, raise_on_error=True, ignore_required=True, preprocess=False)
    values["request"]["source"]["day"] = "2026-11-30"
    with pytest.raises(Exception, match="day"):
        validate(values, schema, raise_on_error=True, ignore_required=True)


def test_a_form_that_is_sent_as_it_came_fits() -> None:
    """Prefect's UI fills in the defaults of tables that a deployment has no values for."""
    for flow in SERVED:
        schema = parameter_schema(flow).model_dump()
        defaults = {name: one["default"] for name, one in schema["definitions"]["RunRequest"]["properties"].items()}
        validate({"request": defaults}, schema, raise_on_error=True, ignore_required=True)


class Asked(Form):
    """A form with every kind of field that is changed for it, and some that are not."""

    empty: int | None = Field(None, gt=0)
    filled: int | None = 3
    either: int | Literal["auto"] = "auto"
    three: int | str | None = None
    needed: int | None
    plain: str = "x"


def test_a_field_that_may_stay_empty_is_of_its_one_kind() -> None:
    asked = Asked.model_json_schema()["properties"]
    assert asked["empty"] == {"title": "Empty", "type": "integer", "exclusiveMinimum": 0}
    assert {"type": "null"} in asked["filled"]["anyOf"], "empty is not what it is without a word"
    assert {"type": "null"} in asked["needed"]["anyOf"]
    assert {"type": "null"} in asked["three"]["anyOf"]
    assert asked["either"]["anyOf"] == [{"type": "integer"}, {"type": "string", "enum": ["auto"]}]
    assert asked["plain"] == {"title": "Plain", "type": "string", "default": "x"}


def test_a_form_reads_what_it_always_read() -> None:
    assert Asked(needed=None) == Asked.model_validate_json(Asked(needed=None).model_dump_json())
    assert RunFile.model_validate(RunFile().model_dump(mode="json")) == RunFile()


def test_what_has_to_be_filled_in_comes_first() -> None:
    (backfill,) = [flow for flow in SERVED if flow.name == "backfill"]
    placed = sorted(parameter_schema(backfill).properties.items(), key=lambda one: one[1]["position"])
    assert placed[0][0] == "days"
