"""One batch, as in figure 3 of the paper: map rollout and reflect, shuffle, map curate, merge."""

from __future__ import annotations

from prefect import flow

from combee_core.adapters.workshop import Place
from tasks import mapped


@flow(name="iteration", flow_run_name="iteration-{place.number}", persist_result=False)
def iteration(place: Place, results: str) -> str:
    """Learn from batch `place.number` of a run and return the digest of the state after it.

    `results` is the storage block for task results. Raises `RunError` naming the item that failed.
    """
    rolled = mapped.rollout(place, results)
    reflected = mapped.reflect(place, results, rolled)
    groups = mapped.shuffle(place, reflected)
    harvest = mapped.curate(place, results, groups)
    return mapped.merge(place, results, rolled, reflected, groups, harvest)
