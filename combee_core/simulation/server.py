"""The simulated model over HTTP, in the OpenAI shape, with latency and faults on demand.

    python -m combee_core.simulation.server --port 8123 --fault stage=curate,group=3,kind=500,count=2

Paths, with and without `/v1`: POST /chat/completions, GET /models. Besides: GET /stats, GET /healthz, and
POST /faults with a JSON list of fault texts, which replaces those in force. For the same messages and seed
the content of an answer is the text that `SimulatedModel` gives in process.
"""

from __future__ import annotations

import argparse
import json
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from combee_core.errors import UsageError
from combee_core.simulation import chat as shape
from combee_core.simulation.call_log import CallLog
from combee_core.simulation.chat import Reply
from combee_core.simulation.faults import KEYS, KINDS, Faults, parse_fault
from combee_core.simulation.provider import Ending, Provider

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.types import ASGIApp, Receive, Scope, Send
    from uvicorn import Server

HOST = "127.0.0.1"

_KEEP_ALIVE = 120
"""Seconds that an idle connection stays open: a client that uses it again as it is closed would see a dropped call."""


def serve(provider: Provider, port: int = 0, host: str = HOST, ready: Callable[[str], None] | None = None) -> None:
    """Serve until SIGTERM or SIGINT, which end it at once, hanging calls included.

    Port 0 takes a free one. `ready` is told the base address (`http://127.0.0.1:8123/v1`) once calls are
    answered; without it the address is printed on stderr. Raises `UsageError` for a port that is taken or a
    library that is not installed.
    """
    listener = _listen(host, port)
    base = f"http://{host}:{listener.getsockname()[1]}/v1"
    try:
        server = _server(provider, lambda: (ready or _announce)(base))
    except ImportError as error:
        listener.close()
        raise UsageError(f"{error.name} is missing: pip install 'combee-pipeline[simulate]'") from error
    server.run(sockets=[listener])


def _announce(base: str) -> None:
    print(f"simulated model at {base}", file=sys.stderr, flush=True)


def _listen(host: str, port: int) -> socket.socket:
    try:
        return socket.create_server((host, port), backlog=256)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port} ({error.strerror}); --port 0 takes a free one") from error


def _server(provider: Provider, started: Callable[[], None]) -> Server:
    import uvicorn

    class AtOnce(uvicorn.Server):
        """Tells when it answers, and does not wait for calls that hang when it is told to stop."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started()

        def handle_exit(self, sig: int, frame: object) -> None:
            self.should_exit = self.force_exit = True

    # A dropped answer is an error to uvicorn, which would log it.
    config = uvicorn.Config(
        application(provider), lifespan="off", log_config=None, access_log=False, timeout_keep_alive=_KEEP_ALIVE
    )
    config.timeout_graceful_shutdown = 0
    return AtOnce(config)


def application(provider: Provider) -> Starlette:
    """The routes."""
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def completions(request: Request) -> ASGIApp:
        return _wire(await provider.answer(await request.body(), request.is_disconnected))

    async def models(request: Request) -> ASGIApp:
        return _whole(shape.model_list())

    async def stats(request: Request) -> ASGIApp:
        return _whole(shape.reply(200, provider.log.stats()))

    async def healthz(request: Request) -> ASGIApp:
        return _whole(shape.reply(200, {"status": "ok"}))

    async def faults(request: Request) -> ASGIApp:
        return _whole(_put_in_force(provider.faults, await request.body()))

    return Starlette(
        routes=[
            *(Route(f"{base}/chat/completions", completions, methods=["POST"]) for base in ("", "/v1")),
            *(Route(f"{base}/models", models) for base in ("", "/v1")),
            Route("/stats", stats),
            Route("/healthz", healthz),
            Route("/faults", faults, methods=["POST"]),
        ]
    )


def _put_in_force(faults: Faults, body: bytes) -> Reply:
    try:
        texts = json.loads(body)
        if not isinstance(texts, list):
            raise UsageError("the body is a JSON list of fault texts")
        plan = [parse_fault(str(text)) for text in texts]
    except (ValueError, UsageError) as error:
        return shape.error(400, str(error), "invalid_request_error")
    faults.replace(plan)
    return shape.reply(200, {"faults": texts})


def _wire(ending: Ending) -> ASGIApp:
    if ending.reply is None:
        return _whole(Reply(499, b"", {}))
    return _half(ending.reply) if ending.dropped else _whole(ending.reply)


def _whole(reply: Reply) -> ASGIApp:
    from starlette.responses import Response

    return Response(reply.body, reply.status, dict(reply.headers))


def _half(reply: Reply) -> ASGIApp:
    """Promises the whole body, sends half of it and ends: the server then closes the connection."""

    async def send_half(scope: Scope, receive: Receive, send: Send) -> None:
        length = [(b"content-length", str(len(reply.body)).encode())]
        headers = [(name.encode(), value.encode()) for name, value in reply.headers.items()]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers + length})
        half = reply.body[: len(reply.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})

    return send_half


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `combee simulate serve`."""
    keys = "; ".join(f"{key}: {meaning}" for key, meaning in KEYS.items())
    kinds = "; ".join(f"{kind}: {meaning}" for kind, meaning in KINDS.items())
    fault = f"stage=curate,group=3,kind=500,rate=1.0,count=0; repeatable. {keys}. Kinds: {kinds}"
    parser.add_argument("--port", type=int, default=0, help="0 takes a free port")
    parser.add_argument("--host", default=HOST, help=f"address to listen on ({HOST})")
    parser.add_argument("--latency", type=float, default=0.0, metavar="S", help="seconds that each answer takes")
    parser.add_argument("--latency-sigma", type=float, default=0.0, help="lognormal spread of the latency")
    parser.add_argument("--latency-seed", type=int, metavar="N", help="draw latencies by order of calls, not by prompt")
    parser.add_argument("--fault", action="append", default=[], metavar="KEY=VALUE,…", help=fault)
    parser.add_argument("--log", type=Path, metavar="FILE", help="append a JSON line at start and end of each call")


def serve_arguments(given: argparse.Namespace) -> None:
    """Serve as the options of `add_arguments` say."""
    plan = tuple(map(parse_fault, given.fault))
    log = CallLog(_steady_clock(), _writable(given.log))
    provider = Provider(log, Faults(plan), given.latency, given.latency_sigma, given.latency_seed)
    serve(provider, given.port, given.host)


def _steady_clock() -> Callable[[], float]:
    """Seconds since 1970 as this machine's clock has them now; later corrections of it do not count."""
    epoch = time.time() - time.monotonic()
    return lambda: epoch + time.monotonic()


def _writable(path: Path | None) -> Path | None:
    try:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.open("ab").close()
    except OSError as error:
        raise UsageError(f"--log {path}: cannot write there ({error.strerror}); name another file") from error
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the server by itself; 2 for a wrong option."""
    parser = argparse.ArgumentParser(prog="python -m combee_core.simulation.server", description="Simulated model.")
    add_arguments(parser)
    try:
        serve_arguments(parser.parse_args(arguments))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
