"""From a command to a flow: the checkout is found, a server is up, the flow runs, its outcome is printed."""

from __future__ import annotations

import json
import logging
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import combee_core
from combee_core.adapters import prefect_server
from combee_core.base import is_simulated
from combee_core.cli import logs
from combee_core.cli.show import run_lines
from combee_core.config import RunRequest
from combee_core.days import zone
from combee_core.errors import BudgetSpent, CombeeError, RunStopped, UsageError
from combee_core.events import event
from combee_core.records import RunResult

_LEFT_OUT = 10
SHOWN = (
    "playbook",
    "version",
    "digest",
    "flow_run_id",
    "status",
    "simulated",
    "accounting",
    "model_calls",
    "tokens",
    "cost",
)


def terminal(*, quiet: bool = False) -> Any:
    """The module that runs flows, loaded from the checkout; `quiet` keeps Prefect's log off the terminal.

    Raises `UsageError` where there is no checkout.
    """
    root = checkout()
    if quiet:
        os.environ.setdefault("PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL", "WARNING")
    api = ensure_server()
    os.environ["PREFECT_API_URL"] = api
    os.environ.setdefault("DO_NOT_TRACK", "1")
    # Two minutes for each request: a server that is started anew is waited for.
    os.environ.setdefault("PREFECT_CLIENT_MAX_RETRIES", "6")
    os.environ.setdefault("PREFECT_LOGGING_TO_API_BATCH_INTERVAL", "1")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    return import_module("flows.terminal")


def serving() -> Any:
    """The module that knows the deployments. Raises `UsageError` where there is no checkout."""
    terminal()
    return import_module("flows.serving")


def checkout() -> Path:
    """The folder that holds `flows/` and `tasks/`: the one this package lies in, the one that `COMBEE_CHECKOUT` names,
    or the present one. Raises `UsageError` where there is none, and where the variable is needed and names none.
    """
    own, named = Path(combee_core.__file__).resolve().parents[1], os.environ.get("COMBEE_CHECKOUT")
    for root in (own, Path(named or "").resolve()):
        if (root / "flows" / "terminal.py").exists() and (root / "tasks").is_dir():
            return root
    if named:
        raise UsageError(f"COMBEE_CHECKOUT={named} is no checkout of the project: it has no flows/ and tasks/")
    raise UsageError(
        "the flows are not part of the installed package: run this in a checkout of the project, or name one in "
        "COMBEE_CHECKOUT (unpack its source archive or clone its repository, then `make install`)"
    )


def ensure_server() -> str:
    """The API address that is configured, or that of our own server, started if need be."""
    configured = prefect_server.configured_api()
    if configured:
        if not prefect_server.healthy(configured):
            raise CombeeError(f"{configured} does not answer; start that server, or unset PREFECT_API_URL")
        return configured
    folder = prefect_server.home()
    if prefect_server.running(folder) is None:
        note("starting a Prefect server (once; `combee server down` stops it)", "server-starting")
    server = prefect_server.up(folder)
    return server.api


def ui_address() -> str:
    """Where people look."""
    return ensure_server().removesuffix("/api")


def note(text: str, name: str = "note", level: int = logging.INFO, **fields: Any) -> None:
    """A line of progress on stderr, as the event `name`."""
    event(logs.LOG, level, name, text, **fields)


def warn_if_simulated(request: RunRequest, named: str | None) -> None:
    """Say so when no model was named."""
    if named is None and is_simulated(request.settings.model.model):
        note(
            f"no --model: using {request.settings.model.model}, a simulated stand-in; its lessons are not real",
            "simulated",
        )


def report(result: RunResult, error: BaseException | None, *, as_json: bool) -> int:
    """Print a run's outcome; the exit code: 2 if wrong use was found only when the flow ran."""
    if as_json:
        print(json.dumps(_shown(result), ensure_ascii=False))
    elif result.run or result.days:
        print("\n".join(run_lines(result)))
    for file in result.left_out[:_LEFT_OUT]:
        note(f"left out: {file.where}: {file.reason}", "left-out", file=file.where)
    if len(result.left_out) > _LEFT_OUT:
        note(f"left out: {len(result.left_out) - _LEFT_OUT} more; {len(result.left_out)} files in all", "left-out")
    if result.flow_run_id:
        note(f"flow run: {ui_address()}/runs/flow-run/{result.flow_run_id}", "flow-run", flow_run_id=result.flow_run_id)
    if result.error:
        note(result.error.message, "failed", logging.ERROR, stage=result.error.stage, item=result.error.item)
        if result.version is None and not isinstance(error, UsageError):
            learned = [line for line in result.days if line.happened in ("learned", "supplement")]
            published = f"{len(learned)} days were learned and stay published" if learned else "nothing was published"
            way = f"; mend the cause, then: combee rerun {result.flow_run_id}"
            if isinstance(error, BudgetSpent):
                way = _past_the_cap(error, result.flow_run_id)
            elif isinstance(error, RunStopped):
                way = ""
            note(f"{published}{way}", "rerun")
    return _exit_code(result, error)


def _past_the_cap(spent: BudgetSpent, flow_run_id: str) -> str:
    higher = f"; with a higher cap: combee rerun {flow_run_id} {spent.item} N" if flow_run_id else ""
    complete = f"the {spent.held} batches that are complete"
    return higher + (f"; --on-budget publish would have published {complete}" if spent.held else "")


def _exit_code(result: RunResult, error: BaseException | None) -> int:
    if isinstance(error, UsageError):
        return 2
    return 1 if result.error else 0


def _shown(result: RunResult) -> dict[str, Any]:
    more = [name for name in ("days", "error") if getattr(result, name)]
    shown = result.model_dump(mode="json", include={*SHOWN, *more})
    for amounts in ("tokens", "cost"):
        if not shown[amounts]["at_least"] or shown[amounts]["total"] is None:
            del shown[amounts]["at_least"]
    return shown


def check(request: RunRequest, *, may_be_empty: bool = False) -> RunRequest:
    """The request with absolute paths, after everything that can be wrong without a server has been looked at.

    Raises `UsageError`.
    """
    from combee_core.adapters.models import build_model
    from combee_core.learners import load_learner

    if not request.source.uris and not may_be_empty:
        raise UsageError("nothing to learn from: name traces or samples, or a --config FILE whose [source] has uris")
    found = absolute(request)
    load_learner(found.settings.learner, found.settings.prompts)
    if is_simulated(found.settings.model.model):
        build_model(found.settings.model)
    zone(found.source.timezone)
    return found


def absolute(request: RunRequest) -> RunRequest:
    """The request with paths that mean the same in any process: they are a flow run's recorded parameters.

    Raises `UsageError` for a local path that does not exist, before a server is started for nothing.
    """
    from combee_core.adapters.stores import open_store

    source = request.source.model_copy(update={"uris": tuple(map(_absolute, request.source.uris))})
    settings = request.settings
    if settings.prompts:
        settings = settings.model_copy(update={"prompts": _absolute(settings.prompts)})
    return request.model_copy(update={"store": open_store(request.store).uri, "source": source, "settings": settings})


def _absolute(uri: str) -> str:
    if "://" in uri or uri.startswith("world:"):
        return uri
    path = Path(uri)
    if not path.exists():
        raise UsageError(f"{uri}: no such file or folder")
    return str(path.resolve())
