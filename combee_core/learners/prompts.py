"""Prompt files: markdown in which only `<<name>>` is special, so that any brace, dollar or JSON is literal."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from combee_core.errors import UsageError

_EXAMPLE = re.compile(r'": "([^"]+)"')
_PLACEHOLDER = re.compile(r"<<([A-Za-z][\w-]*)>>")
_ATTEMPT = re.compile(r"<<[ \t]*([A-Za-z][\w-]*)[ \t]*>{0,2}")


@dataclass(frozen=True)
class PromptFile:
    """A template that has been checked against the names it may use."""

    path: Path
    text: str

    @property
    def examples(self) -> frozenset[str]:
        """The texts that the example of an answer holds; small models give them back as if they were theirs."""
        return frozenset(_EXAMPLE.findall(self.text))

    def fill(self, values: Mapping[str, str]) -> str:
        """The text with each placeholder replaced once; what is put in is never read as a template."""
        return _PLACEHOLDER.sub(lambda found: values[found[1]], self.text)


def check_folder(folder: Path, roles: Collection[str]) -> None:
    """Raise `UsageError` if a folder of own prompts is not there, or a file in it would never be read."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: there is no such folder of prompts")
    files = ", ".join(f"{role}.md" for role in sorted(roles))
    unknown = sorted(path for path in folder.glob("*.md") if path.stem not in roles and path.stem != "README")
    if unknown:
        raise UsageError(f"{unknown[0]}: no prompt has this name; a folder of prompts may hold {files}")
    if not any((folder / f"{role}.md").is_file() for role in roles):
        raise UsageError(f"{folder}: holds no prompt; it may hold {files}")


def load_prompt(name: str, allowed: frozenset[str], home: Path, override: Path | None) -> PromptFile:
    """Read `name`.md from `override` if it is there, else from `home`.

    Raises `UsageError` with file and line for a file that is not UTF-8, for a placeholder that does not exist or is
    not closed, and for a required one that is missing.
    """
    path = home / f"{name}.md"
    if override is not None and (override / path.name).is_file():
        path = override / path.name
    text = _read(path)
    for found in _ATTEMPT.finditer(text):
        if problem := _mistake(found, allowed):
            line = text.count("\n", 0, found.start()) + 1
            raise UsageError(f"{path}:{line}: {problem}")
    missing = sorted(allowed - set(_PLACEHOLDER.findall(text)))
    if missing:
        raise UsageError(f"{path}:1: <<{missing[0]}>> is missing; without it the model would not see the {missing[0]}")
    return PromptFile(path, text)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes().count(b"\n", 0, error.start) + 1
        raise UsageError(f"{path}:{line}: not UTF-8 ({error.reason})") from error


def _mistake(found: re.Match[str], allowed: frozenset[str]) -> str:
    written, name = found[0], found[1]
    if _PLACEHOLDER.fullmatch(written):
        known = ", ".join(f"<<{each}>>" for each in sorted(allowed))
        return "" if name in allowed else f"no placeholder {written}; this file may use {known}"
    return f"{written.strip()} is not filled in; write <<{name.lower()}>>" if name.lower() in allowed else ""
