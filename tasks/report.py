"""Artifacts: what people look at in the UI after a night."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from prefect.artifacts import (
    create_markdown_artifact,
    create_progress_artifact,
    create_table_artifact,
    update_progress_artifact,
)

from combee_core import summary
from combee_core.adapters.workshop import Workshop
from combee_core.diff import diff
from combee_core.playbook import Playbook
from combee_core.records import RunResult, State


def finished(shop: Workshop, result: RunResult, states: Sequence[State]) -> None:
    """The summary of what changed and why, the accounting, the cost."""
    before, after = shop.state_before(1), shop.versions.latest()
    state = shop.learner.load(after.state) if after else shop.learner.empty()
    if isinstance(before, Playbook) and isinstance(state, Playbook):
        text = summary.what_changed(result, diff(before, state), states)
        create_markdown_artifact(markdown=text, key="playbook-changes", description="What was learned, and from what")
    accounting(result)


def accounting(result: RunResult) -> None:
    """What became of every trace, and what was spent."""
    create_table_artifact(table=summary.accounting(result), key="accounting", description="Every trace, once")
    rest = summary.unlearned(result)
    if rest:
        create_table_artifact(table=rest, key="not-learned", description="Traces that taught nothing, and why")
    create_markdown_artifact(markdown=summary.spent(result), key="cost", description="Calls, tokens, money")


class Progress:
    """The share of batches that are done, as a progress artifact of the flow run."""

    def __init__(self, batches: int) -> None:
        self._batches = batches
        self._artifact: UUID | None = None

    def show(self, done: int) -> None:
        """Say that so many batches are done; nothing is shown for a run without batches."""
        if not self._batches:
            return
        percent, text = 100 * done / self._batches, f"{done} of {self._batches} batches"
        if self._artifact is None:
            self._artifact = _created(create_progress_artifact(percent, key="progress", description=text))
        else:
            update_progress_artifact(self._artifact, percent, description=text)


def _created(artifact: object) -> UUID:
    return UUID(str(artifact))
