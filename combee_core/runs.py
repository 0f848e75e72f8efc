"""A run in its store: found or made from a request, advanced batch by batch, finished once.

runs/<key>/plan.json · settings.json · sizing.json · again.json · decision.json · cut.json · result.json
runs/<key>/stop-<invocation>
runs/<key>/batch-0001.json · state-0001.json · delay-0001.json · …
runs/<key>/owner · flow-runs/<id> · receipts/….jsonl · spent/….json
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import count
from typing import Literal, TypeVar

from pydantic import ValidationError

from combee_core.base import Noun, content_hash
from combee_core.config import RunRequest, RunSettings, Source
from combee_core.errors import StoreError
from combee_core.ports import Store
from combee_core.records import Again, Batch, Cut, Item, Plan, RunResult, Sizing, State
from combee_core.sizes import Decision, Observation
from combee_core.states import States
from combee_core.types import Unread

N = TypeVar("N", bound=Noun)

Part = date | Literal["backlog"] | None
"""Which of a flow run's runs: that of a day, that of the backlog; None where it has only one."""


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

    def settings(self) -> RunSettings:
        """The plan's settings, with place and patience as the present invocation has them."""
        adopted = self._read("settings.json", RunSettings)
        planned = self.plan().request.settings
        return planned.placed_as(adopted) if adopted else planned

    def adopt(self, settings: RunSettings) -> None:
        """Take place and patience from now on from `settings`; what is learned stays as it was planned."""
        data = settings.model_dump_json().encode()
        while True:
            blob = self.store.read(self.path("settings.json"))
            if self.store.replace(self.path("settings.json"), data, blob.tag if blob else None):
                return

    def sizing(self) -> Sizing | None:
        """The batches that the plan is cut into, with the batch size once it is decided; None before it begins."""
        begun = self._read("sizing.json", Sizing)
        if begun is None or begun.batch_size is not None:
            return begun
        again, decided = self._read("again.json", Again), self.decision()
        changes: dict[str, object] = {"profile": (*begun.profile, *again.sizes)} if again else {}
        if decided:
            changes |= {"batch_size": decided.batch_size, "reason": decided.reason}
        return begun.model_copy(update=changes)

    def begin_sizing(self, sizing: Sizing) -> None:
        """Record how the batch size is found; if it was recorded before, that record stands."""
        self._create("sizing.json", sizing)

    def measure_again(self, sizes: Sequence[int]) -> None:
        """Record that these sizes follow the profile; if some were recorded before, those stand."""
        self._create("again.json", Again(sizes=tuple(sizes)))

    def decision(self) -> Decision | None:
        """The batch-size decision, None where none was made or needed."""
        return self._read("decision.json", Decision)

    def decide(self, decision: Decision) -> Decision:
        """Record the decision; the first one stands."""
        return self._create("decision.json", decision)

    def observe(self, number: int, observation: Observation) -> None:
        """Record how long batch `number` took."""
        self._create(f"delay-{number:04d}.json", observation)

    def observations(self, numbers: Sequence[int]) -> list[Observation | None]:
        """How long these batches took; None where nothing was recorded."""
        return [self._read(f"delay-{number:04d}.json", Observation) for number in numbers]

    def batch(self, number: int) -> Batch | None:
        """The batch's record, None before it starts."""
        return self._read(batch_name(number), Batch)

    def start_batch(self, batch: Batch) -> Batch:
        """Record the batch; if it was recorded before, that record stands."""
        return self._create(batch_name(batch.number), batch)

    def state(self, number: int) -> State | None:
        """The state after batch `number`, None until it is done."""
        return self._read(_state(number), State)

    def save_state(self, state: State) -> State:
        """Record a finished batch."""
        return self._create(_state(state.number), state)

    @property
    def done(self) -> int:
        """Number of finished batches, up to the first that is not."""
        there = set(self.store.list(self.path("state-")))
        return next(number for number in count() if self.path(_state(number + 1)) not in there)

    @property
    def expected(self) -> int | None:
        """How many batches it does before it publishes: those up to a cut, else all; None while that is not known."""
        if cut := self.cut():
            return cut.batches
        sizing = self.sizing()
        return sizing.count if sizing and sizing.batch_size is not None else None

    @property
    def waits_for_publishing(self) -> bool:
        """True once all of its batches are done."""
        return self.expected is not None and self.done >= self.expected

    def states(self) -> States:
        """The states of all finished batches, in order, read one at a time."""
        return States(self.state, self.done)

    def cut(self) -> Cut | None:
        """Where and why a run that publishes what it has was ended by its budget; None for any other."""
        return self._read("cut.json", Cut)

    def broken_off(self) -> Cut | None:
        """The cut; that of a batch of which a part was done came with its state, and holds from now on."""
        cut = self.cut()
        last = None if cut or not (done := self.done) else self.state(done)
        return self.end_early(last.cut) if last and last.cut else cut

    def end_early(self, cut: Cut) -> Cut:
        """Record that no batch follows; the first record stands."""
        return self._create("cut.json", cut)

    def result(self) -> RunResult | None:
        """The recorded result of a finished run."""
        return self._read("result.json", RunResult)

    def finish(self, result: RunResult) -> RunResult:
        """Record the result."""
        return self._create("result.json", result)

    def note_flow_run(self, flow_run_id: str, part: Part = None) -> None:
        """Remember that this flow run works on this plan, as one of its parts where it has several."""
        self.store.create(self.path(f"flow-runs/{flow_run_id}"), b"{}")
        self.store.create(_worked_on(flow_run_id, part), self.key.encode())

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


def batch_name(number: int) -> str:
    """What the record of a batch is called in its run's folder."""
    return f"batch-{number:04d}.json"


def _state(number: int) -> str:
    return f"state-{number:04d}.json"


def _worked_on(flow_run_id: str, part: Part) -> str:
    return f"flow-runs/{flow_run_id}.{part}" if part else f"flow-runs/{flow_run_id}"


def part_of(source: Source) -> Part:
    """Which part of a flow run's work this source is."""
    return "backlog" if source.kind == "backlog" else source.day


def run_of(store: Store, flow_run_id: str, part: Part = None) -> Run | None:
    """The run that a flow run has worked on, if any: that of one of its parts, or the latest of all."""
    # Days sort as they are learned, and the backlog after them.
    keys = [_worked_on(flow_run_id, part)] if part else store.list(_worked_on(flow_run_id, None))
    blob = store.read(keys[-1]) if keys else None
    return Run(store, blob.data.decode()) if blob else None


def runs_of(store: Store, flow_run_id: str) -> list[Run]:
    """All runs that a flow run has worked on, in that order."""
    blobs = (store.read(key) for key in store.list(_worked_on(flow_run_id, None)))
    return [Run(store, blob.data.decode()) for blob in blobs if blob]


def run_key(request: RunRequest, items: Sequence[Item], generation: int | str, prompts: str = "") -> str:
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
    planned, fresh = generations(store, request, items, prompts)
    if planned and not _makes_way(planned, request, items):
        return planned
    plan = Plan(key=fresh.key, request=request, base_version=base, items=tuple(items), unread=tuple(unread))
    return begin(store, plan)


def planned_run(store: Store, request: RunRequest, items: Sequence[Item], prompts: str = "") -> Run | None:
    """The run that `find_or_plan` would go on with; None where it would plan a new one. Writes nothing."""
    planned, _ = generations(store, request, items, prompts)
    return None if planned is None or _makes_way(planned, request, items) else planned


def generations(
    store: Store,
    request: RunRequest,
    items: Sequence[Item],
    prompts: str = "",
    attempt: str = "",
    known: Container[str] = (),
) -> tuple[Run | None, Run]:
    """The newest run of this request, if there is any, and the one that would follow it, which has no plan yet.

    Runs of a named `attempt` are a chain of their own. The keys of `known` runs are not given again, even where the
    records of such a run were cleared away.
    """
    newest = None
    for number in count():
        run = Run(store, run_key(request, items, f"{attempt}.{number}" if attempt else number, prompts))
        if store.read(run.path("plan.json")) is not None:
            newest = run
        elif run.key not in known:
            break
    return newest, run


def begin(store: Store, plan: Plan) -> Run:
    """Write the plan; its run. Whoever comes second works on the first one's plan."""
    run = Run(store, plan.key)
    if store.read(run.path("plan.json")) is None and store.list(run.path("")):
        raise StoreError(f"{store.uri}/{run.path('')} has records but no plan; move the whole folder away")
    store.create(run.path("plan.json"), plan.model_dump_json().encode())
    return run


def _makes_way(run: Run, request: RunRequest, items: Sequence[Item]) -> bool:
    """Whether a new plan may follow this one: a day that was empty is not closed, others only if asked for."""
    planned = run.plan().items
    if not planned and items:
        return True
    return request.again and (run.result() is not None or planned != tuple(items))
