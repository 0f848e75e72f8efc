"""How a Prefect server is: its version, its pace, its clock, what it watches."""

from __future__ import annotations

import os
import time
import urllib.request
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from combee_core.adapters.prefect_alarms import automations
from combee_core.adapters.prefect_api import PrefectApi
from combee_core.checkup import agree
from combee_core.errors import CombeeError

_BEAT = "180"
_ROUNDS = 3


def about(api: PrefectApi, database: str | None = None) -> str:
    """Version, `database` where it is known, and the middle of a few answers' times."""
    took = sorted(_timed(api) for _ in range(_ROUNDS))[_ROUNDS // 2]
    version, kind = api.call("GET", "/admin/version"), database or "a database that it does not tell"
    return f"{api.address}: Prefect {version} on {kind}, answers in {1000 * took:.0f} ms"


def _timed(api: PrefectApi) -> float:
    began = time.monotonic()
    api.call("POST", "/flow_runs/count", {})
    return time.monotonic() - began


def clock(api: PrefectApi) -> str:
    """Its clock against this machine's, by the Date of an answer. Raises `CombeeError` where they are far apart."""
    before = datetime.now(UTC)
    try:
        with urllib.request.urlopen(f"{api.address}/health", timeout=10) as answer:
            told = parsedate_to_datetime(answer.headers["date"])
    except (OSError, TypeError, ValueError) as error:
        raise CombeeError(f"{api.address} tells no time ({error}); is the Prefect server running?") from error
    return agree(f"the clock of {api.address}", told, before, datetime.now(UTC))


def watched(api: PrefectApi, environ: Mapping[str, str] = os.environ) -> str:
    """Whether somebody hears of dead and failed runs. Raises `CombeeError` with the way out."""
    there = {one["name"] for one in api.find("automations", {}) if one["enabled"]}
    missing = [one.name for one in automations({"type": "do-nothing"}, 0) if one.name not in there]
    beat = environ.get("PREFECT_FLOWS_HEARTBEAT_FREQUENCY") or _BEAT
    if missing:
        raise CombeeError(f"nobody would hear: no automation {', '.join(map(repr, missing))}; combee alarms setup")
    return f"automations for dead runs, failed runs and alarms are on; a run's heartbeat comes every {beat} s"
