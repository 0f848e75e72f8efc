"""What prompts weigh before they are asked: a learner's own ones, counted by the model's port."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from combee_core.calls import Prompt
from combee_core.ports import Learner
from combee_core.types import Group, Sample, Trajectory

Counter = Callable[[str], int]
"""A text's tokens, such as a model port's `count`."""

_NO_TRACE = Trajectory(trace_id="", task="")
_NO_SAMPLE = Sample(id="", context="")
_NO_GROUP = Group(number=1, of=1, entries=())


class PromptSizes:
    """Tokens of a learner's prompts, which consist of a fixed part, what the playbook's bullets add, and the evidence.

    `fixed` is the first by stage. The first message of a prompt, which many share, is counted once.
    """

    def __init__(self, learner: Learner[Any], count: Counter) -> None:
        self.learner, self._count = learner, count
        self._count_shared = lru_cache(maxsize=256)(count)
        self._empty = empty = learner.empty()
        prompts = {
            "rollout": learner.solve(empty, _NO_SAMPLE).prompt,
            "reflect": learner.reflect(empty, _NO_TRACE).prompt,
            "curate": learner.curate(empty, _NO_GROUP).prompt,
            "merge": learner.merge(empty, ()).prompt,
        }
        self.fixed = {stage: self.of(prompt) for stage, prompt in prompts.items()}

    def of(self, prompt: Prompt) -> int:
        """Tokens of a whole prompt, message by message."""
        *shared, last = prompt.messages
        return sum(self._count_shared(message.content) for message in shared) + self._count(last.content)

    def bullets(self, state: Any) -> int:
        """What a state adds to each prompt."""
        return max(0, self.of(self.learner.curate(state, _NO_GROUP).prompt) - self.fixed["curate"])

    def evidence(self, item: Trajectory | Sample) -> int:
        """What a trace (with its agent's instructions) adds to a reflector's prompt, or a sample to a generator's."""
        if isinstance(item, Sample):
            return max(0, self.of(self.learner.solve(self._empty, item).prompt) - self.fixed["rollout"])
        return max(0, self.of(self.learner.reflect(self._empty, item).prompt) - self.fixed["reflect"])
