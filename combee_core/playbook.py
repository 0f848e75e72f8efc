"""The playbook: sections of bullets, immutable, with a digest of its content.

The stored form is JSON (`Playbook.model_dump`). The text form is ACE's, `[calc-00071] helpful=16 harmful=5 :: text`
under `## SECTION` headings (see `playbook_text`). Texts and headings hold no line break of any kind: breaks are
folded into ` ⏎ ` when the value is made, so no text can forge a heading or a bullet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from combee_core.base import Noun, content_hash, whole
from combee_core.errors import PlaybookError

BULLET_ID = r"[^\s\[\]\x00-\x1f\x7f-\x9f\ud800-\udfff]+"
"""What an id may hold: no space, bracket, control character or lone surrogate, so that every reader finds it."""

_CONTROLS = {code: "\ufffd" for code in (*range(0x09), *range(0x0E, 0x1C), 0x1F, *range(0x7F, 0xA0)) if code != 0x85}
_SERIAL = re.compile(r"(?<![0-9])[0-9]{1,9}$")


def fold(text: str) -> str:
    """`text` on one line, in which every reader sees the same.

    A run of line breaks of any kind becomes ` ⏎ `; a control character (an escape sequence would repaint a terminal)
    and half of a surrogate pair become U+FFFD; outer white space goes.
    """
    lines = (line.strip() for line in whole(text).translate(_CONTROLS).splitlines())
    return " ⏎ ".join(filter(None, lines))


def _named(text: str) -> str:
    if not text:
        raise ValueError("a section needs a name")
    return text


def _identified(text: str) -> str:
    if not re.fullmatch(BULLET_ID, text):
        raise ValueError("a bullet id is one word without brackets or control characters")
    return text


Line = Annotated[str, AfterValidator(fold)]
Name = Annotated[Line, AfterValidator(_named)]
BulletId = Annotated[str, AfterValidator(_identified)]


class Counted(Noun):
    """A trace whose verdict on the bullet is already in its counters."""

    trace_id: str
    tag: Literal["helpful", "harmful"]


class Change(Noun):
    """One entry of a bullet's history: the version that made it, how, from which call and traces; `before` is the
    text that was replaced."""

    version: int
    kind: Literal["ADD", "UPDATE", "MERGE", "EVIDENCE"]
    origin: str = ""
    sources: tuple[str, ...] = ()
    before: str = ""


class Bullet(Noun):
    """One entry. `created` and `updated` are playbook versions, `as_of` is the newest day that changed it; `sources`
    are the traces that taught it."""

    id: BulletId
    text: Line
    helpful: int = Field(default=0, ge=0, lt=10**18)
    harmful: int = Field(default=0, ge=0, lt=10**18)
    sources: tuple[str, ...] = ()
    created: int = 0
    updated: int = 0
    as_of: date | None = None
    origin: Literal["learned", "import"] = "learned"
    counted: tuple[Counted, ...] = ()
    history: tuple[Change, ...] = ()


class Section(Noun):
    """A heading and its bullets, in order."""

    name: Name
    bullets: tuple[Bullet, ...] = ()


class Playbook(Noun):
    """Sections in order; names may repeat, ids may not (`PlaybookError`).

    `next_id` only grows, so that no id is ever used again; it is never below what the ids in use ask for.
    """

    sections: tuple[Section, ...] = ()
    next_id: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Playbook:
        seen: set[str] = set()
        for bullet in self.bullets:
            if bullet.id in seen:
                raise PlaybookError(f"bullet id {bullet.id} stands twice in the playbook; give one another id")
            seen.add(bullet.id)
        # A frozen model may still be completed while it is made.
        self.__dict__["next_id"] = max(self.next_id, 1 + max(map(_serial, seen), default=0))
        return self

    @property
    def bullets(self) -> Iterator[Bullet]:
        """Every bullet, section by section."""
        return (bullet for section in self.sections for bullet in section.bullets)

    def find(self, bullet_id: str) -> Bullet | None:
        """The bullet of that id, or None."""
        return next((bullet for bullet in self.bullets if bullet.id == bullet_id), None)

    @property
    def digest(self) -> str:
        """Hash of what readers can tell apart: sections, ids, texts, counters, sources; no times, no versions."""
        return content_hash(
            [
                [s.name, [[b.id, b.text, b.helpful, b.harmful, sorted(b.sources)] for b in s.bullets]]
                for s in self.sections
            ]
        )


def _serial(bullet_id: str) -> int:
    found = _SERIAL.search(bullet_id)
    return int(found[0]) if found else 0
