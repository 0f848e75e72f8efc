"""Learners: each owns a state and its prompts; `load_learner` finds one by name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from combee_core.errors import UsageError
from combee_core.ports import Learner


def load_learner(name: str = "ace", prompts: str | None = None) -> Learner[Any]:
    """The learner of that name; `prompts` is a folder whose `.md` files replace its own.

    Raises `UsageError` for an unknown name and for a prompt file with a wrong placeholder.
    """
    known = sorted(module.name for module in iter_modules(__path__) if module.ispkg)
    if name not in known:
        raise UsageError(f"no learner is called {name!r}; there are: {', '.join(known)}")
    learner: Learner[Any] = import_module(f"{__name__}.{name}").build(Path(prompts) if prompts else None)
    return learner
