"""The language of the hidden rules: a topic, what the desk does differently there, and three wordings of it.

Everything is in the text, so the simulated model needs to know no world: what it cannot read, it does not
know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from functools import lru_cache
from types import MappingProxyType

TOPIC = r"(?P<topic>\w+ \w+ \w+ booked in \w+ for \w+ clients)"
_NUMBER = r"(?P<number>\d+(?:\.\d+)?)"
_MARK = " booked in "
_CITY = 5
_YEAR = Decimal(365)
_CENT = Decimal("0.01")

_WORDINGS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "factor": (
            "For {topic}, multiply the charge by {number}.",
            "Multiply by {number} the charge on {topic}.",
            "The charge on {topic} is to be multiplied by {number}.",
        ),
        "year": (
            "For {topic}, count {number} days a year, not 365.",
            "Count {number} days instead of 365 for {topic}.",
            "The year has {number} days for {topic}.",
        ),
        "fee": (
            "For {topic}, add a fee of {number}.",
            "A fee of {number} goes on top for {topic}.",
            "The charge on {topic} includes a fee of {number}.",
        ),
        "step": (
            "For {topic}, round the charge up to the next {number}.",
            "The charge on {topic} is rounded up in steps of {number}.",
            "Round up to a multiple of {number} the charge on {topic}.",
        ),
    }
)
KINDS = tuple(_WORDINGS)
WAYS = 3
"""Wordings of each specific."""


@dataclass(frozen=True)
class Terms:
    """The inputs of a question: an amount of money and a number of days."""

    amount: Decimal
    days: int

    def charge(self, year: Decimal = _YEAR) -> Decimal:
        """The plain charge, amount · days / year, before rounding."""
        return self.amount * self.days / year


@dataclass(frozen=True, order=True)
class Specific:
    """What the desk does differently on one topic. `number` is its text, as in "1.35"."""

    topic: str
    kind: str
    number: str

    def wording(self, which: int) -> str:
        """One of the three wordings, 0 to 2."""
        text = _WORDINGS[self.kind][which].format(topic=self.topic, number=self.number)
        return text[0].upper() + text[1:]

    def answer(self, terms: Terms) -> str:
        """The right answer, as text with two decimals."""
        return money(_EFFECTS[self.kind](terms, Decimal(self.number)))


@dataclass(frozen=True)
class Stated:
    """A specific as it was met in a text, with the words used."""

    specific: Specific
    words: str


def money(amount: Decimal) -> str:
    """Two decimals, half away from zero, no thousands mark."""
    return str(amount.quantize(_CENT, ROUND_HALF_UP))


def _step(terms: Terms, step: Decimal) -> Decimal:
    return (terms.charge() / step).to_integral_value(ROUND_CEILING) * step


_EFFECTS: Mapping[str, Callable[[Terms, Decimal], Decimal]] = MappingProxyType(
    {
        "factor": lambda terms, number: terms.charge() * number,
        "year": lambda terms, number: terms.charge(number),
        "fee": lambda terms, number: terms.charge() + number,
        "step": _step,
    }
)


def _pattern(wording: str) -> re.Pattern[str]:
    literal = re.escape(wording).replace(r"\ ", " ").removesuffix(r"\.")
    text = literal.replace(r"\{topic\}", TOPIC).replace(r"\{number\}", _NUMBER)
    return re.compile(rf"\b{text}(?![\d.]*\d)", re.IGNORECASE)


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((kind, _pattern(wording)) for kind, three in _WORDINGS.items() for wording in three)


@lru_cache(maxsize=16_384)
def stated_in(text: str) -> tuple[Stated, ...]:
    """Every specific that `text` states, in any wording, in the order in which they stand."""
    if _MARK not in text.lower():
        return ()
    found = [(match.start(), kind, match) for kind, pattern in _patterns() for match in pattern.finditer(text)]
    return tuple(_stated(kind, match) for _, kind, match in sorted(found, key=lambda one: one[:2]))


def _stated(kind: str, match: re.Match[str]) -> Stated:
    words = match[0] + "."
    number = f"{Decimal(match['number']).normalize():f}"
    return Stated(Specific(_canonical(match["topic"]), kind, number), words[0].upper() + words[1:])


def _canonical(topic: str) -> str:
    words = topic.lower().split()
    words[_CITY] = words[_CITY].capitalize()
    return " ".join(words)


@dataclass(frozen=True)
class Puzzle:
    """A question of the desk: the topic whose rule it needs, and its inputs."""

    topic: str
    terms: Terms

    @property
    def text(self) -> str:
        """The question as an agent reads it."""
        return (
            f"What is the charge on {self.topic} "
            f"for an amount of {self.terms.amount} over {self.terms.days} days? "
            "The plain charge is amount x days / 365. Answer with the number alone, to two decimals."
        )

    @property
    def naive(self) -> str:
        """The answer of somebody who does not know the house rule."""
        return money(self.terms.charge())


_PUZZLE = re.compile(
    rf"the charge on {TOPIC} for an amount of (?P<amount>\d+(?:\.\d+)?) over (?P<days>\d+) days\?",
    re.IGNORECASE,
)


@lru_cache(maxsize=4_096)
def puzzle_in(text: str) -> Puzzle | None:
    """The desk's question that stands in `text`, or None: then the text is foreign to this world."""
    found = _PUZZLE.search(text)
    if found is None:
        return None
    return Puzzle(_canonical(found["topic"]), Terms(Decimal(found["amount"]), int(found["days"])))
