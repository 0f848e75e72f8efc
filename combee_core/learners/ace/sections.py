"""Which heading a bullet goes under, and what its id begins with."""

from __future__ import annotations

import re
from collections import Counter
from difflib import get_close_matches

from combee_core.playbook import Playbook, Section
from combee_core.playbook_text import UNTITLED

_CLOSE = 0.85
_SLUGS = {
    "strategiesandinsights": "sai",
    "formulasandcalculations": "calc",
    "codesnippetsandtemplates": "code",
    "commonmistakestoavoid": "err",
    "problemsolvingheuristics": "prob",
    "contextcluesandindicators": "ctx",
    "others": "misc",
}


def find_section(playbook: Playbook, name: str) -> str:
    """The playbook's own spelling of `name`, near misses included; `OTHERS` for what it does not have."""
    known = {_key(section.name): section.name for section in playbook.sections}
    close = get_close_matches(_key(name), known, n=1, cutoff=_CLOSE) if name else []
    return known[close[0]] if close else known.get(_key(UNTITLED), UNTITLED)


def _key(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower().replace("&", "and"))


def slug(section: Section) -> str:
    """The id prefix of a section: its bullets' own, else ACE's for the standard headings, else made from its name."""
    used = Counter(b.id.rsplit("-", 1)[0] for b in section.bullets if "-" in b.id)
    if used:
        return used.most_common(1)[0][0]
    key = _key(section.name)
    return _SLUGS.get(key) or _initials(section.name) or "misc"


def _initials(name: str) -> str:
    words = re.findall(r"[a-z0-9]+", name.lower())
    return words[0][:4] if len(words) == 1 else "".join(word[0] for word in words[:5])
