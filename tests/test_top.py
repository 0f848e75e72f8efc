"""Which flow run is on top, asked at every level."""

from __future__ import annotations

from prefect import flow
from prefect.runtime import flow_run

from tasks.top import is_top, top_id


@flow
def innermost() -> tuple[str, bool, str]:
    return top_id(), is_top(), str(flow_run.id)


@flow
def inner() -> tuple[str, bool, str]:
    return innermost()


@flow
def outer() -> list[tuple[str, bool, str]]:
    return [inner(), (top_id(), is_top(), str(flow_run.id)), innermost()]


def test_every_level_names_the_run_on_top_and_only_that_one_is_it(prefect_api: str) -> None:
    first, second = outer(), outer()
    for deep, top, shallow in (first, second):
        assert top[1]
        assert top[0] == top[2]
        assert {deep[0], shallow[0]} == {top[2]}
        assert not deep[1]
        assert not shallow[1]
    assert first[1][0] != second[1][0]
