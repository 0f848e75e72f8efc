"""`python -m combee_core.cli`."""

from __future__ import annotations

import sys

from combee_core.cli import command

sys.exit(command())
