"""A scripted provider on loopback that speaks the OpenAI chat shape, faults included.

    with FakeProvider([failure(429, "slow down", retry_after="7"), answer('{"operations": []}')]) as provider:
        model = LitellmModel("openai/any", api_base=provider.url, api_key="none")

A script is a list (one reply a request to `/chat/completions`; the last one repeats) or a function from
`Received` to `Reply`. `models` are the names that `GET /models` offers, or its `Reply`; None is a 404 there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any


@dataclass(frozen=True)
class Received:
    """One request as it came: `body` is the parsed JSON, {} for a GET."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class Reply:
    """One canned reply. `hang` never answers; `drop_after` closes the connection after so many body bytes."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    drop_after: int | None = None


Handler = Callable[[Received], Reply]
USAGE = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}


def answer(
    content: str | None,
    *,
    finish: str = "stop",
    usage: dict[str, Any] | None = USAGE,
    model: str = "served",
    **message: Any,
) -> Reply:
    """A chat completion. Further keywords go into the message: `refusal=`, `reasoning_content=`."""
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": content, **message},
    }
    record = {
        "id": "chat-1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
    }
    if usage is not None:
        record["usage"] = usage
    return Reply(json.dumps(record).encode(), headers={"content-type": "application/json"})


def failure(status: int, message: str, *, code: str = "", kind: str = "", retry_after: str | None = None) -> Reply:
    """An error in the OpenAI shape; `kind` is its "type"."""
    body = {"error": {"message": message, "type": kind or "error", "code": code or None, "param": None}}
    headers = {"content-type": "application/json"}
    if retry_after is not None:
        headers["retry-after"] = retry_after
    return Reply(json.dumps(body).encode(), status=status, headers=headers)


def vectors_of(asked: Received, embed: Callable[[str], Sequence[float]]) -> Reply:
    """The embeddings of a request to `/embeddings`: what `embed` makes of each of its texts."""
    rows = [
        {"object": "embedding", "index": at, "embedding": list(embed(text))}
        for at, text in enumerate(asked.body["input"])
    ]
    usage = {"prompt_tokens": 5, "total_tokens": 5}
    record = {"object": "list", "data": rows, "model": asked.body["model"], "usage": usage}
    return Reply(json.dumps(record).encode(), headers={"content-type": "application/json"})


def hang() -> Reply:
    """Accepts the request and never answers."""
    return Reply(b"", hang=True)


def cut(reply: Reply, share: float = 0.5) -> Reply:
    """The same reply, its connection closed after `share` of the body."""
    return Reply(reply.body, reply.status, reply.headers, drop_after=int(len(reply.body) * share))


class FakeProvider:
    """The server: `url` is the api_base, `requests` what came, `calls` how many of them were completions."""

    def __init__(self, script: Sequence[Reply] | Handler, models: Sequence[str] | Reply | None = ("served",)) -> None:
        self._script = script
        self._models = models
        self._released = threading.Event()
        self._lock = threading.Lock()
        self.requests: list[Received] = []

    @property
    def url(self) -> str:
        """Base address, with the `/v1` of the OpenAI shape."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    @property
    def chats(self) -> list[Received]:
        """The requests for a completion, in order of arrival."""
        return [request for request in self.requests if request.method == "POST"]

    @property
    def calls(self) -> int:
        """How many completions were asked for."""
        return len(self.chats)

    def reply_to(self, request: Received) -> Reply:
        """Note the request and choose its reply."""
        with self._lock:
            self.requests.append(request)
            turn = self.calls - 1
        if request.method == "GET":
            return self._list_models()
        if callable(self._script):
            return self._script(request)
        return self._script[min(turn, len(self._script) - 1)]

    def _list_models(self) -> Reply:
        if self._models is None:
            return failure(404, "no such path")
        if isinstance(self._models, Reply):
            return self._models
        rows = [{"id": name, "object": "model"} for name in self._models]
        return Reply(json.dumps({"object": "list", "data": rows}).encode())

    def wait_until_released(self) -> None:
        """Block a hanging request until the server closes."""
        self._released.wait()

    def __enter__(self) -> FakeProvider:
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # with the usual 5 a burst of calls waits a second for its connections


def _handler_of(provider: FakeProvider) -> type[BaseHTTPRequestHandler]:
    class Exchange(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(provider.reply_to(Received("GET", self.path, dict(self.headers), {})))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self._send(provider.reply_to(Received("POST", self.path, dict(self.headers), body)))

        def _send(self, reply: Reply) -> None:
            if reply.hang:
                provider.wait_until_released()
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body[: reply.drop_after])
            self.close_connection = self.close_connection or reply.drop_after is not None

        def log_message(self, format: str, *args: Any) -> None:
            """Stay silent: test output is for failures."""

    return Exchange
