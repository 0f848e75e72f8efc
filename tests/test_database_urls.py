"""Which database is meant, and that its password is shown to nobody."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from combee_core.adapters.database import masked, named_database
from combee_core.errors import UsageError

URL = "postgresql+asyncpg://combee:secret@db.example:5432/prefect"


def test_what_is_given_comes_before_our_variable_and_ours_before_prefect_s() -> None:
    ours, prefects = {"COMBEE_DATABASE_URL": URL}, {"PREFECT_SERVER_DATABASE_CONNECTION_URL": f"{URL}2"}
    assert named_database("sqlite", ours | prefects) == "sqlite"
    assert named_database(None, ours | prefects) == URL
    assert named_database(None, prefects) == f"{URL}2"
    assert named_database(None, {"COMBEE_DATABASE_URL": ""}) is None


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+asyncpg"])
def test_every_usual_way_to_write_a_postgresql_url_is_the_driver_s(scheme: str) -> None:
    assert named_database(f"{scheme}://u@h/d", {}) == "postgresql+asyncpg://u@h/d"


def test_prefect_s_sqlite_url_is_sqlite() -> None:
    assert named_database("sqlite+aiosqlite:////home/me/prefect.db", {}) == "sqlite"


@pytest.mark.parametrize(
    "url", ["mysql://u:secret@h/d", "postgresql+psycopg://u:secret@h/d", "prefect", "postgresql://"]
)
def test_what_is_no_database_of_a_server_is_refused_with_the_way_out(url: str) -> None:
    with pytest.raises(UsageError, match=r"write postgresql\+asyncpg://USER:PASSWORD@HOST/NAME, or sqlite") as refused:
        named_database(url, {})
    assert "secret" not in str(refused.value)


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_no_password_is_shown_whether_it_is_escaped_or_not(password: str) -> None:
    for written in (password, quote(password, safe="")):
        assert masked(f"postgresql+asyncpg://combee:{written}@h:5432/d") == "postgresql+asyncpg://combee:***@h:5432/d"


def test_a_password_among_the_options_is_not_shown_either() -> None:
    assert masked("postgresql://h/d?user=u&password=secret&ssl=require").endswith("?user=u&password=***&ssl=require")


def test_a_url_without_a_password_is_shown_as_it_is() -> None:
    for url in ("sqlite", "postgresql+asyncpg://combee@h:5432/d", "postgresql+asyncpg://h/d"):
        assert masked(url) == url
