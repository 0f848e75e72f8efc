"""The merger: joins what is the same and loses a little; above forty distinct operations it loses much."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from combee_core.simulation.asked import Asked, Book, plain
from combee_core.simulation.draws import Draws
from combee_core.simulation.ideas import section_for
from combee_core.simulation.overload import Merger, merged
from combee_core.simulation.specifics import stated_in

_OPERATION = re.compile(r"^o(?P<number>\d+)\. (?P<data>\{.*\})$", re.MULTILINE)
_RANK = {"MERGE": 0, "UPDATE": 1, "REMOVE": 1, "ADD": 2}
_LEFT_OUT = "left out: more than this call writes"
_OVERRULED = "its bullet is changed by another operation"


@dataclass(frozen=True)
class Proposal:
    """One numbered operation of the merger's message."""

    number: int
    kind: str
    content: str
    section: str
    bullets: tuple[str, ...]

    @property
    def key(self) -> str:
        """Equal for operations that say the same: one rule in any wording, or the same words."""
        if self.kind == "REMOVE":
            return f"remove {self.bullets}"
        stated = sorted({one.specific for one in stated_in(self.content)})
        return repr(stated) if stated else plain(self.content)


def merge(asked: Asked, draws: Draws, curve: Merger = merged) -> dict[str, Any]:
    """One list: of u distinct operations `curve(u)` are drawn, by occurrences; the rest are named."""
    same: dict[str, list[Proposal]] = {}
    for proposal in read_proposals(asked.last):
        same.setdefault(proposal.key, []).append(proposal)
    chosen = draws.choose({key: len(ops) for key, ops in same.items()}, draws.rounded(curve(len(same))))
    desk = _Desk(asked.book)
    for key, ops in same.items():
        desk.write(ops) if key in chosen else desk.drop(ops, _LEFT_OUT)
    reasoning = f"{len(same)} distinct operations, {len(desk.operations)} written."
    return {"reasoning": reasoning, "operations": desk.operations, "dropped": desk.dropped}


def read_proposals(text: str) -> Iterator[Proposal]:
    """The numbered operations of a merger's message."""
    for found in _OPERATION.finditer(text):
        data = json.loads(found["data"])
        one = [data["bullet_id"]] if data.get("bullet_id") else []
        bullets = tuple(data.get("bullet_ids") or one)
        content, section = data.get("content") or "", data.get("section") or ""
        yield Proposal(int(found["number"]), data["type"], content, section, bullets)


@dataclass
class _Desk:
    """Collects the answer; a bullet is changed by one operation only, what comes second is added instead."""

    book: Book
    operations: list[dict[str, Any]] = field(default_factory=list)
    dropped: list[dict[str, Any]] = field(default_factory=list)
    taken: set[str] = field(default_factory=set)

    def write(self, same: Sequence[Proposal]) -> None:
        numbers = [proposal.number for proposal in same]
        first, *_ = ranked = sorted(same, key=lambda proposal: _RANK.get(proposal.kind, 2))
        free = next((p for p in ranked if self.taken.isdisjoint(p.bullets)), None)
        if free is None and first.kind == "REMOVE":
            self.drop(same, _OVERRULED)
            return
        self.taken.update(free.bullets if free else ())
        self.operations.append({**self._form(free or first, demoted=free is None), "from": numbers})

    def drop(self, same: Iterable[Proposal], because: str) -> None:
        self.dropped += [{"op": proposal.number, "because": because} for proposal in same]

    def _form(self, proposal: Proposal, *, demoted: bool) -> dict[str, Any]:
        if demoted or proposal.kind == "ADD":
            section = proposal.section or section_for(proposal.content, self.book)
            return {"type": "ADD", "section": section, "content": proposal.content}
        if proposal.kind == "MERGE":
            return {"type": "MERGE", "bullet_ids": list(proposal.bullets), "content": proposal.content}
        content = {"content": proposal.content} if proposal.content else {}
        return {"type": proposal.kind, "bullet_id": proposal.bullets[0], **content}
