"""A playbook text from elsewhere, published as a version of its own."""

from __future__ import annotations

import json

from combee_core.errors import PlaybookError, StoreError
from combee_core.playbook import Bullet, Playbook, Section
from combee_core.playbook_text import parse, render
from combee_core.versions import Version, Versions

_TRIES = 20


def read_playbook(text: str, where: str) -> Playbook:
    """The playbook in either ACE text form, or in our own JSON (what `playbook show --json` prints, or a state).

    Raises `PlaybookError` naming file and line.
    """
    try:
        return _from_json(text) if text.lstrip().startswith("{") else parse(text)
    except (PlaybookError, ValueError) as error:
        raise PlaybookError(f"{where}: {error}") from error


def _from_json(text: str) -> Playbook:
    data = json.loads(text)
    sections = tuple(
        Section(
            name=section["name"],
            bullets=tuple(
                Bullet(id=b["id"], text=b["text"], helpful=b.get("helpful", 0), harmful=b.get("harmful", 0), origin="import")
                for b in section["bullets"]
            ),
        )
        for section in data["sections"]
    )
    return _with_next_id(Playbook(sections=sections))


def _with_next_id(playbook: Playbook) -> Playbook:
    """The same with `next_id` above every id in it."""
    return playbook.model_copy(update={"next_id": parse(render(playbook)).next_id})


def import_playbook(text: str, where: str, versions: Versions) -> tuple[Version, int]:
    """Publish the bullets of `text` on top of `latest`; the version and how many were new.

    Ids are kept. Raises `PlaybookError` if an id already stands in the playbook with another text.
    """
    incoming = read_playbook(text, where)
    for _ in range(_TRIES):
        latest = versions.latest()
        base = Playbook.model_validate(latest.state) if latest else Playbook()
        number = latest.version if latest else 0
        joined, added = _join(base, incoming, number + 1, where)
        if latest and not added:
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
        if published:
            return published, added
    raise StoreError(f"{versions.playbook}: latest.json moved {_TRIES} times in a row; import again")


def _join(base: Playbook, incoming: Playbook, version: int, where: str) -> tuple[Playbook, int]:
    sections = {section.name: list(section.bullets) for section in base.sections}
    added = 0
    for section in incoming.sections:
        place = sections.setdefault(section.name, [])
        for bullet in section.bullets:
            twin = base.find(bullet.id)
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
