"""Contradictions between texts that are alike, found by code: a heuristic that asks a person, and settles nothing.

Two alike texts contradict each other where what they assert parts: each has a number that the other lacks ("fee of 5",
"fee of 7"), one asserts the number that the other denies ("20, not 0.2"), they have opposed words at the same place
("before", "after"), or one of them is negated. A number that only one of them has is a detail, and texts that name
different things (`like_count` and `play_count`, Ghent and Lagos) are about different things.

What the playbook keeps: both texts stand as they were proposed and are shown to a person; a merger may drop one with
its reason, but it may not make one text of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)*(?![\w]*_)")
_WORD = re.compile(r"[^\W\d_]+(?:'[a-z]+)?", re.UNICODE)
_DENIED = re.compile(
    r"(?:(?:, | and |\()not|\binstead of|\brather than|\bin place of)\s+(?:(?:the|an?|in|by)\s+)?(\S+)", re.I
)
_NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z]\w*|\b\w*_\w+\b|\b[a-z]+[A-Z]\w*|`[^`]+`|\b\w+(?=\()")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_CLOSE = 0.6
"""Share of common words at which a difference in a word or a number is the point, and not one of many."""

_NEGATIONS = _words("not never no none avoid don't doesn't cannot can't mustn't shouldn't nor")
_PASSING = _words("a an the in on of to as at by for from with is are be it its this that and or all any each")
_EXTREMES = _words(
    "first last least most lowest highest smallest largest fewest oldest newest earliest latest shortest longest"
)
_OPPOSED = (
    ("always", "never"), ("before", "after"), ("above", "below"), ("over", "under"), ("minimum", "maximum"),
    ("min", "max"), ("up", "down"), ("increase", "decrease"), ("add", "subtract"), ("multiply", "divide"),
    ("include", "exclude"), ("including", "excluding"), ("includes", "excludes"), ("inclusive", "exclusive"),
    ("percent", "decimal"), ("percentage", "decimal"), ("percent", "fraction"), ("percentage", "fraction"),
    ("gross", "net"), ("ascending", "descending"), ("enable", "disable"), ("enabled", "disabled"), ("allow", "forbid"),
    ("allowed", "forbidden"), ("required", "optional"), ("true", "false"), ("yes", "no"), ("keep", "remove"),
    ("positive", "negative"), ("upper", "lower"), ("with", "without"),
)  # fmt: skip
_TELLING = _NEGATIONS | {word for pair in _OPPOSED for word in pair}


@dataclass(frozen=True)
class Claim:
    """What of a text can contradict another: numbers asserted and denied, telling words; what it names; the rest."""

    asserted: frozenset[str]
    denied: frozenset[str]
    telling: frozenset[str]
    names: frozenset[str]
    words: frozenset[str]


@lru_cache(maxsize=16_384)
def claim(text: str) -> Claim:
    """Read a text. What stands after ", not", "instead of" or "rather than" is denied, which negates nothing else."""
    against = " ".join(_DENIED.findall(text))
    plain = _DENIED.sub(" ", text)
    words = {word.lower() for word in _WORD.findall(plain)}
    return Claim(
        asserted=frozenset(map(_number, _NUMBER.findall(plain))),
        denied=frozenset(map(_number, _NUMBER.findall(against))),
        telling=frozenset(words & _TELLING),
        names=frozenset([*_NAME.findall(text), *(words & _EXTREMES)]),
        words=frozenset(words - _TELLING - _PASSING),
    )


def _number(text: str) -> str:
    """One form for 5, 5.0 and 1,000."""
    bare = text.replace(",", "")
    try:
        return f"{float(bare):g}" if bare.count(".") <= 1 else text
    except ValueError:
        return text


def skeleton(text: str) -> str:
    """A text without its values and telling words: where all else is the same, what differs is at odds.

    Short texts that differ in these are not alike by their pieces, and yet they must meet.
    """
    words = _DENIED.sub(" ", _NUMBER.sub(" ", text)).lower()
    return " ".join(word for word in re.findall(r"[\w']+", words) if word not in _TELLING)


def difference(a: str, b: str) -> str:
    """Why two alike texts must not be made one without being read: they contradict, or name different things."""
    return contradiction(a, b) or _other_names(claim(a), claim(b))


def contradiction(a: str, b: str) -> str:
    """Why two alike texts cannot both be right, or nothing."""
    one, other = claim(a), claim(b)
    if one == other or _other_names(one, other) or not _is_close(one, other):
        return ""
    return _values(one, other) or _opposed(one.telling, other.telling) or _negation(one.telling, other.telling)


def _is_close(one: Claim, other: Claim) -> bool:
    return len(one.words & other.words) >= _CLOSE * len(one.words | other.words)


def _values(one: Claim, other: Claim) -> str:
    mine, yours = one.asserted - other.asserted, other.asserted - one.asserted
    if mine and yours:
        return f"they differ in values: {_listed(mine)} and {_listed(yours)}"
    if both := (one.asserted & other.denied) | (other.asserted & one.denied):
        return f"one says {_listed(both)}, the other denies it"
    return ""


def _opposed(one: frozenset[str], other: frozenset[str]) -> str:
    for pair in _OPPOSED:
        mine, yours = one - other, other - one
        if (pair[0] in mine and pair[1] in yours) or (pair[1] in mine and pair[0] in yours):
            return f"opposed words: {pair[0]} and {pair[1]}"
    return ""


def _negation(one: frozenset[str], other: frozenset[str]) -> str:
    return "one of them is negated" if bool(one & _NEGATIONS) != bool(other & _NEGATIONS) else ""


def _other_names(one: Claim, other: Claim) -> str:
    mine, yours = one.names - other.names, other.names - one.names
    return f"they name different things: {_listed(mine)} and {_listed(yours)}" if mine and yours else ""


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(values))


def contradictions(texts: Sequence[str]) -> Iterator[tuple[tuple[int, ...], str]]:
    """The places of texts that contradict each other, each set once, with the reason that was found first.

    `texts` are alike. Of texts that claim the same, the first stands for all.
    """
    firsts: dict[Claim, int] = {}
    for at, text in enumerate(texts):
        firsts.setdefault(claim(text), at)
    reasons = {
        (one, other): reason
        for one, other in combinations(firsts.values(), 2)
        if (reason := contradiction(texts[one], texts[other]))
    }
    while reasons:
        group = set(next(iter(reasons)))
        why = reasons[next(iter(reasons))]
        while more := {pair for pair in reasons if group & set(pair)}:
            group.update(*more)
            reasons = {pair: reason for pair, reason in reasons.items() if pair not in more}
        yield tuple(sorted(group)), why
