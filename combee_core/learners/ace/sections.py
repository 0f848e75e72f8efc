"""Which heading a bullet goes under, and what its id begins with."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from combee_core.playbook_text import UNTITLED

_CLOSE = 0.77
"""Two words that begin alike and have at least this ratio (difflib) are one word, misspelt or in the plural."""

_SLUGS = {
    "financialstrategiesandinsights": "fin",
    "formulasandcalculations": "calc",
    "codesnippetsandtemplates": "code",
    "commonmistakestoavoid": "err",
    "problemsolvingheuristics": "prob",
    "contextcluesandindicators": "ctx",
    "metastrategies": "meta",
    "others": "misc",
}


def find_section(names: Sequence[str], wanted: str) -> str | None:
    """The one heading among `names` that `wanted` means, or None.

    Case, punctuation and `&` for `and` do not count; else word must match word, numbers exactly. A wrong heading is
    worse than none: "UNCOMMON MISTAKES" is not "COMMON MISTAKES", and of two close headings neither is taken.
    """
    if wanted in names:
        return wanted
    same = [name for name in names if _key(name) and _key(name) == _key(wanted)]
    if same:
        return same[0]
    close = dict.fromkeys(name for name in names if _is_close(_words(name), _words(wanted)))
    return next(iter(close)) if len(close) == 1 else None


def others(names: Sequence[str]) -> str:
    """The heading for what fits nowhere: the playbook's own spelling of it, else `OTHERS`."""
    return next((name for name in names if _key(name) == _key(UNTITLED)), UNTITLED)


def slug(name: str, ids: Iterable[str]) -> str:
    """The id prefix of a section: its bullets' own, else ACE's for the standard headings, else made from its name."""
    used = Counter(head for head, dash, _ in (bullet_id.rpartition("-") for bullet_id in ids) if head and dash)
    if used:
        return used.most_common(1)[0][0]
    return _SLUGS.get(_key(name)) or _initials(name)


def _words(name: str) -> list[str]:
    plain = unicodedata.normalize("NFKC", name).casefold().replace("&", " and ")
    return re.findall(r"\w+", plain.replace("_", " "))


def _key(name: str) -> str:
    return "".join(_words(name))


def _is_close(a: Sequence[str], b: Sequence[str]) -> bool:
    return bool(a) and len(a) == len(b) and all(map(_is_close_word, a, b))


def _is_close_word(a: str, b: str) -> bool:
    if a == b:
        return True
    if a[0] != b[0] or not (a.isalpha() and b.isalpha()):
        return False
    return SequenceMatcher(None, a, b, autojunk=False).ratio() >= _CLOSE


def _initials(name: str) -> str:
    words = [word for word in _words(name) if word.isascii()]
    made = words[0][:4] if len(words) == 1 else "".join(word[0] for word in words[:5])
    return made or "misc"
