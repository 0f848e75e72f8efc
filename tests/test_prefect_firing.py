"""Whether a Prefect server's automations fire, against a small API that says what a real one says when they do not."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any

import pytest

from combee_core.adapters.prefect_api import PrefectApi
from combee_core.adapters.prefect_firing import firing
from combee_core.errors import CombeeError


class Server:
    """An automation pauses itself at the event `acts_at`; of events those in `records` are shown (None: what came)."""

    def __init__(self, acts_at: int = 10**9, records: list[str] | None = None) -> None:
        self.acts_at, self.records = acts_at, records
        self.events: list[dict[str, Any]] = []
        self.automations: dict[str, dict[str, Any]] = {}
        self.deleted: list[str] = []

    def answer(self, method: str, path: str, body: Any) -> Any:
        """What the API says to one request."""
        if (method, path) == ("POST", "/events"):
            self.events += body
            return None
        if path == "/events/filter":
            names = [one["event"] for one in self.events] if self.records is None else self.records
            return {"events": [{"event": name} for name in names]}
        if path == "/automations/filter":
            there = [{"id": its} for its in self.automations if its not in self.deleted]
            return there[body["offset"] :]
        if method == "POST":
            self.automations["a-1"] = body
            return {"id": "a-1"}
        if method == "DELETE":
            self.deleted.append(path.rpartition("/")[2])
            return None
        return {"enabled": len(self.events) < self.acts_at}


@contextmanager
def serving(server: Server) -> Iterator[PrefectApi]:
    """Its address on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            size = int(self.headers.get("content-length") or 0)
            said = server.answer(self.command, self.path, json.loads(self.rfile.read(size) or b"null"))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(said).encode())

        do_GET = do_POST = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield PrefectApi(f"http://127.0.0.1:{http.server_port}", {})
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def asked(server: Server) -> str:
    """What is found within 10 turns of a clock that goes on by one second at each look."""
    ticks = count()
    with serving(server) as api:
        return firing(api, 10, lambda: float(next(ticks)), lambda _: None)


def test_an_automation_that_acts_is_found_at_once_and_nothing_of_it_stays() -> None:
    server = Server(acts_at=1)
    assert "an automation acts" in asked(server)
    assert server.deleted == list(server.automations)


def test_the_event_is_sent_again_until_a_service_that_hears_of_the_automation_later_acts() -> None:
    server = Server(acts_at=4)
    asked(server)
    assert len(server.events) == 4
    assert len({one["id"] for one in server.events}) == 4
    (made,) = server.automations.values()
    assert {one["event"] for one in server.events} == set(made["trigger"]["expect"])
    assert {one["resource"]["prefect.resource.id"] for one in server.events} == {"prefect.automation.a-1"}


@pytest.mark.parametrize(
    ("records", "says"),
    [
        ([], "neither recorded nor acted upon"),
        (None, "events are recorded, and no automation fires on them"),
        (["combee.doctor.x", "prefect.automation.triggered"], "automations fire, and nobody carries out their actions"),
    ],
)
def test_a_silent_server_is_named_with_how_far_an_event_came_and_the_way_out(
    records: list[str] | None, says: str
) -> None:
    server = Server(records=records)
    with pytest.raises(CombeeError, match=f"{says}.*within 10 s; start its background services anew"):
        asked(server)
    assert server.deleted == ["a-1"], "also then"
