"""A run in its store: found or made from a request, advanced batch by batch, finished once.

runs/<key>/plan.json · batch-0001.json · state-0001.json · … · result.json
runs/<key>/owner · flow-runs/<id> · receipts/<id>.json
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import ValidationError

from combee_core.base import Noun, content_hash
from combee_core.config import RunRequest
from combee_core.errors import StoreError, UsageError
from combee_core.ports import Store
from combee_core.records import Batch, Item, Plan, RunResult, State
from combee_core.types import Sample, Trajectory, Unread

N = TypeVar("N", bound=Noun)


@dataclass(frozen=True)
class Run:
    """One run's records. Each is written create-only: a second writer reads what the first one wrote.

    A record that is there and cannot be read raises `StoreError` naming it.
    """

    store: Store
    key: str

    def path(self, name: str) -> str:
        """The key of one of its objects in the store."""
        return f"runs/{self.key}/{name}"

    def plan(self) -> Plan:
        """The plan. Raises `StoreError` where there is none."""
        found = self._read("plan.json", Plan)
        if found is None:
            raise StoreError(f"{self.store.uri} has no run {self.key}; is this the store that it was started with?")
        return found

    def batch(self, number: int) -> Batch | None:
        """The batch's record, None before it starts."""
        return self._read(_batch(number), Batch)

    def start_batch(self, batch: Batch) -> Batch:
        """Record the batch; if it was recorded before, that record stands."""
        return self._create(_batch(batch.number), batch)

    def state(self, number: int) -> State | None:
        """The state after batch `number`, None until it is done."""
        return self._read(_state(number), State)

    def save_state(self, state: State) -> State:
        """Record a finished batch."""
        return self._create(_state(state.number), state)

    def states(self) -> list[State]:
        """The states of all finished batches, in order."""
        found: list[State] = []
        while state := self.state(len(found) + 1):
            found.append(state)
        return found

    def result(self) -> RunResult | None:
        """The recorded result of a finished run."""
        return self._read("result.json", RunResult)

    def finish(self, result: RunResult) -> RunResult:
        """Record the result."""
        return self._create("result.json", result)

    def note_flow_run(self, flow_run_id: str) -> None:
        """Remember that this flow run works on this plan."""
        self.store.create(self.path(f"flow-runs/{flow_run_id}"), b"{}")
        self.store.create(f"flow-runs/{flow_run_id}", self.key.encode())

    def _read(self, name: str, kind: type[N]) -> N | None:
        blob = self.store.read(self.path(name))
        try:
            return kind.model_validate_json(blob.data) if blob else None
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            raise StoreError(
                f"{self.store.uri}/{self.path(name)} cannot be read ({first['msg']}): it is damaged or of another "
                f"release; move the folder runs/{self.key} away and run again, saved answers are not paid for twice"
            ) from error

    def _create(self, name: str, record: N) -> N:
        if self.store.create(self.path(name), record.model_dump_json().encode()):
            return record
        found = self._read(name, type(record))
        if found is None:
            raise StoreError(f"{self.store.uri}/{self.path(name)} was refused as existing and then was not there")
        return found


def _batch(number: int) -> str:
    return f"batch-{number:04d}.json"


def _state(number: int) -> str:
    return f"state-{number:04d}.json"


def run_of(store: Store, flow_run_id: str) -> Run | None:
    """The run that a flow run has worked on, if any."""
    blob = store.read(f"flow-runs/{flow_run_id}")
    return Run(store, blob.data.decode()) if blob else None


def run_key(request: RunRequest, items: Sequence[Item], generation: int, prompts: str = "") -> str:
    """Hash of playbook, source, settings: a day is known by its source and date, other input by its content.

    `prompts` stands for prompt files that replace the learner's own; their place is not part of the key.
    """
    source = request.source
    if source.day is not None:
        what: object = [sorted(source.uris), source.day.isoformat(), source.timezone]
    else:
        what = sorted(item.digest for item in items)
    reading = source.model_dump(mode="json", include={"kind", "limit", "ground_truth", "fields", "scorer"})
    how = [request.settings.identity(), prompts]
    return content_hash(request.playbook, what, reading, how, generation)[:20]


def find_or_plan(
    store: Store,
    request: RunRequest,
    items: Sequence[Item],
    unread: Sequence[Unread],
    base: int,
    prompts: str = "",
) -> Run:
    """The run of this request: the newest that exists, or a new plan on version `base`.

    A plan of nothing is followed by a new one as soon as there is something. With `request.again`, so is a run that
    is finished, or whose input is not there any more; any other is gone on with. `prompts` is as for `run_key`.
    """
    runs = [Run(store, run_key(request, items, 0, prompts))]
    while store.read(runs[-1].path("plan.json")):
        runs.append(Run(store, run_key(request, items, len(runs), prompts)))
    *planned, fresh = runs
    if planned and not _makes_way(planned[-1], request, items):
        return planned[-1]
    if store.list(fresh.path("")):
        raise StoreError(f"{store.uri}/{fresh.path('')} has records but no plan; move the whole folder away")
    plan = Plan(key=fresh.key, request=request, base_version=base, items=tuple(items), unread=tuple(unread))
    # Whoever comes second reads the first one's plan.
    store.create(fresh.path("plan.json"), plan.model_dump_json().encode())
    return fresh


def _makes_way(run: Run, request: RunRequest, items: Sequence[Item]) -> bool:
    """Whether a new plan may follow this one: a day that was empty is not closed, others only if asked for."""
    planned = run.plan().items
    if not planned and items:
        return True
    return request.again and (run.result() is not None or planned != tuple(items))


def next_batch(plan: Plan, number: int, found: Sequence[Trajectory] | Sequence[Sample]) -> Batch:
    """Batch `number` (from 1) of the plan, cut from what the source holds now.

    Raises `UsageError` naming a trace or sample that is gone or has another content than the plan says.
    """
    size = plan.request.settings.batch_size
    wanted = plan.items[(number - 1) * size : number * size]
    by_id = {(t.trace_id if isinstance(t, Trajectory) else t.id): t for t in found}
    chosen = []
    for item in wanted:
        at_hand = by_id.get(item.id)
        if at_hand is None or at_hand.digest != item.digest:
            state = "is gone from" if at_hand is None else "has changed in"
            raise UsageError(
                f"{item.id} {state} the source since run {plan.key} was planned; put it back, or use --again"
            )
        chosen.append(at_hand)
    return Batch(
        number=number,
        trajectories=tuple(t for t in chosen if isinstance(t, Trajectory)),
        samples=tuple(s for s in chosen if isinstance(s, Sample)),
    )
