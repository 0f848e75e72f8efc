"""A proxy on 127.0.0.1 that passes HTTP requests on and, for chosen PUTs, loses or replaces the answer."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "expect"}


@dataclass
class Faults:
    """What befalls which PUT; they are counted from 1, repetitions by a client included."""

    drop: Container[int] = ()
    """PUTs that the server does and whose answer never arrives."""

    lose: Container[int] = ()
    """PUTs that never reach the server and get no answer."""

    answer: Mapping[int, tuple[int, str]] = field(default_factory=dict)
    """PUTs that never reach the server and get this status and S3 error code."""

    cut_get: Container[int] = ()
    """GETs, counted from 1, whose answer ends in the middle of its body."""


@dataclass
class Proxy:
    """Where it listens and what it saw: one (method, path, status) an answer of the server or of ours."""

    url: str
    seen: list[tuple[str, str, int]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def statuses(self, method: str) -> list[int]:
        """The statuses of one method's answers, in order."""
        return [status for seen, _, status in self.seen if seen == method]

    def count(self, method: str) -> int:
        """The number of this request among those of its method."""
        with self.lock:
            self.counts[method] = self.counts.get(method, 0) + 1
            return self.counts[method]


@contextmanager
def proxy(upstream: str, faults: Faults) -> Iterator[Proxy]:
    """Run it in front of `upstream` while inside."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.upstream = urlsplit(upstream).netloc  # type: ignore[attr-defined]
    server.faults = faults  # type: ignore[attr-defined]
    server.proxy = found = Proxy(f"http://127.0.0.1:{server.server_port}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Handler(BaseHTTPRequestHandler):
    """One connection; every answer closes it, so that a lost one needs no special care."""

    protocol_version = "HTTP/1.1"

    def do_PUT(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        faults: Faults = self.server.faults  # type: ignore[attr-defined]
        number = self.server.proxy.count("PUT")  # type: ignore[attr-defined]
        if number in faults.lose:
            self.close_connection = True
        elif number in faults.answer:
            status, code = faults.answer[number]
            text = f"<Error><Code>{code}</Code><Message>by the proxy</Message></Error>"
            self._reply(status, {"Content-Type": "application/xml"}, text.encode())
        else:
            status, headers, data = self._pass_on(body)
            if number in faults.drop:
                self._note(status)
                self.close_connection = True
            else:
                self._reply(status, headers, data)

    def do_GET(self) -> None:
        status, headers, data = self._pass_on(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        number = self.server.proxy.count(self.command)  # type: ignore[attr-defined]
        cut = number in self.server.faults.cut_get and self.command == "GET"  # type: ignore[attr-defined]
        self._reply(status, headers, data, len(data) // 2 if cut else None)

    do_DELETE = do_POST = do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def _pass_on(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=30)  # type: ignore[attr-defined]
        try:
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in HOP_BY_HOP:
                    upstream.putheader(name, value)
            upstream.putheader("Content-Length", str(len(body)))
            upstream.endheaders(body)
            answer = upstream.getresponse()
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in HOP_BY_HOP}
            return answer.status, kept, answer.read()
        finally:
            upstream.close()

    def _reply(self, status: int, headers: dict[str, str], data: bytes, cut: int | None = None) -> None:
        self._note(status)
        self.close_connection = True
        self.send_response_only(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status != 204:
            self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data[:cut])

    def _note(self, status: int) -> None:
        self.server.proxy.seen.append((self.command, self.path, status))  # type: ignore[attr-defined]
