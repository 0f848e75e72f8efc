"""The batch-size controller's measurements: one real iteration for each candidate, kept as learning."""

from __future__ import annotations

from prefect import flow

from combee_core.adapters.workshop import Place, open_workshop
from flows.iteration import iteration
from tasks import batches, sizing
from tasks.runners import runner_for


@flow(name="profiling", flow_run_name="profiling-{place.run}", persist_result=False)
def profiling(place: Place, results: str) -> int:
    """Learn from a batch of each candidate size, fit the delays, record the decision; the chosen batch size.

    Raises `RunError` as an iteration does. A rerun goes on with the candidates that are still to be measured; one whose
    delay an interruption cost is measured again on the traces that come next, where the fit lacks it.
    """
    shop = open_workshop(place)
    one = iteration.with_options(task_runner=runner_for(shop.settings))
    for batch in batches.remaining(shop, place.invocation):
        one(batch, results)
    sizing.measure_again(shop)
    for batch in batches.remaining(shop, place.invocation):
        one(batch, results)
    return sizing.decide(shop).batch_size
