"""The tests' Prefect server as anybody can ask it: over HTTP."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from command import Combee


def address(combee: Combee) -> str:
    """Of the server that this home has started."""
    port = json.loads((combee.home / "server.json").read_text())["port"]
    return f"http://127.0.0.1:{port}/api"


def api(combee: Combee, path: str, body: object | None = None) -> Any:
    """The server's answer to a body, or what it has at the path."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address(combee) + path, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)
