"""One specific out of a run from outside the simulated world: what a gullible reader would take from it.

In this order: the feedback, the first error that a tool returned, an instruction that the user had to
repeat, and last, as with a gullible model, a sentence in a tool's output that sounds like an instruction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from combee_core.base import clip
from combee_core.simulation.run_text import Event, Run

_BARE = re.compile(
    r"(?:(?:reward|score)?\s*[:=]?\s*-?[\d.]+|wrong|fail(?:ed)?|all expected .+ yet reward \S+)?\.?",
    re.I,
)
_CALLED = re.compile(r"expected (?P<tool>\w+) with (?P<value>.+?) but it was called (?P<instead>with(?:out)? .+)", re.I)
_WITHOUT = re.compile(r"expected (?P<tool>\w+) without (?P<name>.+?) but it was called with (?P<instead>.+)", re.I)
_NEVER = re.compile(r"expected (?P<call>\w+\(.*\)) but it was never called", re.I)
_SURPLUS = re.compile(r"called (?P<call>\w+\(.*\)) (?:although|more often)", re.I)
_UNTOLD = re.compile(r"did not tell the user: (?P<value>.+)", re.I)
_VALUE = re.compile(r"expected (?P<value>.+?), (?:but )?got (?P<instead>.+)", re.I)
_EMPTY = r"(?!\"?\s*[:=]\s*(?:null|none|false|0|\"\"|\[\]))"
_ERROR = re.compile(
    rf"\b(?:errors?|failed)\b{_EMPTY}|exception\b|traceback|\bnot found\b|no such file"
    r"|permission denied|exit(?:ed with)? code:? [1-9]",
    re.I,
)
_HARMLESS = re.compile(r"\b(?:no|0|without) (?:errors?|exceptions?|failed)\b|\b0 failed\b", re.I)
_COMPLAINT = re.compile(r"\b(?:I (?:said|asked|told you)|you (?:forgot|ignored|did not|didn't)|not what I)\b", re.I)
_STANDING = re.compile(r"\b(?:always|never|from now on)\b", re.I)
_ORDER = re.compile(r"\b(?:you must|ignore (?:all|any|the|every)?\s*previous)\b", re.I)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\s*⏎\s*")
_LONGEST = 500


def insight(run: Run) -> str:
    """One specific as advice, or an empty string where the run was right or shows nothing."""
    if run.is_right:
        return ""
    sources: Sequence[Callable[[Run], str]] = (_from_feedback, _from_error, _from_complaint, _from_order)
    return clip(next(filter(None, (source(run) for source in sources)), ""), _LONGEST)


def _from_feedback(run: Run) -> str:
    feedback = run.feedback
    if _BARE.fullmatch(feedback):
        return ""
    found = (advise(feedback, run) for advise in (_about_a_call, _about_a_value))
    return next(filter(None, found), f"Mind this next time: {_first_sentence(feedback)}")


def _about_a_call(feedback: str, run: Run) -> str:
    if found := _CALLED.search(feedback):
        return f"When you call {found['tool']}, give {found['value']}; it was called {found['instead']}."
    if found := _WITHOUT.search(feedback):
        return f"Leave out {found['name']} when you call {found['tool']}; it was called with {found['instead']}."
    if found := _NEVER.search(feedback):
        return f"Do not end such a run before calling {found['call']}."
    if found := _SURPLUS.search(feedback):
        return f"Do not call {found['call']} where nothing asks for it."
    if found := _UNTOLD.search(feedback):
        return f"Tell the user what was asked for: {found['value']}."
    return ""


def _about_a_value(feedback: str, run: Run) -> str:
    found = _VALUE.search(feedback)
    if not found:
        return ""
    return f"Answer {found['value']}, not {found['instead'].rstrip('.')}, to: {_last_sentence(run.problem)}"


def _from_error(run: Run) -> str:
    for event, tool in _tool_results(run.events):
        text = next((part for part in event.text.split("⏎") if _is_error(part)), "").strip()
        if text:
            return f'Before you call {tool}, rule out what it answered here: "{_around(_ERROR, text)}".'
    return ""


def _is_error(text: str) -> bool:
    return _ERROR.search(_HARMLESS.sub("", text)) is not None


def _tool_results(events: Sequence[Event]) -> Iterator[tuple[Event, str]]:
    """Each tool's result with the tool's name, or that of the last call where the result has none."""
    last = "the tool"
    for event in events:
        if event.role == "call":
            last = event.name or last
        elif event.role == "tool":
            yield event, event.name or last


def _from_complaint(run: Run) -> str:
    said = [event.text for event in run.events if event.role == "user"][1:]
    sentences = (sentence for text in said for sentence in _SENTENCE.split(text))
    found = next(filter(_COMPLAINT.search, sentences), "")
    return f"Follow the instruction that was broken here: {found}" if found else ""


def _from_order(run: Run) -> str:
    sentences = [s for event, _ in _tool_results(run.events) for s in _SENTENCE.split(event.text)]
    found = next(filter(_STANDING.search, sentences), "") or next(filter(_ORDER.search, sentences), "")
    return found.strip()


def _first_sentence(text: str) -> str:
    return _SENTENCE.split(text.strip(), 1)[0]


def _last_sentence(text: str) -> str:
    parts = [part for part in re.split(r"\s*[\n⏎]+\s*", text.strip()) if part]
    return parts[-1][-160:] if parts else "this problem"


def _around(pattern: re.Pattern[str], text: str, width: int = 200) -> str:
    found = pattern.search(text)
    start = max(0, (found.start() if found else 0) - width // 4)
    return text[start : start + width].strip()
