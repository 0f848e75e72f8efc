"""Alarms to a webhook whose address is in the environment."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from combee_core.errors import CombeeError

VARIABLE = "COMBEE_ALARM_URL"
TIMEOUT = 10.0
"""Seconds that a hook may take."""


def hook_url(environ: Mapping[str, str] = os.environ) -> str | None:
    """Where alarms go, None where nobody asked for them."""
    return environ.get(VARIABLE) or None


def post(url: str, payload: Mapping[str, Any], timeout: float = TIMEOUT) -> None:
    """POST as JSON. Raises `CombeeError` naming the host, not the address: it often holds a secret."""
    where = urlsplit(url).hostname or "no host"
    data = json.dumps(payload, ensure_ascii=False).encode()
    headers = {"content-type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers, method="POST"), timeout=timeout):
            return
    except urllib.error.HTTPError as error:
        error.close()
        raise CombeeError(f"the alarm was refused by {where} ({error.code}); check {VARIABLE}") from error
    except (OSError, ValueError) as error:
        why = error if isinstance(error, OSError) else "that is no http address"
        raise CombeeError(f"the alarm did not reach {where} ({why}); check {VARIABLE}") from error
