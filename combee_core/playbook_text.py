"""The ACE text form of a playbook, written and read.

    ## FORMULAS & CALCULATIONS
    [calc-00071] helpful=16 harmful=5 :: For ROE answer in percent: 20, not 0.2.

The counter-less form `[shr-00001] text` is only read, and only where no line of the file has counters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from combee_core.errors import PlaybookError
from combee_core.playbook import BULLET_ID, Bullet, Playbook, Section

UNTITLED = "OTHERS"

_LINE_END = re.compile(r"\r\n|\r|\n")
_HEADING = re.compile(r"\s*#{1,6}\s+(?P<name>.*)")
_BULLET = rf"\s*(?:[-*+•]\s+)?\[(?P<id>{BULLET_ID})\]"
_COUNTED = re.compile(
    _BULLET + r"\s*helpful\s*=\s*(?P<helpful>-?[0-9]{1,18})\s*[,;]?\s*"
    r"harmful\s*=\s*(?P<harmful>-?[0-9]{1,18})\s*::(?P<text>.*)",
    re.IGNORECASE,
)
_PLAIN = re.compile(_BULLET + r"(?=\s|$)(?P<text>.*)")
_LIKE_COUNTERS = re.compile(r"\s*(?:helpful|harmful)\s*[=:]\s*[-+]?[0-9]", re.IGNORECASE)


def render(playbook: Playbook, *, counters: bool = True) -> str:
    """The text form, one line a bullet; `parse(render(p))` has the sections, ids, texts and counters of `p`.

    Without counters it is for readers only: a text that itself begins with counters would not be read back.
    """
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


def parse(text: str) -> Playbook:
    """Read either text form. Forgiven are a leading dash, spaces, capitals, a comma between the counters.

    Raises `PlaybookError` with the line number for a line that is neither heading, bullet nor blank, for counters
    that cannot be read or are below zero, and for an id that stands twice: nothing is dropped or left out of reach.
    """
    lines = _LINE_END.split(text.removeprefix("\ufeff"))
    counted = next((number for number, line in enumerate(lines, start=1) if _COUNTED.fullmatch(line)), 0)
    drafts: list[_Draft] = []
    first_seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if heading := _HEADING.fullmatch(line):
            drafts.append(_Draft(_name(heading["name"], number)))
            continue
        found = _bullet(line, number, counted)
        bullet_id = found["id"]
        if bullet_id in first_seen:
            raise PlaybookError(f"line {number}: id [{bullet_id}] already stands at line {first_seen[bullet_id]}")
        first_seen[bullet_id] = number
        if not drafts:
            drafts.append(_Draft(UNTITLED))
        drafts[-1].bullets.append(Bullet.model_validate({**found, "origin": "import"}))
    return Playbook(sections=tuple(Section(name=d.name, bullets=tuple(d.bullets)) for d in drafts))


def _name(name: str, number: int) -> str:
    if not name.strip():
        raise PlaybookError(f"line {number}: a heading without a name")
    return name


def _bullet(line: str, number: int, counted: int) -> dict[str, str]:
    """The parts of a bullet's line. `counted` is the first line that has counters, 0 where none has."""
    found = (_COUNTED if counted else _PLAIN).fullmatch(line)
    if not found:
        form = f"[id] helpful=0 harmful=0 :: text, as in line {counted}" if counted else "[id] text"
        raise PlaybookError(f"line {number}: neither a heading nor a bullet ({form}): {line.strip()[:80]!r}")
    if not counted and _LIKE_COUNTERS.match(found["text"]):
        form = "[id] helpful=0 harmful=0 :: text"
        raise PlaybookError(f"line {number}: counters that cannot be read ({form}): {line.strip()[:80]!r}")
    parts = found.groupdict()
    if any(parts.get(name, "0").startswith("-") for name in ("helpful", "harmful")):
        raise PlaybookError(f"line {number}: the counters of [{parts['id']}] must not be negative")
    return parts
