"""The playbook: sections of bullets, immutable, with a digest of its content.

The stored form is JSON (`Playbook.model_dump`). The text form is ACE's, `[calc-00071] helpful=16 harmful=5 :: text`
under `## SECTION` headings (see `playbook_text`). Texts and headings hold no line break of any kind: breaks are
folded into ` ⏎ ` when the value is made, so no text can forge a heading or a bullet.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from combee_core.errors import PlaybookError
from combee_core.types import Noun, sha256

_BREAKS = re.compile(r"\s*(?:\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029])\s*")


def fold(text: str) -> str:
    """`text` on one line: every run of line breaks becomes ` ⏎ `, lone surrogates a replacement mark."""
    clean = text.encode("utf-8", "replace").decode("utf-8")
    return _BREAKS.sub(" ⏎ ", clean.strip())


Line = Annotated[str, AfterValidator(fold)]
BulletId = Annotated[str, StringConstraints(pattern=r"^[^\s\[\]]+$")]


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
    """One entry. `created` and `updated` are playbook versions; `sources` the traces that taught it."""

    id: BulletId
    text: Line
    helpful: int = Field(default=0, ge=0)
    harmful: int = Field(default=0, ge=0)
    sources: tuple[str, ...] = ()
    created: int = 0
    updated: int = 0
    origin: Literal["learned", "import"] = "learned"
    counted: tuple[Counted, ...] = ()
    history: tuple[Change, ...] = ()


class Section(Noun):
    """A heading and its bullets, in order."""

    name: Line
    bullets: tuple[Bullet, ...] = ()


class Playbook(Noun):
    """Sections in order. `next_id` only grows, so that no id is ever used again."""

    sections: tuple[Section, ...] = ()
    next_id: int = Field(default=1, ge=1)

    @model_validator(mode="after")
    def _ids_are_unique(self) -> Playbook:
        seen: set[str] = set()
        for bullet in self.bullets:
            if bullet.id in seen:
                raise PlaybookError(f"bullet id {bullet.id} stands twice in the playbook; give one another id")
            seen.add(bullet.id)
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
        """sha256 of what readers can tell apart: sections, ids, texts, counters, sources; no times, no versions."""
        return sha256(
            [
                [s.name, [[b.id, b.text, b.helpful, b.harmful, sorted(b.sources)] for b in s.bullets]]
                for s in self.sections
            ]
        )
