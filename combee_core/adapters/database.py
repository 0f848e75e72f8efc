"""The Prefect server's database: SQLite in the home's folder, or PostgreSQL by URL, looked at before it is used."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from combee_core.errors import CombeeError, UsageError

SQLITE = "sqlite"
VARIABLE = "COMBEE_DATABASE_URL"
_PREFECTS = "PREFECT_SERVER_DATABASE_CONNECTION_URL"
_SCHEMES = ("postgresql+asyncpg", "postgresql", "postgres")
_PATIENCE = 10.0
_OLDEST = 140000
"""PostgreSQL 14, as `server_version_num` has it: the oldest that Prefect supports."""

_RIGHTS = """
SELECT current_setting('server_version_num')::int,
       has_database_privilege(current_database(), 'CREATE'),
       coalesce(has_schema_privilege(current_schema(), 'CREATE'), false),
       EXISTS (SELECT FROM pg_extension WHERE extname = 'pg_trgm'),
       EXISTS (SELECT FROM pg_available_extensions WHERE name = 'pg_trgm')
"""


def named_database(given: str | None, environ: Mapping[str, str]) -> str | None:
    """The URL that is meant: `given`, else `COMBEE_DATABASE_URL`, else Prefect's own variable; None where none is.

    `sqlite` and a PostgreSQL URL are databases; any other text raises `UsageError`.
    """
    url = given or environ.get(VARIABLE) or environ.get(_PREFECTS)
    if not url:
        return None
    scheme, _, rest = url.partition("://")
    if url == SQLITE or scheme.startswith("sqlite+"):
        return SQLITE
    if scheme not in _SCHEMES or not rest:
        raise UsageError(
            f"{masked(url)} is no database of a server: write postgresql+asyncpg://USER:PASSWORD@HOST/NAME, or sqlite"
        )
    return f"{_SCHEMES[0]}://{rest}"


def masked(url: str) -> str:
    """The URL without its password, wherever that stands, and however it is written."""
    hidden = re.sub(r"^([^:]*://[^:@/?]*):.*@", r"\1:***@", url)
    return re.sub(r"(?i)([?&]password=)[^&]*", r"\1***", hidden)


def check_database(url: str) -> None:
    """See that PostgreSQL answers, lets us in and gives the rights that Prefect's tables need.

    Raises `CombeeError` with the way out, never with the password.
    """
    version, database, schema, installed, available = asyncio.run(_rights(url))
    where = masked(url)
    name = urlsplit(url).path.strip("/")
    if version < _OLDEST:
        raise CombeeError(f"{where} is PostgreSQL {version // 10000}; Prefect needs 14 or newer")
    if not schema:
        raise CombeeError(
            f"{where}: the role may not make tables there; as its owner: ALTER DATABASE {name} OWNER TO that role"
        )
    if not installed and not available:
        raise CombeeError(f"{where}: the extension pg_trgm is not installed on that machine (postgresql-contrib)")
    if not installed and not database:
        raise CombeeError(f"{where}: the role may not add pg_trgm; as its owner: CREATE EXTENSION pg_trgm in {name}")


async def _rights(url: str) -> tuple[Any, ...]:
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    try:
        engine = create_async_engine(url)
        async with asyncio.timeout(_PATIENCE), engine.connect() as connection:
            return tuple((await connection.execute(text(_RIGHTS))).one())
    except Exception as error:  # noqa: BLE001 - the driver's own, the system's, SQLAlchemy's, from a typo in the URL on
        said = f"{masked(url)} cannot be used: {_spoken(error, url)}"
        raise CombeeError(f"the database {said}; is it running, is the URL right?") from None


def _spoken(error: Exception, url: str) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {_PATIENCE:.0f} s"
    told = str(getattr(error, "orig", None) or error).strip() or type(error).__name__
    return told.rpartition(">: ")[2].replace(url, masked(url)).splitlines()[0]
