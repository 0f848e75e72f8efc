"""ACE: a playbook of bullets, kept by a generator, a reflector, a curator and a merger."""

from __future__ import annotations

from pathlib import Path

from combee_core.learners.ace.learner import AceLearner, load_prompts


def build(prompts: Path | None = None) -> AceLearner:
    """The learner with its own prompt files, or those of `prompts` where they exist."""
    return AceLearner(load_prompts(prompts))
