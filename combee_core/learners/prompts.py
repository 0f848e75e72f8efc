"""Prompt files: markdown in which only `<<name>>` is special, so that any brace, dollar or JSON is literal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from combee_core.errors import UsageError

_PLACEHOLDER = re.compile(r"<<\s*([a-z_]+)\s*>>")


@dataclass(frozen=True)
class PromptFile:
    """A template that has been checked against the names it may use."""

    path: Path
    text: str

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with each placeholder replaced once; what is put in is never read as a template."""
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self.text)


def load_prompt(name: str, allowed: frozenset[str], home: Path, override: Path | None) -> PromptFile:
    """Read `name`.md from `override` if it is there, else from `home`.

    Raises `UsageError` with file and line for a placeholder that does not exist or a required one that is missing.
    """
    path = home / f"{name}.md"
    if override is not None and (override / path.name).exists():
        path = override / path.name
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(), start=1):
        for found in _PLACEHOLDER.findall(line):
            if found not in allowed:
                known = ", ".join(f"<<{a}>>" for a in sorted(allowed))
                raise UsageError(f"{path}:{number}: no placeholder <<{found}>>; this file may use {known}")
    missing = sorted(allowed - set(_PLACEHOLDER.findall(text)))
    if missing:
        raise UsageError(f"{path}: the placeholder <<{missing[0]}>> is missing; without it the model would not see it")
    return PromptFile(path, text)
