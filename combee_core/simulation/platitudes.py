"""What an overloaded curator writes instead of the specifics: a sentence that is true and helps nobody."""

from __future__ import annotations

import re

_PLATITUDE = re.compile(r"\bRead the conventions for (?P<theme>.+?) with care before you answer\b", re.IGNORECASE)
_INSTRUMENT = re.compile(r"\w+ \w+ (?P<theme>\w+) booked in ")
_TOOL = re.compile(r"\b(?P<theme>[a-z]+(?:_[a-z]+)+)\b")
_ANYTHING = "cases like these"


def platitude(about: str) -> str:
    """A general sentence on the theme of a specific: its instrument, its tool, or nothing much."""
    found = _INSTRUMENT.search(about) or _TOOL.search(about)
    return f"Read the conventions for {found['theme'] if found else _ANYTHING} with care before you answer."


def is_platitude(text: str) -> bool:
    """True for a text that holds such a sentence."""
    return _PLATITUDE.search(text) is not None
