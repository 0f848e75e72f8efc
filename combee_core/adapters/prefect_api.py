"""Requests to a Prefect API, without Prefect's own client: commands that ask a few questions start in no time."""

from __future__ import annotations

import base64
import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from combee_core.errors import CombeeError

PAGE = 200
TIMEOUT = 30.0
"""Seconds for one request."""

BUSY = frozenset({429, 502, 503})
"""Statuses at which Prefect's own client asks again too; a database that is locked makes a 503."""

PAUSES = (0.2, 0.5, 1, 2, 4, 8)
"""Seconds between the requests to a busy server."""


class PrefectApi:
    """The API at `address`, such as http://127.0.0.1:4200/api.

    Credentials come from `environ`, under the names that Prefect's client reads. A busy server is asked again, so that
    what is posted may arrive twice where a proxy lies between. Raises `CombeeError` naming the request that failed.
    """

    def __init__(
        self, address: str, environ: Mapping[str, str] = os.environ, sleep: Callable[[float], object] = time.sleep
    ) -> None:
        self.address = address.rstrip("/")
        self._headers = {"content-type": "application/json", **_authorization(environ)}
        self._sleep = sleep

    def call(self, method: str, path: str, body: object = None) -> Any:
        """What the server answers, as JSON; None for an empty answer."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.address}{path}", data, self._headers, method=method)
        try:
            return self._patiently(request)
        except urllib.error.HTTPError as error:
            with error:
                said = " ".join(error.read().decode(errors="replace").split())[:300]
            raise CombeeError(f"{method} {self.address}{path}: {error.code} {said}") from error
        except (OSError, ValueError) as error:
            raise CombeeError(f"{method} {self.address}{path}: {error}; is the Prefect server running?") from error

    def _patiently(self, request: urllib.request.Request) -> Any:
        for pause in PAUSES:
            try:
                return _answer(request)
            except urllib.error.HTTPError as error:
                if error.code not in BUSY:
                    raise
                error.close()
            self._sleep(pause)
        return _answer(request)

    def find(self, what: str, criteria: Mapping[str, object]) -> Iterator[dict[str, Any]]:
        """Everything under `/what/filter` that meets the criteria, page by page."""
        offset = 0
        while page := self.call("POST", f"/{what}/filter", {**criteria, "limit": PAGE, "offset": offset}):
            yield from page
            offset += len(page)


def _answer(request: urllib.request.Request) -> Any:
    with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:
        return json.loads(answer.read() or b"null")


def _authorization(environ: Mapping[str, str]) -> dict[str, str]:
    if key := environ.get("PREFECT_API_KEY"):
        return {"authorization": f"Bearer {key}"}
    if pair := environ.get("PREFECT_API_AUTH_STRING"):
        return {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    return {}
