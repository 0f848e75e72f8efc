"""One setting of Prefect's is changed for a while, and nothing beside it."""

from __future__ import annotations

import pytest
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, get_current_settings, temporary_settings

from tasks.children import without_heartbeats
from tasks.setting import setting


def test_a_setting_holds_inside_and_not_after() -> None:
    before = get_current_settings().model_dump()
    with setting("client", "max_retries", 0):
        inside = get_current_settings().model_dump()
        assert PREFECT_CLIENT_MAX_RETRIES.value() == 0
    inside["client"]["max_retries"] = before["client"]["max_retries"]
    assert inside == before
    assert get_current_settings().model_dump() == before


def test_a_setting_is_over_when_what_is_inside_fails() -> None:
    before = PREFECT_CLIENT_MAX_RETRIES.value()
    with pytest.raises(RuntimeError), setting("client", "max_retries", before + 1):
        raise RuntimeError
    assert PREFECT_CLIENT_MAX_RETRIES.value() == before


def test_what_others_have_set_for_a_while_stays_set() -> None:
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 7}), without_heartbeats(), without_heartbeats():
        assert get_current_settings().flows.heartbeat_frequency is None
        assert PREFECT_CLIENT_MAX_RETRIES.value() == 7


@pytest.mark.parametrize(("group", "name"), [("nothing", "max_retries"), ("client", "max_retreats")])
def test_a_setting_that_there_is_not_is_an_error(group: str, name: str) -> None:
    with pytest.raises(AttributeError), setting(group, name, 0):
        pass
