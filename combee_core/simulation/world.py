"""A finance desk with hidden house rules: what there is to learn in the offline default.

Each question needs exactly one rule. Whoever does not know it gives the plain answer, which is always
wrong; the feedback on the failure states the rule, in one of its three wordings.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cached_property
from itertools import accumulate, count
from math import gcd

from combee_core.errors import UsageError
from combee_core.simulation import vocabulary
from combee_core.simulation.draws import Draws
from combee_core.simulation.specifics import KINDS, WAYS, Puzzle, Specific, Terms, puzzle_in
from combee_core.simulation.vocabulary import CAPACITY, NUMBERS
from combee_core.types import Outcome, Sample


@dataclass(frozen=True)
class World:
    """`rules` hidden rules; questions meet them by Zipf's law, the i-th rule with weight 1 / i^`zipf`.

    Raises `UsageError` for a number of rules below 1 or above what the vocabulary can name (over a hundred
    million).
    """

    seed: int = 0
    rules: int = 120
    zipf: float = 0.8

    def __post_init__(self) -> None:
        if not 1 <= self.rules <= CAPACITY:
            raise UsageError(f"a world has between 1 and {CAPACITY} rules, not {self.rules}")

    def rule(self, index: int) -> Specific:
        """The rule at `index`, 0 being the most frequent. Different indices have different topics."""
        draws = Draws("rule", self.seed, index)
        kind = KINDS[draws.below(len(KINDS), "kind")]
        numbers = NUMBERS[kind]
        return Specific(self._topic(index), kind, numbers[draws.below(len(numbers), "number")])

    @property
    def specifics(self) -> Iterator[Specific]:
        """All rules, the most frequent first."""
        return map(self.rule, range(self.rules))

    def sample(self, n: int, seed: int, prefix: str = "s") -> tuple[Sample, ...]:
        """`n` questions with answers, ids `<prefix>-00001` on; a smaller `n` gives the same beginning."""
        return tuple(self._sample(f"{prefix}-{at:05d}", Draws("sample", self.seed, seed, at)) for at in range(1, n + 1))

    def rule_of(self, text: str) -> Specific | None:
        """The rule that the question in `text` needs; None for a text from outside this world."""
        puzzle = puzzle_in(text)
        index = self._by_topic.get(puzzle.topic) if puzzle else None
        return None if index is None else self.rule(index)

    def score(self, sample: Sample, answer: str) -> Outcome:
        """1 for the expected answer, else 0 with feedback that states the rule. Never raises.

        A foreign sample is compared with its target and its feedback states no rule; without a target
        nobody scores it.
        """
        if sample.target is None:
            return Outcome()
        if _same(answer, sample.target):
            return Outcome(score=1.0, label="correct", feedback=f"Correct: {sample.target}.", source="ground_truth")
        said = f"Expected {sample.target}, got {answer.strip() or 'nothing'}."
        rule = self.rule_of(sample.context)
        hint = f" House rule: {rule.wording(Draws('wording', self.seed, sample.id).below(WAYS))}" if rule else ""
        return Outcome(score=0.0, label="wrong", feedback=said + hint, source="ground_truth")

    def _sample(self, sample_id: str, draws: Draws) -> Sample:
        rule = self.rule(bisect(self._cumulative, draws.uniform("rule") * self._cumulative[-1], hi=self.rules - 1))
        puzzles = (Puzzle(rule.topic, _terms(draws, attempt)) for attempt in count())
        puzzle = next(p for p in puzzles if rule.answer(p.terms) != p.naive)
        return Sample(id=sample_id, context=puzzle.text, target=rule.answer(puzzle.terms))

    def _topic(self, index: int) -> str:
        start, stride = self._walk
        return vocabulary.topic((start + index * stride) % CAPACITY)

    @cached_property
    def _walk(self) -> tuple[int, int]:
        # A stride without a common factor visits every topic once before it meets the first again.
        draws = Draws("topics", self.seed)
        strides = count(CAPACITY // 3 + draws.below(CAPACITY // 3, "stride"))
        return draws.below(CAPACITY, "start"), next(s for s in strides if gcd(s, CAPACITY) == 1)

    @cached_property
    def _by_topic(self) -> dict[str, int]:
        return {self._topic(index): index for index in range(self.rules)}

    @cached_property
    def _cumulative(self) -> list[float]:
        return list(accumulate(1 / rank**self.zipf for rank in range(1, self.rules + 1)))


def _terms(draws: Draws, attempt: int) -> Terms:
    amount = 2_000 + 10 * draws.below(9_800, "amount", attempt)
    return Terms(Decimal(amount), 7 + draws.below(344, "days", attempt))


def _same(answer: str, target: str) -> bool:
    said, expected = _number(answer), _number(target)
    if said is None or expected is None:
        return answer.strip() == target.strip()
    return said == expected


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip().replace(",", ""))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
