"""The ACE learner: builds the four prompts and parses their answers. Pure: no call, no I/O after `load_prompts`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from combee_core import playbook_text
from combee_core.base import content_hash
from combee_core.calls import Message, Prompt
from combee_core.learners.ace import layout, merging, parsing, schemas
from combee_core.learners.ace.apply import apply
from combee_core.learners.prompts import PromptFile, check_folder, load_prompt
from combee_core.playbook import Playbook, Section
from combee_core.ports import Applied, Question, Solution
from combee_core.types import Delta, Group, Operation, Reflection, Sample, Trajectory, Update

PARSING_VERSION = 1
"""Part of the fingerprint; raise it when an old answer would be parsed differently."""

_SHELF = 64
"""Texts that are kept of one playbook: as many as there are roles and, mostly, policies."""

SECTIONS = (
    "STRATEGIES & INSIGHTS",
    "FORMULAS & CALCULATIONS",
    "CODE SNIPPETS & TEMPLATES",
    "COMMON MISTAKES TO AVOID",
    "PROBLEM-SOLVING HEURISTICS",
    "CONTEXT CLUES & INDICATORS",
    "OTHERS",
)

_PLACEHOLDERS = {
    "generator": frozenset({"playbook"}),
    "reflector": frozenset({"playbook", "policy"}),
    "reflector_no_truth": frozenset({"playbook", "policy"}),
    "curator": frozenset({"playbook"}),
    "merger": frozenset({"playbook"}),
}


def load_prompts(override: Path | None = None) -> dict[str, PromptFile]:
    """The prompt files by role, checked. Raises `UsageError` naming file and line."""
    if override is not None:
        check_folder(override, _PLACEHOLDERS)
    home = Path(__file__).parent
    return {role: load_prompt(role, allowed, home, override) for role, allowed in _PLACEHOLDERS.items()}


class _Shelf:
    """What was made of the playbook that was asked about last, each text once: all prompts of a batch share it."""

    def __init__(self) -> None:
        self._held: tuple[Playbook | None, dict[tuple[str, ...], str]] = (None, {})

    def text(self, state: Playbook, name: tuple[str, ...], make: Callable[[], str]) -> str:
        """The text of that name, made now if it is not there. Threads may ask about different playbooks at once."""
        of, texts = self._held
        if of is not state or len(texts) >= _SHELF:
            texts = {}
            self._held = state, texts
        if name not in texts:
            texts[name] = make()
        return texts[name]


@dataclass(frozen=True)
class AceLearner:
    """Implements `ports.Learner` with a `Playbook` as its state (Zhang et al., ACE; Combee, section 3).

    Every prompt begins with the playbook, the same to the byte in all stages of a batch, so that a provider which
    caches prefixes reads it once; what differs from trace to trace comes last.
    """

    prompts: Mapping[str, PromptFile]
    name: str = "ace"
    _shelf: _Shelf = field(default_factory=_Shelf, repr=False, compare=False)

    @property
    def fingerprint(self) -> str:
        """Hash of the prompt texts, the answer schemas and the parsing version."""
        texts = {role: prompt.text for role, prompt in self.prompts.items()}
        answers = [schemas.GENERATOR, schemas.REFLECTOR, schemas.CURATOR, schemas.MERGER]
        return content_hash(PARSING_VERSION, texts, answers)[:16]

    def empty(self) -> Playbook:
        """A playbook with ACE's seven headings and no bullet."""
        return Playbook(sections=tuple(Section(name=name) for name in SECTIONS))

    def dump(self, state: Playbook) -> dict[str, Any]:
        """JSON-able data."""
        return state.model_dump(mode="json")

    def load(self, data: Mapping[str, Any]) -> Playbook:
        """The inverse of `dump`."""
        return Playbook.model_validate(data)

    def digest(self, state: Playbook) -> str:
        """The playbook's content digest."""
        return state.digest

    def context(self, state: Playbook) -> str:
        """The text form, with counters."""
        return self._shelf.text(state, ("playbook",), lambda: playbook_text.render(state))

    def statements(self, state: Playbook) -> list[str]:
        """The bullets' texts."""
        return [bullet.text for bullet in state.bullets]

    def solve(self, state: Playbook, sample: Sample) -> Question[Solution]:
        """The generator's question."""
        prompt = self._prompt("generator", state, "rollout", sample.id, layout.problem(sample), schemas.GENERATOR)
        return Question(prompt, parsing.solution)

    def reflect(self, state: Playbook, trajectory: Trajectory) -> Question[Reflection]:
        """The reflector's question; without an expected result it is a different prompt (ACE, no-ground-truth mode)."""
        role = "reflector" if trajectory.outcome.source in ("ground_truth", "logged") else "reflector_no_truth"
        prompt = self._prompt(
            role, state, "reflect", trajectory.trace_id, layout.run(trajectory), schemas.REFLECTOR, trajectory.policy
        )
        echoes = self.prompts[role].examples
        return Question(prompt, lambda data: parsing.reflection(data, trajectory, echoes))

    def curate(self, state: Playbook, group: Group) -> Question[Delta]:
        """The curator's question about one group."""
        prompt = self._prompt("curator", state, "curate", group.name, layout.group(group), schemas.CURATOR)
        echoes = self.prompts["curator"].examples
        return Question(prompt, lambda data: parsing.curated(data, group, state, echoes))

    def merge(self, state: Playbook, operations: Sequence[Operation]) -> Question[Delta]:
        """The merger's question about the operations of all groups."""
        prompt = self._prompt("merger", state, "merge", "merge", layout.proposals(operations), schemas.MERGER)
        return Question(prompt, lambda data: merging.merged(data, operations, state))

    def apply(self, state: Playbook, update: Update, version: int) -> Applied[Playbook]:
        """The playbook after the update; ids are given here, in order."""
        return apply(state, update, version)

    def _prompt(
        self, role: str, state: Playbook, stage: str, item: str, last: str, schema: dict[str, Any], policy: str = ""
    ) -> Prompt:
        def filled() -> str:
            return self.prompts[role].fill({"playbook": self.context(state), "policy": layout.quoted(policy)})

        system = self._shelf.text(state, (role, policy), filled)
        messages = Message(role="system", content=system), Message(role="user", content=last)
        return Prompt(stage=stage, item=item, messages=messages, answer_schema=schema)
