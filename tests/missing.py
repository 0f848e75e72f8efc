"""What a test needs and this machine lacks."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip by name with the way out, as in "Chromium: apt-get install chromium"; fail under COMBEE_NOTHING_MISSING."""
    if os.environ.get("COMBEE_NOTHING_MISSING"):
        pytest.fail(f"missing here: {what}", pytrace=False)
    pytest.skip(f"missing here: {what}")
