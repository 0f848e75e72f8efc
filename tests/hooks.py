"""A server on loopback that keeps what it is sent: a webhook, or an API that is busy."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


@contextmanager
def hook(status: int = 200, *, first: Sequence[int] = ()) -> Iterator[tuple[str, list[Any]]]:
    """Its address, and the JSON bodies that came; it answers with the statuses `first`, from then on with `status`."""
    got: list[Any] = []
    before = iter(first)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(next(before, status))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/secret-path", got
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
