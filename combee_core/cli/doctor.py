"""`combee doctor`: is everything there that a night needs? A line each, with the way out."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from combee_core.base import is_simulated
from combee_core.cli import options, run_files, settings
from combee_core.config import ModelSettings, RunRequest
from combee_core.days import zone
from combee_core.errors import CombeeError

PACKAGES = ("combee-pipeline", "prefect", "litellm", "pydantic", "s3fs", "json-repair", "tenacity")
"""What a night needs. litellm uses tenacity without declaring it, and hides the real error where it is missing."""


def add(commands: Any) -> None:
    """Register the command."""
    parser: argparse.ArgumentParser = commands.add_parser("doctor", help="check model, store, server and versions")
    run_files.add_config(parser)
    options.add_store(parser, default=None)
    options.add_model(parser)
    parser.add_argument("--deep", action="store_true", help="look closer: a call, the store's pace, what it holds")
    parser.add_argument("--playbook", metavar="NAME", help="with --deep: which of its last days have no marker")
    parser.add_argument("--timezone", metavar="ZONE", help="with --deep: whose midnight ends a day (UTC)")
    parser.set_defaults(command=run)


def run(args: argparse.Namespace) -> int:
    """Print one line a check; 1 if one of them failed."""
    request = _request(args)
    model = request.settings.model
    checks: dict[str, Callable[[], str]] = {
        "model": lambda: _model(model),
        "requests": lambda: _requests(model),
        "store": lambda: _store(request.store),
        "server": _server,
        "flows": _flows,
        "versions": lambda: versions(PACKAGES),
    }
    if args.deep:
        from combee_core.cli import deep

        checks |= deep.checks(request, days=bool(args.playbook or (args.config and request.source.kind == "traces")))
    found = []
    for name, check in checks.items():
        line = _look(name, check)
        found.append(line)
        if not args.json:
            print(f"{'ok  ' if line['ok'] else 'FAIL'}  {name + ':':<10} {line['says']}", flush=True)
    if args.json:
        print(json.dumps({"ok": all(line["ok"] for line in found), "checks": found}, ensure_ascii=False))
    return 0 if all(line["ok"] for line in found) else 1


def _request(args: argparse.Namespace) -> RunRequest:
    """What would be learned, as far as it is looked at: the file's, with the options over it. Raises `UsageError`."""
    base = run_files.run_file(args.config).request
    given = {name: value for name in ("store", "playbook") if (value := getattr(args, name))}
    timezone = args.timezone or base.source.timezone
    zone(timezone)
    source = base.source.model_copy(update={"timezone": timezone})
    learning = base.settings.model_copy(update={"model": settings.model_of(args, base.settings.model)})
    return base.model_copy(update={**given, "source": source, "settings": learning})


def _look(name: str, check: Callable[[], str]) -> dict[str, Any]:
    try:
        return {"check": name, "ok": True, "says": check()}
    except CombeeError as error:
        return {"check": name, "ok": False, "says": str(error)}


def _model(settings: ModelSettings) -> str:
    from combee_core.adapters.models import build_model
    from combee_core.adapters.workshop import calls

    model = build_model(settings)
    calls(model.preflight())
    if is_simulated(model.name):
        return f"{model.name}: simulated, in process; name a real one with --model"
    return f"{model.name} is reachable"


def _requests(settings: ModelSettings) -> str:
    twice = f" x 2 (a call slower than {settings.hedge:g} times the median is sent again)" if settings.hedge else ""
    models = settings.attempts // (settings.retries + 1)
    each = f" x {models} (models that are asked in turn)" if models > 1 else ""
    return (
        f"at most {settings.most_requests} for one prompt: "
        f"({settings.retries} retries + 1) x ({settings.max_waits} waits for 429 and 529 + 1){each}{twice}; "
        f"each gives up after {settings.timeout:g} s"
    )


def _store(uri: str) -> str:
    from combee_core.adapters.probe import probe_conditional_writes
    from combee_core.adapters.stores import open_store

    store = open_store(uri)
    probe_conditional_writes(store)
    return f"{store.uri}: create-only and compare-and-swap writes hold"


def _server() -> str:
    from combee_core.adapters import prefect_server

    configured = prefect_server.configured_api()
    if configured:
        if not prefect_server.healthy(configured):
            raise CombeeError(f"{configured} does not answer; start that server, or unset PREFECT_API_URL")
        return f"{configured} (configured) answers"
    running = prefect_server.running(prefect_server.home())
    return f"{running.api} answers" if running else "none is running; the first run starts one (combee server up)"


def _flows() -> str:
    from combee_core.cli.launch import checkout

    return f"found in {checkout()}"


def versions(packages: Sequence[str]) -> str:
    """Python's and each package's version. Raises `CombeeError` naming those that are not installed."""
    named = {"python": ".".join(map(str, sys.version_info[:3])), **{name: _version(name) for name in packages}}
    missing = [name for name, number in named.items() if number is None]
    if missing:
        raise CombeeError(f"{', '.join(missing)} not installed: pip install 'combee-pipeline[pipeline]'")
    return ", ".join(f"{name} {number}" for name, number in named.items())


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
