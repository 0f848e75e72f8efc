"""One pass over the input: its batches in order, each building on the one before, then one published version."""

from __future__ import annotations

from prefect import flow

from combee_core.config import RunRequest
from combee_core.records import RunResult
from flows.iteration import iteration
from flows.profiling import profiling
from tasks import alarms, batches, entry, sizing
from tasks.runners import runner_for


@flow(name="epoch", flow_run_name="epoch-{request.label}", persist_result=False)
def epoch(request: RunRequest) -> RunResult:
    """Learn from traces or samples. A finished plan is a no-op; an unfinished one is gone on with.

    Raises `RunError` naming the stage and item that failed; then nothing is published.
    """
    with alarms.watched(request):
        opened = entry.open_run(request)
        result = entry.recorded(opened) if opened.done else _learned(opened)
    return entry.ended(entry.loud(result))


def _learned(opened: entry.Opened) -> RunResult:
    with entry.held(opened) as shop:
        with entry.within_budget(shop):
            if sizing.begin(shop).batch_size is None:
                profiling(opened.place, opened.results)
            one = iteration.with_options(task_runner=runner_for(shop.settings))
            for batch in batches.remaining(shop, opened.place.invocation):
                one(batch, opened.results)
        return entry.finish(shop)
