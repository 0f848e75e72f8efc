"""The ACE text form of a playbook, written and read.

    ## FORMULAS & CALCULATIONS
    [calc-00071] helpful=16 harmful=5 :: For ROE answer in percent: 20, not 0.2.

The counter-less form `[shr-00001] text` is only read, and only where no line of the file has counters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

from combee_core.errors import PlaybookError
from combee_core.playbook import Bullet, Playbook, Section

UNTITLED = "OTHERS"

_HEADING = re.compile(r"^#{1,6} +(?P<name>.*\S)\s*$")
_COUNTED = re.compile(
    r"^(?:[-*] +)?\[(?P<id>[^\s\[\]]+)\]\s*helpful\s*=\s*(?P<helpful>-?\d+)\s*,?\s*"
    r"harmful\s*=\s*(?P<harmful>-?\d+)\s*::(?: |$)(?P<text>.*)$",
    re.IGNORECASE,
)
_PLAIN = re.compile(r"^(?:[-*] +)?\[(?P<id>[^\s\[\]]+)\] ?(?P<text>.*)$")
_NUMBER = re.compile(r"(\d+)$")


def render(playbook: Playbook, *, counters: bool = True) -> str:
    """The text form, one line a bullet; `parse(render(p))` has the sections, ids, texts and counters of `p`."""
    blocks = []
    for section in playbook.sections:
        lines = [f"## {section.name}", *(render_bullet(b, counters=counters) for b in section.bullets)]
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) + ("\n" if blocks else "")


def render_bullet(bullet: Bullet, *, counters: bool = True) -> str:
    """One bullet as a line, without its line break."""
    tally = f" helpful={bullet.helpful} harmful={bullet.harmful} ::" if counters else ""
    return f"[{bullet.id}]{tally} {bullet.text}"


@dataclass
class _Draft:
    name: str
    bullets: list[Bullet] = field(default_factory=list)


def parse(text: str, *, origin: Literal["learned", "import"] = "import", version: int = 0) -> Playbook:
    """Read either text form.

    Raises `PlaybookError` with the line number for a line that is neither heading, bullet nor blank, for a
    counter below zero, and for an id that stands twice: nothing is dropped or left out of reach.
    """
    lines = text.removeprefix("\ufeff").split("\n")
    pattern = _COUNTED if any(_COUNTED.match(line.rstrip("\r")) for line in lines) else _PLAIN
    drafts: list[_Draft] = []
    first_seen: dict[str, int] = {}
    for number, raw in enumerate(lines, start=1):
        line = raw.rstrip("\r")
        if not line.strip():
            continue
        if heading := _HEADING.match(line):
            drafts.append(_Draft(heading["name"]))
            continue
        bullet = _bullet(pattern, line, number, origin, version)
        _refuse_twin(first_seen, bullet.id, number)
        if not drafts:
            drafts.append(_Draft(UNTITLED))
        drafts[-1].bullets.append(bullet)
    sections = tuple(Section(name=d.name, bullets=tuple(d.bullets)) for d in drafts)
    return Playbook(sections=sections, next_id=1 + max(map(_serial, first_seen), default=0))


def _bullet(
    pattern: re.Pattern[str], line: str, number: int, origin: Literal["learned", "import"], version: int
) -> Bullet:
    found = pattern.match(line)
    if not found:
        form = "[id] helpful=0 harmful=0 :: text" if pattern is _COUNTED else "[id] text"
        raise PlaybookError(f"line {number}: neither a heading nor a bullet ({form}): {line[:80]!r}")
    counters = found.groupdict()
    helpful, harmful = int(counters.get("helpful") or 0), int(counters.get("harmful") or 0)
    if helpful < 0 or harmful < 0:
        raise PlaybookError(f"line {number}: the counters of [{found['id']}] must not be negative")
    return Bullet(
        id=found["id"],
        text=found["text"],
        helpful=helpful,
        harmful=harmful,
        created=version,
        updated=version,
        origin=origin,
    )


def _refuse_twin(first_seen: dict[str, int], bullet_id: str, number: int) -> None:
    if bullet_id in first_seen:
        raise PlaybookError(f"line {number}: id [{bullet_id}] already stands at line {first_seen[bullet_id]}")
    first_seen[bullet_id] = number


def _serial(bullet_id: str) -> int:
    found = _NUMBER.search(bullet_id)
    return int(found[1]) if found else 0
