"""What a run should have changed, compared with what it changed; the difference as one sentence.

Only calls that change data count (book_, update_, cancel_, send_): looking things up in another way is no
mistake. A call that the tool answered with an error changed nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from combee_core.base import clip
from combee_core.traces.jsonl import parse
from combee_core.types import Step, ToolCall

CHANGING = ("book_", "update_", "cancel_", "send_")
_LIMIT = 400
_ABSENT = object()


@dataclass(frozen=True)
class Change:
    """One call that changes data; `refusal` is the tool's error where it gave one."""

    name: str
    arguments: dict[str, Any]
    refusal: str = ""

    @property
    def text(self) -> str:
        """`cancel_reservation(reservation_id="X7BYG1")`."""
        return clip(f"{self.name}({_listed(self.arguments, self.arguments)})", _LIMIT)

    def same(self, other: Change) -> bool:
        """Equal name and, as JSON, equal arguments."""
        return self.name == other.name and self.arguments == other.arguments


def first_difference(expected: Iterable[Change], outputs: Iterable[str], steps: Sequence[Step]) -> str:
    """The first expected change that is missing, else the first too many, else what the user was not told.

    Empty where everything is as expected.
    """
    wanted = [change for change in expected if change.name.startswith(CHANGING)]
    made = _made(steps)
    missing, extra = _match(wanted, [change for change in made if not change.refusal])
    if missing:
        return _missing(missing[0], extra + [change for change in made if change.refusal])
    if extra:
        again = any(change.same(extra[0]) for change in wanted)
        known = "more often than" if again else "although nothing like it was"
        return f"called {extra[0].text} {known} expected"
    untold = _untold(outputs, steps)
    return f"did not tell the user: {', '.join(untold)}" if untold else ""


def _made(steps: Sequence[Step]) -> list[Change]:
    changes: list[Change] = []
    for position, step in enumerate(steps):
        results = _results_after(steps, position)
        for call in step.calls:
            # Results follow in the order of the calls; a name takes the next result of its own.
            found = next((result for result in results if result.name == call.name), None)
            if found is not None:
                results.remove(found)
            if call.name.startswith(CHANGING):
                answer = found.text if found is not None and _is_refusal(found.text) else ""
                changes.append(Change(call.name, _arguments(call), answer))
    return changes


def _results_after(steps: Sequence[Step], position: int) -> list[Step]:
    end = position + 1
    while end < len(steps) and steps[end].role == "tool":
        end += 1
    return list(steps[position + 1 : end])


def _is_refusal(text: str) -> bool:
    return text.lstrip().startswith("Error")


def _arguments(call: ToolCall) -> dict[str, Any]:
    try:
        value = parse(call.arguments.strip())
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"arguments": call.arguments}


def _match(wanted: Sequence[Change], made: Sequence[Change]) -> tuple[list[Change], list[Change]]:
    """What is left of both sides after each expected change took one equal made one."""
    missing, extra = [], list(made)
    for change in wanted:
        found = next((other for other in extra if other.same(change)), None)
        if found is None:
            missing.append(change)
        else:
            extra.remove(found)
    return missing, extra


def _missing(change: Change, others: Sequence[Change]) -> str:
    named = [other for other in others if other.name == change.name]
    if not named:
        return f"expected {change.text} but it was never called"
    closest = max(named, key=lambda other: (-len(_differing(change, other)), not other.refusal))
    answered = f" (the tool answered: {clip(closest.refusal, 200)})" if closest.refusal else ""
    differing = _differing(change, closest)
    if not differing:
        return f"expected {change.text} and it was called so, but to no effect{answered}"
    first = differing[:1]
    return (
        f"expected {change.name} {_with(change.arguments, first)} "
        f"but it was called {_with(closest.arguments, first)}{answered}"
    )


def _differing(change: Change, other: Change) -> list[str]:
    """Names of arguments that differ: in the expected order, then those that only the other has."""
    names = dict.fromkeys([*change.arguments, *other.arguments])
    return [n for n in names if change.arguments.get(n, _ABSENT) != other.arguments.get(n, _ABSENT)]


def _with(arguments: dict[str, Any], names: Sequence[str]) -> str:
    absent = [name for name in names if name not in arguments]
    return f"without {absent[0]}" if absent else f"with {clip(_listed(arguments, names), _LIMIT)}"


def _listed(arguments: dict[str, Any], names: Iterable[str]) -> str:
    return ", ".join(f"{name}={json.dumps(arguments[name], ensure_ascii=False)}" for name in names)


def _untold(outputs: Iterable[str], steps: Sequence[Step]) -> list[str]:
    """Outputs found in nothing that the agent wrote; thousands separators and case do not matter."""
    said = [step.text.lower().replace(",", "") for step in steps if step.role == "assistant"]
    return [output for output in outputs if not any(output.lower().replace(",", "") in text for text in said)]
