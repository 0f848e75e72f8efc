"""A look at what a request would do: its input is read, no model is asked, nothing is written, no server is needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import Any

from combee_core import batch_size, measured
from combee_core.adapters.inputs import Input
from combee_core.adapters.models import build_model, prices_of
from combee_core.adapters.stores import open_store
from combee_core.adapters.tokens import is_counted
from combee_core.client import Client
from combee_core.config import RunRequest
from combee_core.cutting import batch_of
from combee_core.day_runs import Choice, DayInput, foresee
from combee_core.estimate import Basis, Load
from combee_core.experience import assumed_for
from combee_core.learners import load_learner
from combee_core.measured import Measured
from combee_core.observed import observed
from combee_core.outlook import DayWork, guessed
from combee_core.ports import LanguageModel, Learner, Store
from combee_core.prompt_sizes import PromptSizes
from combee_core.publish import base_state, refuse_mixing
from combee_core.records import Batch, Item, Sizing
from combee_core.runs import Run, planned_run
from combee_core.saving import SavedAnswers
from combee_core.sizing import first_sizing
from combee_core.versions import Version, Versions


@dataclass(frozen=True)
class Ahead:
    """The run that a request would find or plan, and what its prompts weigh.

    Raises `UsageError` and `StoreError` as that run would before its first call.
    """

    request: RunRequest

    @cached_property
    def basis(self) -> Basis:
        """What an estimate rests on: the playbook as it is now, earlier runs, prices, the measured curve."""
        request, settings, model = self.request, self.request.settings, self._model
        assumed = assumed_for(settings.model.model)
        known = self._known
        fresh = known if known and not known.stale else None
        decision = batch_size.decide(fresh.observations, fresh.settings, fresh.total) if fresh else None
        return Basis(
            settings=settings,
            experience=observed(self._store, request.playbook, settings.model.model, self._sizes, assumed),
            fixed=self._sizes.fixed,
            bullets=self._sizes.bullets(self._state),
            prices=prices_of(settings.model),
            limit=settings.model.context_tokens or model.context_tokens,
            fit=decision.fit if decision else None,
            measured_in=fresh.run if fresh else "",
            counted=is_counted(settings.model.model),
        )

    @property
    def version(self) -> int:
        """The playbook's newest version; 0 before the first."""
        return self._latest.version if self._latest else 0

    def work(self, found: Input, day: date | None = None, *, again: bool = False, attempt: str = "") -> DayWork:
        """What is still to be done for this input, which is that of `day`, if one is named.

        A day that was learned is learned anew with `again`, and in a named `attempt` (see `day_runs.choose`).
        A finished run leaves nothing; of one that was begun the batches count that have no state yet, and of the first
        of these only the reflections that the store has no answer for.
        """
        refuse_mixing(self._latest, self.request.settings.model.model)
        choice, items = self._of_day(found, day, again, attempt) if day else self._of_all(found)
        left_out = len(found.unread)
        if not items:
            return DayWork(day=day, traces=choice.traces, left_out=left_out, note=_done(choice))
        run = choice.run
        planned, done = self._sizing(run, len(items)), run.done if run else 0
        last = (run.expected if run else None) or planned.count
        batches = (_batch(found, run, items, planned, number) for number in range(done + 1, last + 1))
        state = self._state_of(run, done)
        loads = tuple(self._loads(batches, state))
        saved = loads[0].saved if loads else 0
        notes = [
            "late or changed traces" if choice.happened == "supplement" else "",
            f"goes on after {done} of {last} batches" if run else "",
            f"{saved:,} reflections are saved" if saved else "",
        ]
        return DayWork(
            day=day,
            traces=len(items),
            items=tuple(items),
            left_out=left_out,
            loads=loads,
            batching=f"batch size {planned.told}",
            note="; ".join(filter(None, notes)),
            bullets=self._sizes.bullets(state) if run and loads else None,
        )

    def _of_day(self, found: Input, day: date, again: bool, attempt: str) -> tuple[Choice, tuple[Item, ...]]:
        """The run of a day that is not finished, if it was begun, and its traces."""
        source = self.request.source.model_copy(update={"day": day})
        dated = self.request.model_copy(update={"source": source, "again": again})
        return foresee(self._store, DayInput(dated, found.items, found.unread), self._prompts, attempt)

    def _of_all(self, found: Input) -> tuple[Choice, tuple[Item, ...]]:
        """The same for input that is not a day's."""
        if not found.items:
            return Choice("no traces"), ()
        run = planned_run(self._store, self.request, found.items, self._prompts)
        result = run.result() if run else None
        if result:
            return Choice("already learned", run, result.accounting.total, result.version), ()
        items = run.plan().items if run else found.items
        return Choice("learned", run, len(items)), items

    @cached_property
    def _store(self) -> Store:
        return open_store(self.request.store)

    @cached_property
    def _model(self) -> LanguageModel:
        return build_model(self.request.settings.model)

    @cached_property
    def _learner(self) -> Learner[Any]:
        settings = self.request.settings
        return load_learner(settings.learner, settings.prompts)

    @cached_property
    def _sizes(self) -> PromptSizes:
        return PromptSizes(self._learner, self._model.count)

    @cached_property
    def _versions(self) -> Versions:
        return Versions(self._store, self.request.playbook)

    @cached_property
    def _latest(self) -> Version | None:
        return self._versions.latest()

    @cached_property
    def _state(self) -> Any:
        return self._learner.load(self._latest.state) if self._latest else self._learner.empty()

    @property
    def _prompts(self) -> str:
        return self._learner.fingerprint if self.request.settings.prompts else ""

    @cached_property
    def _known(self) -> Measured | None:
        """What was measured on this source; without one, what was measured last with this model and these prompts."""
        subject = measured.subject_of(self.request, self._model.name, self._learner.fingerprint)
        if self.request.source.uris:
            return measured.known(self._store, subject)
        every = (one for one in measured.all_known(self._store) if one.subject.is_like(subject))
        return max(every, key=lambda one: one.when, default=None)

    def _state_of(self, run: Run | None, done: int) -> Any:
        """What the first batch that is not done starts from."""
        if run is None:
            return self._state
        before = run.state(done) if done else None
        return self._learner.load(before.state) if before else base_state(run.plan(), self._versions, self._learner)

    def _sizing(self, run: Run | None, total: int) -> Sizing:
        settings = self.request.settings
        begun = run.sizing() if run else None
        return guessed(begun or first_sizing(settings, total, self._known)[0], settings.sizes.fallback)

    def _loads(self, batches: Iterable[Batch], state: Any) -> Iterator[Load]:
        """What the batches weigh; the first one starts from `state`, so that its saved reflections can be told."""
        for at, batch in enumerate(batches):
            traces, samples = (tuple(map(self._sizes.evidence, items)) for items in (batch.trajectories, batch.samples))
            load = Load(traces=traces, samples=samples)
            yield load if at else load.spared(self._saved(batch, state))

    def _saved(self, batch: Batch, state: Any) -> int:
        """How many reflections of a batch would be found in the store."""
        settings, learner = self.request.settings, self._learner
        answers = SavedAnswers(self._store)
        client = Client(self._model, answers, settings.model, learner.fingerprint, settings.seed)
        keys = (client.key(learner.reflect(state, one).prompt) for one in batch.trajectories)
        return sum(answers.accepted(key, _any) is not None for key in keys)


def _batch(found: Input, run: Run | None, items: Sequence[Item], sizing: Sizing, number: int) -> Batch:
    """A batch as it was recorded, else as it would be cut from the input."""
    recorded = run.batch(number) if run else None
    return recorded or batch_of(items, number, sizing, found.pick)


def _done(choice: Choice) -> str:
    return f"{choice.happened} (version {choice.version})" if choice.version else choice.happened


def _any(answer: Any) -> bool:
    return True
