"""A playbook text from elsewhere, published as a version of its own."""

from __future__ import annotations

import json

from pydantic import BaseModel, Field, ValidationError

from combee_core.errors import PlaybookError
from combee_core.playbook import Bullet, Playbook, Section
from combee_core.playbook_text import parse
from combee_core.versions import Version, Versions


class _Entry(BaseModel):
    """What is taken over from a bullet; its sources are traces of another store and stay there."""

    id: str
    text: str
    helpful: int = Field(default=0, ge=0)
    harmful: int = Field(default=0, ge=0)


class _Heading(BaseModel):
    name: str
    bullets: tuple[_Entry, ...] = ()


class _Book(BaseModel):
    sections: tuple[_Heading, ...]
    next_id: int = 1


def read_playbook(text: str, where: str) -> Playbook:
    """The playbook in either ACE text form, or in our own JSON: what `playbook show --json` prints, or a version.

    Raises `PlaybookError` naming the file and the line, or the place in the JSON.
    """
    try:
        return _from_json(text) if text.removeprefix("\ufeff").lstrip().startswith("{") else parse(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise PlaybookError(f"{where}: {place + ': ' if place else ''}{first['msg']}") from error
    except ValueError as error:
        raise PlaybookError(f"{where}: not JSON: {error}") from error
    except PlaybookError as error:
        raise PlaybookError(f"{where}: {error}") from error


def _from_json(text: str) -> Playbook:
    data = json.loads(text.removeprefix("\ufeff"))
    book = _Book.model_validate(data.get("state", data))
    sections = tuple(
        Section(name=s.name, bullets=tuple(Bullet(**b.model_dump(), origin="import") for b in s.bullets))
        for s in book.sections
    )
    return Playbook(sections=sections, next_id=book.next_id)


def import_playbook(text: str, where: str, versions: Versions) -> tuple[Version, int]:
    """Publish the bullets of `text` on top of `latest`; the version and how many were new.

    Ids are kept; importing the same again changes nothing. Raises `PlaybookError` if an id already stands in the
    playbook with another text.
    """
    incoming = read_playbook(text, where)
    if not incoming.sections:
        raise PlaybookError(f"{where}: there is neither a heading nor a bullet in it")

    def attempt(latest: Version | None) -> tuple[Version, int] | None:
        base = Playbook.model_validate(latest.state) if latest else Playbook()
        number = latest.version if latest else 0
        joined, added = _join(base, incoming, number + 1, where)
        if latest and joined.digest == latest.digest:
            return latest, 0
        draft = Version(
            playbook=versions.playbook,
            version=number + 1,
            parent=number,
            digest=joined.digest,
            learner="ace",
            state=joined.model_dump(mode="json"),
            learned_by=latest.learned_by if latest else (),
            as_of=latest.as_of if latest else None,
            origin="import",
            note=f"imported from {where}",
        )
        published = versions.publish(draft)
        return (published, added) if published else None

    return versions.advance(attempt)


def _join(base: Playbook, incoming: Playbook, version: int, where: str) -> tuple[Playbook, int]:
    sections = {section.name: list(section.bullets) for section in base.sections}
    known = {bullet.id: bullet for bullet in base.bullets}
    added = 0
    for section in incoming.sections:
        place = sections.setdefault(section.name, [])
        for bullet in section.bullets:
            twin = known.get(bullet.id)
            if twin is None:
                place.append(bullet.model_copy(update={"created": version, "updated": version}))
                added += 1
            elif twin.text != bullet.text:
                raise PlaybookError(f"{where}: [{bullet.id}] already stands in the playbook with another text")
    joined = Playbook(
        sections=tuple(Section(name=name, bullets=tuple(bullets)) for name, bullets in sections.items()),
        next_id=max(base.next_id, incoming.next_id),
    )
    return joined, added
