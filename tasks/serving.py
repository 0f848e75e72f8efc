"""Deployments without a work pool: how one is made of a flow, and the process that waits and runs what is due."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping, Sequence
from typing import Any, cast

from prefect import Flow
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy
from prefect.deployments.runner import RunnerDeployment
from prefect.exceptions import ObjectNotFound
from prefect.runner import Runner
from prefect.schedules import Cron, Schedule

from combee_core.run_file import RunFile


def deployment(flow: Flow[Any, Any], file: RunFile, label: str, *, scheduled: bool) -> RunnerDeployment:
    """A deployment called after its flow and, where there is one, `label`; the file's values are in its form.

    One run at a time; one that comes due meanwhile is cancelled, not queued. A schedule is off while the file names
    nothing to learn from.
    """
    made = flow.to_deployment(
        name=f"{flow.name}-{label}" if label else flow.name,
        schedule=_schedule(file) if scheduled else None,
        concurrency_limit=ConcurrencyLimitConfig(limit=1, collision_strategy=ConcurrencyLimitStrategy.CANCEL_NEW),
        parameters=parameters(flow, file),
        tags=["combee", file.playbook],
    )
    return cast(RunnerDeployment, made)


def parameters(flow: Flow[Any, Any], file: RunFile) -> dict[str, Any]:
    """The file's values for those of the flow's parameters that it has; what is empty is left out, as in a form, and
    so is what the form does not ask for.
    """
    form = flow.parameters
    known = {name: getattr(file, name) for name in form.properties if hasattr(file, name)}
    values = {name: value.model_dump(mode="json", exclude_none=True) for name, value in known.items()}
    return {name: _asked(value, form.properties[name], form.definitions) for name, value in values.items()}


def _asked(value: Any, field: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    """Of a value what its field of a schema asks for."""
    table = definitions.get(field.get("$ref", "").rpartition("/")[2])
    if table is None or "properties" not in table:
        return value
    return {name: _asked(value[name], one, definitions) for name, one in table["properties"].items() if name in value}


def _schedule(file: RunFile) -> Schedule:
    return Cron(file.schedule.cron, timezone=file.source.timezone, active=bool(file.source.uris))


def register(made: Sequence[RunnerDeployment]) -> tuple[Runner, dict[str, str]]:
    """Make deployments known, those of the same name in place: what will run them, and the id of each by name.

    What a person has switched off in the UI, the deployment or its schedule, stays off.
    """
    runner = Runner(pause_on_shutdown=False)
    with get_client(sync_client=True) as client:
        for one in made:
            _leave_off(one, client)
    return runner, {one.full_name: str(runner.add_deployment(one)) for one in made}


def _leave_off(made: RunnerDeployment, client: SyncPrefectClient) -> None:
    try:
        before = client.read_deployment_by_name(made.full_name)
    except ObjectNotFound:
        return
    made.paused = before.paused
    had_work = before.parameters.get("request", {}).get("source", {}).get("uris")
    if had_work and before.schedules and not any(one.active for one in before.schedules):
        made.schedules = [one.model_copy(update={"active": False}) for one in made.schedules or ()]


def wait(runner: Runner) -> None:
    """Run what is due, each run in a process of its own, until SIGTERM or Ctrl-C.

    Then runs that are under way have half a minute to save what is in flight, and end as Cancelled; schedules stay as
    they are. Who asks a second time does not wait.
    """
    # The runner looks after SIGTERM; Ctrl-C alone would leave its runs as Crashed.
    signal.signal(signal.SIGINT, runner.handle_sigterm)
    asyncio.run(runner.start())
