"""What a prompt asks, read from its text alone: stage, last message, and the playbook it holds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from combee_core.calls import Message
from combee_core.simulation.platitudes import is_platitude
from combee_core.simulation.specifics import Specific, stated_in

_STAGE = re.compile(r"\s*stage: (?P<stage>\w+)(?:, group (?P<group>\d+) of \d+)?")
_BULLET = re.compile(r"\[(?P<id>[^\s\[\]]+)\](?: helpful=\d+ harmful=\d+ ::)? (?P<text>.*)")
_BEGIN = "# Playbook"


@dataclass(frozen=True)
class Line:
    """A bullet as the prompt shows it."""

    id: str
    text: str

    @property
    def specifics(self) -> tuple[Specific, ...]:
        """The house rules that it states."""
        return tuple(stated.specific for stated in stated_in(self.text))


@dataclass(frozen=True)
class Book:
    """The playbook of a prompt: its headings and its bullets, in order."""

    headings: tuple[str, ...]
    lines: tuple[Line, ...]

    @cached_property
    def by_id(self) -> Mapping[str, Line]:
        """Bullets by id."""
        return {line.id: line for line in self.lines}

    @cached_property
    def by_topic(self) -> Mapping[str, tuple[Line, Specific]]:
        """For each topic the first bullet that states a rule on it."""
        pairs = [(specific, line) for line in self.lines for specific in line.specifics]
        return {specific.topic: (line, specific) for specific, line in reversed(pairs)}

    @cached_property
    def specifics(self) -> frozenset[Specific]:
        """Every house rule in it."""
        return frozenset(specific for line in self.lines for specific in line.specifics)

    @cached_property
    def texts(self) -> frozenset[str]:
        """The plain form of every bullet."""
        return frozenset(plain(line.text) for line in self.lines)

    @cached_property
    def platitudes(self) -> tuple[Line, ...]:
        """Bullets that say something general and no specific."""
        return tuple(line for line in self.lines if is_platitude(line.text) and not line.specifics)


@dataclass(frozen=True)
class Asked:
    """One call as the model sees it. `group` is the number in a curator's stage line."""

    stage: str
    group: int | None
    system: str
    last: str
    text: str

    @property
    def book(self) -> Book:
        """The playbook under `# Playbook` in the system message."""
        return _book(self.system)


def asked(messages: Sequence[Message]) -> Asked:
    """Read a conversation; without a stage line in its last message (or its first) the stage is empty."""
    contents = [message.content for message in messages] or [""]
    found = _STAGE.match(contents[-1]) or _STAGE.match(contents[0])
    group = found["group"] if found else None
    system = next((message.content for message in messages if message.role == "system"), "")
    return Asked(
        stage=found["stage"] if found else "",
        group=int(group) if group else None,
        system=system,
        last=contents[-1],
        text="\n\n".join(contents),
    )


def plain(text: str) -> str:
    """Words in lower case, nothing else: two texts with the same words in the same order are the same."""
    return " ".join(re.findall(r"\w+", text.lower())) or text.strip()


@lru_cache(maxsize=64)
def _book(system: str) -> Book:
    lines = system.split("\n")
    if _BEGIN in lines:
        lines = lines[lines.index(_BEGIN) + 1 :]
        lines = lines[: next((n for n, line in enumerate(lines) if line.startswith("# ")), len(lines))]
    bullets = filter(None, map(_BULLET.fullmatch, lines))
    headings = tuple(line[3:].strip() for line in lines if line.startswith("## "))
    return Book(headings, tuple(Line(found["id"], found["text"]) for found in bullets))
